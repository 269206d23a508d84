"""headscope generate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from headscope.cli._capture import parse_head
from headscope.cli._left_out import left_out
from headscope.cli._page import Words
from headscope.cli._run import (
    MachineOptions,
    check_folder,
    check_model,
    check_record_name,
    check_tokenizer,
    check_writable,
    quiet,
    say,
    say_checked,
    say_what,
    status,
)
from headscope.cli._study import text_or_chat, warnings_as_lines
from headscope.errors import HeadscopeError, TextError

if TYPE_CHECKING:
    from headscope.capturing import Outcome
    from headscope.record import Generation, Record

ENDED = {
    "end": "the model ended the text",
    "length": "reached --max-new-tokens",
    "criterion": "a stopping criterion was met",
}


def generate(
    *prompts: str,
    texts: Path | None = None,
    chat: Path | None = None,
    model: str,
    out: Path,
    target_tokenizer: str | None = None,
    max_new_tokens: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    sample: Annotated[bool, Parameter(negative="")] = False,
    temperature: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    top_p: Annotated[float | None, Parameter(validator=Number(gt=0, lte=1))] = None,
    seed: int | None = None,
    keep: tuple[Literal["auto", "weights", "qk", "values"], ...] = ("auto",),
    precision: Literal["float32", "float16"] = "float32",
    routers: Annotated[bool, Parameter(negative="")] = False,
    keep_heads: Words = (),
    allow_unfit: Annotated[bool, Parameter(negative="")] = False,
    machine: MachineOptions | None = None,
) -> None:
    """Generate text and record attention at every step, as a .safetensors file for headscope view.

    Several prompts run together, --batch-size at a time; each gets a record of its own, with the
    same numbers as alone. Sampling, --routers and encoder-decoders run one prompt at a time.

    Args:
        prompts: The text to continue, or several; for an encoder-decoder, the source.
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the field
            text or prompt, or messages.
        chat: A conversation to read in place of a text: a .json file with a list of messages, each
            with role and content.
        model: Hub name or folder of a generative model.
        out: Write the record to this file (.safetensors); for several prompts or --texts a folder,
            with 1.safetensors, 2.safetensors ...
        target_tokenizer: Hub name or folder of the tokenizer of the target side, if it has its own.
        max_new_tokens: Maximum number of tokens to generate; by default that of the model's own
            generation_config, or 32.
        sample: Sample tokens instead of taking the most probable one.
        temperature: Sampling temperature: above 1 more random, below 1 less.
        top_p: Sample from the most probable tokens that together have this probability.
        seed: Random seed.
        keep: What to store, as in headscope capture; may be given several times.
        precision: Precision of the stored arrays.
        routers: Store the router scores of mixture-of-experts layers, too.
        keep_heads: Heads to store, as layer and head: 12-7 3-0, or cross:3-0 for one stack; by
            default all.
        allow_unfit: Run a model or texts that do not fit the question anyway: an untrained head, a
            model that sees the word it predicts, texts of mostly unknown tokens.
        machine: Where and how the model runs.
    """
    chosen = [parse_head(each) for each in keep_heads]
    given = _prompts_of(prompts, texts, chat)
    in_folder = texts is not None or len(given) > 1
    if in_folder:
        check_folder(out)
    else:
        check_record_name(out)
        check_writable(out)
    machine = machine or MachineOptions()
    check_model(model, machine.revision)
    check_tokenizer(target_tokenizer)
    options: dict[str, Any] = {
        "do_sample": sample or None,
        "temperature": temperature,
        "top_p": top_p,
        "seed": seed,
        "max_new_tokens": max_new_tokens,
        "keep": "auto" if keep == ("auto",) else keep,
        "precision": precision,
        "routers": routers,
        "heads": chosen or None,
        "allow_unfit": allow_unfit,
    }
    # Options that were not given are left out, so that the defaults of `headscope.generate` hold.
    options = {name: value for name, value in options.items() if value is not None}
    left_out.begin("prompt", len(given))
    loaded, target = _loaded(model, target_tokenizer, machine, allow_unfit=allow_unfit)
    with warnings_as_lines("one at a time"):
        records = _records(
            loaded, given, options | machine.read_many() | {"target_tokenizer": target}
        )
        for number, record in records:
            path = out / f"{number}.safetensors" if in_folder else out
            _write(record, path)


def _prompts_of(prompts: tuple[str, ...], texts: Path | None, chat: Path | None) -> list[Outcome]:
    """The prompts from the command line or from a file.

    Raises:
        TextError: where there is no prompt, or both are given.
        FileError: where the file cannot be read.
    """
    from headscope.capturing import parse_prompt, parse_prompts

    if chat is not None:
        return [parse_prompt(text_or_chat(None, chat, prompts, texts))]
    if bool(prompts) == (texts is not None):
        raise TextError("Expected one or more prompts, or a file of them with --texts")
    if texts is None:
        return [parse_prompt(prompt, "prompt") for prompt in prompts]
    given = list(parse_prompts(texts))
    # In a file of many prompts, one that cannot be read is left out; a single one is an error.
    if len(given) == 1 and isinstance(given[0], HeadscopeError):
        raise given[0]
    return given


def _loaded(
    model: str, target_tokenizer: str | None, machine: MachineOptions, *, allow_unfit: bool
) -> tuple[tuple[Any, Any], Any]:
    """Model and tokenizer, and the tokenizer of the target side, where it is another one."""
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import load_model, load_tokenizer

    with status(f"Loading {model}"), quiet():
        loading = machine.loading
        loaded = load_model(model, writes=True, allow_unfit=allow_unfit, **loading)
        if target_tokenizer is None:
            return loaded, None
        trusted = loading["trust_remote_code"]
        return loaded, load_tokenizer(target_tokenizer, trust_remote_code=trusted)


def _records(
    loaded: tuple[Any, Any], given: list[Outcome], options: dict[str, Any]
) -> Iterator[tuple[int, Record]]:
    """The records with the numbers of their prompts, counted from 1."""
    from headscope.capturing import generate as generated
    from headscope.capturing import generate_many

    if len(given) == 1:
        prompt: Any = given[0]
        with status("Generating"), quiet():
            record = generated(*loaded, prompt, **options)
        yield 1, record
        return
    lost: set[int] = set()

    def lose(index: int, error: HeadscopeError) -> None:
        lost.add(index)
        left_out.number(index, error)

    # A prompt that is left out is reported before the record of any later one comes.
    numbers = (number for number in range(len(given)) if number not in lost)
    with quiet():
        for record in generate_many(*loaded, given, on_error=lose, progress=True, **options):
            yield next(numbers) + 1, record


def _write(record: Record, out: Path) -> None:
    from headscope.storage import save

    out.parent.mkdir(parents=True, exist_ok=True)
    save(record, out)
    if record.generation is not None:
        say(_probability_line(record.generation))
    say_what(record)
    say_checked(record)
    say(f"Wrote {out.resolve()} ({out.stat().st_size / 1e6:.2f} MB)")


def _probability_line(generation: Generation) -> str:
    count = len(generation)
    probability, entropy = (
        sum(numbers) / count for numbers in (generation.probabilities, generation.entropies)
    )
    return (
        f"{generation.text!r}: {count} tokens generated ({ENDED[generation.stop]}), mean "
        f"probability {probability:.2g}, mean entropy {entropy:.2g} nats"
    )
