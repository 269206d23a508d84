"""headscope effect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headscope.cli._layers_and_heads import parse_layer_and_heads
from headscope.cli._media import Media
from headscope.cli._run import ModelOptions, quiet, say, status
from headscope.cli._study import check_result, text_or_chat, write_result
from headscope.errors import InterventionError

if TYPE_CHECKING:
    from headscope.interventions import Intervention

Places = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")]


def effect(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    chat: Path | None = None,
    model: ModelOptions | None = None,
    media: Media | None = None,
    zero: Places = (),
    uniform: Places = (),
    control: Places = (),
    stack: str | None = None,
    out: Path | None = None,
) -> None:
    """Measure what disabling heads changes: the model's output, and where its other heads look.

    Prints the KL divergence between the outputs of the intact and the changed model at each
    position (over tokens or classes; for a model without an output head the cosine distance of its
    states), and the Jensen-Shannon distance of each head, in nats. The model is loaded with the
    head that was saved with it.

    Args:
        text: The text to read; leave it out for models of pictures or sounds alone.
        text_b: The second text of a sentence pair.
        chat: A conversation to read in place of a text: a .json file with a list of messages, each
            with role and content.
        model: Model, and how it runs.
        media: Pictures and sound that the model reads.
        zero: Heads whose output is set to zero: layer and heads, such as 2-0, 2-0,3,5, or 2 for all
            heads of layer 2.
        uniform: Heads that attend uniformly; written as for --zero.
        control: Heads that are disabled in the same way, one after the other, to show what any such
            change does; written as for --zero.
        stack: Attention stack of the model, such as decoder or cross; by default the first.
        out: Write the table of heads to this file (.csv, .json or .parquet), or the viewer page
            (.html), besides printing the result.
    """
    check_result(out)
    # Parsed here only to report mistakes before the model is loaded.
    for written in (*zero, *uniform, *control):
        _parsed(written)
    if not zero and not uniform:
        raise InterventionError(
            "Expected heads to disable with --zero or --uniform, such as --zero 2-0"
        )
    options, media = model or ModelOptions(), media or Media()
    text = text_or_chat(text, chat, text_b)
    media.check(text, text_b)
    from headscope.capturing import parse_call

    given = parse_call(text, text_b, {"target": options.target} | media.given)
    options.check()
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import load_tokenizer
        from headscope.interventions import Uniform, Zero
        from headscope.studies import effect as effect_of
    given = given.in_memory()
    changes: list[Intervention] = [Zero(stack=stack, **_parsed(written)) for written in zero]
    changes += [Uniform(stack=stack, **_parsed(written)) for written in uniform]
    # Controls change other heads in the same way as the heads in question.
    controls = [
        [(Zero if zero else Uniform)(stack=stack, **_parsed(written))] for written in control
    ]
    reads: dict[str, Any] = {
        "truncate": options.truncate,
        "allow_unfit": options.allow_unfit,
        **options.loading,
    }
    if options.target_tokenizer:
        reads["target_tokenizer"] = load_tokenizer(options.target_tokenizer)
    with status("Running the model"), quiet():
        result = effect_of(
            options.model, None, given, interventions=changes, controls=controls, **reads
        )
    say(str(result))
    facts = result.comparison.a.model
    say(f"{facts.name} ran on {facts.ran}")
    write_result(result, out)


def _parsed(written: str) -> dict:
    """Layer and heads of ``2-0``, ``2-0,3`` or ``2``.

    Raises:
        RecordError: where it has another form.
    """
    layer, heads = parse_layer_and_heads(written)
    return {"layer": layer, "heads": heads or None}
