"""Views: a record or a result as a page, a widget, or a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from headscope.comparison import Comparison, Effect
from headscope.errors import HeadscopeError, PageError
from headscope.record import Record
from headscope.results import Result, shows, view_of
from headscope.views._answer_page import AnswerPage
from headscope.views._checked_options import check_options
from headscope.views._differences import difference_page
from headscope.views._html import FramedPage, page_html
from headscope.views._on_demand import OnDemand
from headscope.views._page import page_parts
from headscope.views._result_page import ResultPage
from headscope.views.contract import Page
from headscope.views.options import PageOptions, ViewName

if TYPE_CHECKING:
    from headscope.views._widget import ViewWidget


BERTVIZ = ("head_view", "model_view")
"""Views that BertViz has, too."""


@dataclass(frozen=True, repr=False)
class View(FramedPage):
    """A record together with the options of its page. In a notebook a view shows itself, in a frame
    with all its data.

    Made by `view`, `head_view` and so on.

    Args:
        record: what is shown.
        options: as the user gave them.
        on_demand: answers a page that asks for its arrays when it needs them.
    """

    record: Record
    options: PageOptions
    on_demand: OnDemand = field(init=False, compare=False)

    def __post_init__(self) -> None:
        # Checked now, so that an error is raised where the view is made and not where it is shown.
        object.__setattr__(self, "on_demand", OnDemand(self.record, self.options))

    @property
    def header(self) -> Page:
        """The header of the page.

        Raises:
            PageError: more than a page can hold.
        """
        return self._parts[0]

    @property
    def chunks(self) -> dict[str, bytes]:
        """The bytes of the arrays that the header names.

        Raises:
            PageError: more than a page can hold.
        """
        return self._parts[1]

    @cached_property
    def _parts(self) -> tuple[Page, dict[str, bytes]]:
        return page_parts(self.record, self.options)

    @cached_property
    def html(self) -> str:
        """The view as one self-contained page: inert, offline, opens from disk.

        Raises:
            PageError: more than a page can hold.
        """
        return page_html(self.header, self.chunks)

    def widget(self) -> ViewWidget:
        """The view as a live widget: its selection is read and set from Python, its data is made on
        request.

        The record may be of any size, because only a page has to hold all of it.

        Raises:
            HeadscopeError: without the extra ``notebook``.

        Example:
            >>> widget = view(record).widget()
            >>> widget  # in a notebook: shows itself
            >>> widget.select(layer=2, head=0)
            >>> widget.selection["layer"]
        """
        try:
            from headscope.views._widget import ViewWidget
        except ModuleNotFoundError as error:
            raise HeadscopeError(
                f"A widget needs the package {error.name}: pip install 'headscope[notebook]'; "
                "without it, the view shows itself as a page"
            ) from None
        return ViewWidget(self)

    def __repr__(self) -> str:
        return f"<View of {self.record.summary}>"


@overload
def view(
    record: Record | Comparison | Effect, *others: Any, **options: Unpack[PageOptions]
) -> View: ...


@overload
def view(record: Result, *others: Any, **options: Any) -> ResultPage | AnswerPage: ...


@overload
def view(record: Any, *others: Any, **options: Any) -> Any: ...


def view(record: Any, *others: Any, **options: Any) -> Any:
    """The viewer with this record, or the page of a result: it shows itself in a notebook, saves
    itself as one file, and opens in a browser.

    A page holds weights as queries and keys in half precision, from which it recomputes them, or as
    one byte each on a square-root scale; a large page uses whichever is smaller. The page states
    the largest error of a weight.

    Args:
        record: what to show: a `Record`; the result of `compare` or `effect`, which is shown as the
            second record with its differences from the first; or any other result, as a page with
            its summary, its figure and its tables.
        *others: refused, with an error that says how to show weights and tokens as in BertViz.
        **options: see `PageOptions`; for a result without a record the options of its figure.

    Raises:
        PageError: an unknown option or value, such as a layer that the record does not have. Where
            the record is more than a page can hold, the error is raised when the page is made;
            `View.widget` and ``headscope serve`` show it anyway.

    Example:
        >>> view(record, layer=2, head=0).save("page.html")
    """
    record = _shown((record, *others), "view")
    if isinstance(record, Record):
        return View(record, cast(PageOptions, options))
    show = view_of(record)
    if show is None:
        raise PageError(f"A {type(record).__name__} has no page: print it, or draw it")
    return show(record, **options)


@shows("comparison")
@shows("effect")
def difference_view(difference: Comparison | Effect, **options: Unpack[PageOptions]) -> View:
    """A view of the second of two records, with its differences from the first.

    Args:
        difference: the result of `compare` or `effect`.
        **options: see `PageOptions`.
    """
    check_options(options)
    # The caller's options replace those of the comparison, except for quantities, which are joined:
    # without its own the page would have no differences to show.
    shown, more = difference_page(difference)
    quantities = {**more["quantities"], **(options.get("quantities") or {})}
    return View(shown, {**more, **options, "quantities": quantities})


def head_view(record: Any, *others: Any, **options: Unpack[PageOptions]) -> View:
    """Tokens in two columns and a line for each weight, as `view`."""
    return _named("head", (record, *others), options)


def model_view(record: Any, *others: Any, **options: Unpack[PageOptions]) -> View:
    """Every head as lines, layers x heads, as `view`."""
    return _named("model", (record, *others), options)


def matrix_view(record: Any, *others: Any, **options: Unpack[PageOptions]) -> View:
    """One head as a picture of queries x keys, as `view`."""
    return _named("matrix", (record, *others), options)


def text_view(record: Any, *others: Any, **options: Unpack[PageOptions]) -> View:
    """The text itself, coloured by the attention that it gives or receives, as `view`."""
    return _named("text", (record, *others), options)


def neuron_view(record: Any, *others: Any, **options: Unpack[PageOptions]) -> View:
    """What a head's scores are made of, query and key feature by feature, as `view`."""
    return _named("neuron", (record, *others), options)


