"""headscope generate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from headscope.cli._capture import parse_head
from headscope.cli._page import Words
from headscope.cli._run import (
    MachineOptions,
    check_model,
    check_place,
    check_record_name,
    quiet,
    say,
    say_checked,
    say_what,
    status,
)

if TYPE_CHECKING:
    from headscope.record import Generation

ENDED = {
    "end": "the model ended the text",
    "length": "as many as asked for",
    "criterion": "a criterion was met",
}


def generate(
    prompt: str,
    /,
    *,
    model: str,
    out: Path,
    target_tokenizer: str | None = None,
    max_new_tokens: Annotated[int, Parameter(validator=Number(gte=1))] = 32,
    sample: Annotated[bool, Parameter(negative="")] = False,
    temperature: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    top_p: Annotated[float | None, Parameter(validator=Number(gt=0, lte=1))] = None,
    seed: int | None = None,
    keep: tuple[Literal["auto", "weights", "qk", "values"], ...] = ("auto",),
    precision: Literal["float32", "float16"] = "float32",
    routers: Annotated[bool, Parameter(negative="")] = False,
    heads: Words = (),
    allow_unfit: Annotated[bool, Parameter(negative="")] = False,
    machine: MachineOptions | None = None,
) -> None:
    """Let a model write on, and keep the record of every step as one .safetensors file, to be shown
    with view.

    Args:
        prompt: The text to go on with; for an encoder-decoder, the source.
        model: Hub name or folder of a model that writes.
        out: Where to write the record; must end in .safetensors.
        target_tokenizer: Hub name or folder of the tokenizer of what is written, where it is
            another one.
        max_new_tokens: How many tokens to write at most.
        sample: Draw tokens at random instead of taking the most probable.
        temperature: Above 1 the draw is more even, below 1 less.
        top_p: Draw from the most probable tokens that together have this probability.
        seed: Of the random numbers, so that the same text comes again.
        keep: What to keep, see headscope capture; may be given several times.
        precision: Of what is kept.
        routers: Keep the router scores of mixture-of-experts layers, too.
        heads: The heads that alone are kept, as layer and head: 12-7 3-0, or cross:3-0 of one
            stack; all by default.
        allow_unfit: Take a model whose head was not trained, or that sees the words after a word,
            all the same.
        machine: Where the model runs.
    """
    check_record_name(out)
    chosen = [parse_head(each) for each in heads]
    check_place(out)
    machine = machine or MachineOptions()
    from headscope.capturing import check_text

    check_text(prompt, "prompt")
    check_model(model, machine.revision)
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import generate as generated
        from headscope.capturing import load_model, load_tokenizer
        from headscope.storage import save

    with status(f"Loading {model}"), quiet():
        loading = machine.loading
        loaded = load_model(model, writes=True, allow_unfit=allow_unfit, **loading)
        target = None
        if target_tokenizer is not None:
            target = load_tokenizer(
                target_tokenizer, trust_remote_code=loading["trust_remote_code"]
            )
    options: dict[str, Any] = {
        "do_sample": sample or None,
        "temperature": temperature,
        "top_p": top_p,
    }
    with status("Generating"), quiet():
        record = generated(
            *loaded,
            prompt,
            target_tokenizer=target,
            max_new_tokens=max_new_tokens,
            seed=seed,
            keep="auto" if keep == ("auto",) else keep,
            precision=precision,
            routers=routers,
            heads=chosen or None,
            allow_unfit=allow_unfit,
            **{name: value for name, value in options.items() if value is not None},
        )
    path = save(record, out)
    if record.generation is not None:
        say(_told(record.generation))
    say_what(record)
    say_checked(record)
    say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e6:.2f} MB)")


def _told(generation: Generation) -> str:
    count = len(generation)
    probability, entropy = (
        sum(numbers) / count for numbers in (generation.probabilities, generation.entropies)
    )
    return (
        f"{generation.text!r}: {count} tokens written ({ENDED[generation.stop]}), of mean "
        f"probability {probability:.2g}, drawn from distributions of mean entropy {entropy:.2g} "
        "nats"
    )
