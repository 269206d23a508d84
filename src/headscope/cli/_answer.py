"""headscope answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from headscope.cli._layers_and_heads import parse_layer_and_heads
from headscope.cli._page import Words
from headscope.cli._run import (
    RECORD_SUFFIX,
    MachineOptions,
    check_model,
    check_writable,
    note_where,
    quiet,
    say,
    say_checked,
    say_where,
    status,
)
from headscope.cli._study import PAGE, check_results, write_result
from headscope.errors import FileError, RecordError

Numbers = Annotated[list[int] | None, Parameter(consume_multiple=True, negative="")]


def answer(
    question: str,
    /,
    *,
    image: Annotated[tuple[Path, ...], Parameter(negative="")],
    model: str,
    out: Path | None = None,
    plot: Path | None = None,
    layers: Numbers = None,
    heads: Numbers = None,
    at: Words = (),
    keep_sinks: Annotated[bool, Parameter(negative="")] = False,
    relative: Annotated[bool, Parameter(negative="")] = False,
    max_new_tokens: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    sample: Annotated[bool, Parameter(negative="")] = False,
    temperature: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    top_p: Annotated[float | None, Parameter(validator=Number(gt=0, lte=1))] = None,
    seed: int | None = None,
    allow_unfit: Annotated[bool, Parameter(negative="")] = False,
    machine: MachineOptions | None = None,
) -> None:
    """Ask a vision-language model about a picture, and see where each word of its answer looked.

    Prints the answer and for each of its words how much of the attention of the row that wrote it
    falls on the picture. The page shows the heat of each word over the picture.

    Args:
        question: What is asked; it is put into the chat template of the model.
        image: A picture; give it several times if the text has a place for each.
        model: Hub name or folder of a vision-language model.
        out: Write the page (.html), the result (.safetensors), or a table of the words (.csv, .json
            or .parquet), besides printing it.
        plot: Draw the picture once for each word to this file (.svg, .pdf or .png).
        layers: Layers that the mean is over; by default all.
        heads: Heads that the mean is over, in each of the layers; by default all.
        at: Layer and heads, such as 2-0, 2-0,3,5, or 2 for all heads of layer 2; several for single
            heads of several layers, instead of --layers and --heads.
        keep_sinks: Keep patches that get outsized attention whatever is written; by default they
            are blank.
        relative: Draw the difference to the mean over all words of the answer.
        max_new_tokens: Maximum number of tokens to generate; by default that of the model's own
            generation_config, or 32.
        sample: Sample tokens instead of taking the most probable one.
        temperature: Sampling temperature: above 1 more random, below 1 less.
        top_p: Sample from the most probable tokens that together have this probability.
        seed: Random seed.
        allow_unfit: Run a model or texts that do not fit the question anyway: an untrained head, a
            model that sees the word it predicts, texts of mostly unknown tokens.
        machine: Where and how the model runs.
    """
    _check_files(image, out, plot)
    chosen = _chosen(layers, heads, at)
    machine = machine or MachineOptions()
    check_model(model, machine.revision)
    from headscope.capturing import parse_call

    given = parse_call(question, None, {"image": list(image)}).in_memory()
    options: dict[str, Any] = {
        "do_sample": sample or None,
        "temperature": temperature,
        "top_p": top_p,
        "seed": seed,
    }
    # Options that were not given are left out, so that the defaults of `headscope.answer` hold.
    options = {name: value for name, value in options.items() if value is not None}
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import load_for
        from headscope.studies import answer as answer_of
    with status(f"Loading {model}"), quiet():
        loaded = load_for(model, given, writes=True, allow_unfit=allow_unfit, **machine.loading)
    note_where(loaded[0])
    with status("Answering"), quiet():
        result = answer_of(
            *loaded,
            None,
            given,
            max_new_tokens=max_new_tokens,
            keep_sinks=keep_sinks,
            allow_unfit=allow_unfit,
            **chosen,
            **options,
        )
    say(str(result))
    say_where()
    if result.record is not None:
        say_checked(result.record)
    _write(result, out, plot, relative=relative)


def _check_files(image: tuple[Path, ...], out: Path | None, plot: Path | None) -> None:
    """Raise where a picture is missing, or a file could not be written, before any long work."""
    for path in image:
        if not path.exists():
            raise FileError(f"The picture {path} does not exist")
    is_ours = out is not None and out.suffix in (PAGE, RECORD_SUFFIX)
    check_results(None if is_ours else out, plot, None)
    if is_ours and out is not None:
        check_writable(out)


def _chosen(layers: list[int] | None, heads: list[int] | None, at: Words) -> dict[str, Any]:
    """The heads that the mean is over, as `headscope.answer` takes them."""
    if not at:
        return {"layers": layers, "heads": heads}
    if layers is not None or heads is not None:
        raise RecordError("--at names layers and heads; remove --layers and --heads")
    parsed = [parse_layer_and_heads(each, "--at") for each in at]
    # An entry without heads means a whole layer.
    if not any(own for _, own in parsed):
        return {"layers": [layer for layer, _ in parsed]}
    if not all(own for _, own in parsed):
        raise RecordError("--at names whole layers and single heads; give either of them")
    return {"heads": [(layer, head) for layer, own in parsed for head in own]}


def _write(result: Any, out: Path | None, plot: Path | None, *, relative: bool) -> None:
    if out is not None and out.suffix == RECORD_SUFFIX:
        result.save(out)
        say(f"Wrote {out.resolve()}")
    else:
        write_result(result, out)
    if plot is not None:
        with status("Drawing"):
            path = result.plot(plot, relative=relative)
        say(f"Wrote {path.resolve()}")
