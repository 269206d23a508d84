"""Views: a record or a result as a page, a widget, or a file."""

from __future__ import annotations

from contextlib import suppress
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
from headscope.views.options import PageOptions

if TYPE_CHECKING:
    from headscope.views._widget import ViewWidget

MOST_STILL = 2**18
"""Weights of a record up to which a notebook keeps a picture beside the page: that of a sentence
takes about a second, of a long text many.
"""


@dataclass(frozen=True, repr=False)
class View(FramedPage):
    """A record together with the options of its page. In a notebook a view shows itself, in a frame
    with all its data.

    Made by `view`.

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

    def _repr_png_(self) -> bytes | None:
        """What it opens on as a picture, for hosts that show no pages; None of large records."""
        stacks = self.record.stacks.values()
        size = sum(len(one) * one.heads * len(one.query) * len(one.key) for one in stacks)
        with suppress(HeadscopeError):  # such as without matplotlib
            return self.still().to_bytes("png", dpi=110) if size <= MOST_STILL else None

    def still(self) -> Any:
        """The figure of what it opens on; without a choice, of all heads.

        Raises:
            FigureError: what it opens on is drawn by the viewer alone, or matplotlib is missing.
        """
        from headscope.views.figures import FigureOptions, figure

        given: Any = self.options if "view" in self.options else {"view": "overview"}
        names = FigureOptions.__annotations__.keys() & given
        return figure(self.record, width=170, **{name: given[name] for name in names})

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
        *others: refused, with an error that shows how to show weights and tokens as in BertViz.
        **options: see `PageOptions`; for a result without a record the options of its figure.

    Raises:
        PageError: an unknown option or value, such as a layer that the record does not have. Where
            the record is more than a page can hold, the error is raised when the page is made;
            `View.widget` and ``headscope serve`` show it anyway.

    Example:
        >>> view(record, layer=2, head=0).save("page.html")
    """
    record = _shown((record, *others))
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


def _shown(given: tuple[Any, ...]) -> Record | Result:
    """The one record or result that was given.

    Raises:
        PageError: where it is neither, or where more was given.
    """
    kinds = ", ".join(type(each).__name__ for each in given)
    if len(given) > 1 and isinstance(given[0], Result) and hasattr(given[0], "compare"):
        advice = "compare them: view(a.compare(b))"
    elif len(given) > 1 or isinstance(given[0], tuple | list):
        advice = (
            "for weights and tokens as BertViz takes them use "
            "headscope.bertviz.head_view(attention, tokens), or "
            "view(headscope.from_weights(attention, tokens))"
        )
    elif isinstance(given[0], Record | Result):
        return given[0]
    elif hasattr(given[0], "view"):
        advice = "it has a view of its own: .view()"
    else:
        advice = "capture one: view(headscope.capture(model, tokenizer, text))"
    raise PageError(f"view shows one Record or result, and was given {kinds}; {advice}")
