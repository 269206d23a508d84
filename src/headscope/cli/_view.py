"""headscope view."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from headscope.cli._evidence import check_evidence, evidence_of
from headscope.cli._run import RECORD_SUFFIX, ModelOptions, captured, say, status
from headscope.errors import TextError
from headscope.views._contract import Quantity, Theme, ViewName

Numbers = Annotated[tuple[int, ...], Parameter(consume_multiple=True, negative="")]


def view(
    text: str,
    text_b: str | None = None,
    /,
    *,
    out: Path = Path("headscope.html"),
    model: ModelOptions | None = None,
    shown: Annotated[ViewName, Parameter(name="--view")] = "head",
    stack: str | None = None,
    layer: int | None = None,
    heads: Numbers = (),
    query: Numbers = (),
    key: Numbers = (),
    quantity: Quantity = "weight",
    norms: Annotated[bool, Parameter(negative="")] = False,
    include_layers: Annotated[Numbers, Parameter(name=("--include-layers", "--layers"))] = (),
    include_heads: Numbers = (),
    evidence: Annotated[bool, Parameter(negative="")] = False,
    evidence_of_: Annotated[Path | None, Parameter(name="--evidence-of")] = None,
    label: str | None = None,
    least: int | None = None,
    sort: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    x: str | None = None,
    y: str | None = None,
    theme: Theme = "auto",
    open_: Annotated[bool, Parameter(name="--open", negative="")] = False,
) -> None:
    """Capture a text, or a sentence pair, and write the viewer page.

    Args:
        text: The text, or a record file (.safetensors) to show.
        text_b: The second text of a sentence pair.
        out: Where to write the page.
        model: Which model, and what it reads.
        shown: View that is shown first.
        stack: Stack that is shown first, such as cross.
        layer: Layer that is shown first.
        heads: Heads that are shown first; all by default.
        query: Query tokens that are pinned, counted from 0.
        key: Key tokens that are pinned, counted from 0.
        quantity: What is shown: weight, score, or another that the record has.
        norms: Keep what tokens add, too: the quantities contribution, contribution-heads, contribution-residual, alti
            and rollout.
        include_layers: Layers that the page holds; all by default.
        include_heads: Heads that the page holds; all by default.
        evidence: Say what kinds of heads there are; seen on this one text, which the page says.
        evidence_of_: The same over a file of texts: .txt, .jsonl, .csv or .parquet as for headscope heads, or a .npz
            tally that was kept.
        label: Pattern whose heads stand out, such as next.
        least: Percent that the score of a label must reach for its head to stand out.
        sort: Measure by which the model view sorts heads, such as entropy; -entropy for the lowest first.
        x: Measure of the scatter from left to right, or map for the map of heads.
        y: Measure of the scatter from bottom to top.
        theme: Colours; auto follows the reader's system.
        open_: Open the page in the browser.
    """
    from headscope.storage import load
    from headscope.views import view as viewed
    from headscope.views._view import open_page

    check_evidence(evidence, evidence_of_)
    if text.endswith(RECORD_SUFFIX):
        if text_b is not None:
            raise TextError(f"{text} is a record file, which holds its texts already; leave {text_b!r} out")
        if norms:
            raise TextError(f"{text} is a record file; whether it holds norms was chosen when it was captured: --keep")
        record = load(text)
    else:
        record = captured((text, text_b), model or ModelOptions(), out, keep="norms" if norms else "auto")
    options: dict[str, Any] = {
        "view": shown,
        "stack": stack,
        "layer": layer,
        "heads": heads or None,
        "query": query,
        "key": key,
        "quantity": quantity,
        "include_layers": include_layers or None,
        "include_heads": include_heads or None,
        "evidence": evidence_of(record, evidence_of_, model or ModelOptions()) if evidence or evidence_of_ else None,
        "label": label,
        "least": least,
        "sort": sort,
        "x": x,
        "y": y,
        "theme": theme,
    }
    with status("Writing the page"):
        path = viewed(record, **{name: value for name, value in options.items() if value is not None}).save(out)
    say(record.summary)
    if record.verified is not None:
        say(f"Checked against the model's own layer outputs: largest difference {record.verified:.1e}")
    say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e6:.2f} MB)")
    if open_:
        open_page(path.resolve().as_uri())