def pair_view(record: Any, *others: Any, **options: Unpack[PageOptions]) -> View:
    """A pinned query and key, with what all heads have between them, as `view`."""
    return _named("pair", (record, *others), options)


def scatter_view(record: Any, *others: Any, **options: Unpack[PageOptions]) -> View:
    """All heads by what they do, as `view`; the dots by two measures are `figure`'s."""
    return _named("scatter", (record, *others), options)


def _shown(given: tuple[Any, ...], name: str) -> Record | Result:
    """The one record or result that was given.

    Raises:
        PageError: where it is neither, or where more was given.
    """
    kinds = [type(each).__name__ for each in given]
    if len(given) > 1 and isinstance(given[0], Result) and hasattr(given[0], "compare"):
        raise PageError(
            f"{name} shows one result, and was given {', '.join(kinds)}; compare them: "
            f"{name}(a.compare(b))"
        )
    if len(given) > 1 or isinstance(given[0], tuple | list):
        raise PageError(
            f"{name} shows one Record, and was given {', '.join(kinds)}; for weights and tokens "
            "as BertViz takes them use "
            f"headscope.bertviz.{name if name in BERTVIZ else 'head_view'}(attention, tokens), or "
            f"{name}(headscope.from_weights(attention, tokens))"
        )
    if isinstance(given[0], Record | Result):
        return given[0]
    if hasattr(given[0], "view"):
        raise PageError(
            f"{name} shows one Record, and was given a {kinds[0]}, which has a view of its own: "
            ".view()"
        )
    raise PageError(
        f"{name} shows a Record, and was given a {kinds[0]}; capture one: "
        f"{name}(headscope.capture(model, tokenizer, text))"
    )


def _named(name: str, given: tuple[Any, ...], options: PageOptions) -> View:
    if options.get("view", name) != name:
        raise PageError(
            f"{name}_view cannot show view={options['view']!r}; call view(record, "
            f"view={options['view']!r})"
        )
    shown = _shown(given, f"{name}_view")
    if not isinstance(shown, Record | Comparison | Effect):
        raise PageError(
            f"{name}_view shows a Record, and was given a {type(shown).__name__}, which has a page "
            "of its own: view(...)"
        )
    return view(shown, **(options | {"view": cast(ViewName, name)}))
