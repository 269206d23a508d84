"""Commands that run a model on one input, or on many: records, written texts, answers, effects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from headscope.cli import _files as files
from headscope.cli import _run as run
from headscope.cli._files import Results, RunResults
from headscope.cli._run import Count, FitOptions, Input, Media, left_out, load, say
from headscope.cli._signature import made_from
from headscope.cli._study import CorpusOptions, Study, alone_or_all, warnings_as_lines
from headscope.errors import FileError, RecordError, RunError, TextError

if TYPE_CHECKING:
    from headscope.capturing import Outcome
    from headscope.record import Record

ENDED = {
    "end": "the model ended the text",
    "length": "reached --max-new-tokens",
    "criterion": "a stopping criterion was met",
}
KEPT = "precision routers"
SINGLY = Parameter(consume_multiple=False)
KeepName = Literal["auto", "weights", "qk", "values", "before", "statistics", "norms", "alti"]


@made_from("headscope.capturing.options:KeepOptions", takes=f"{KEPT} rows top")
def capture(
    asked: Input,
    *,
    out: Path,
    texts: Path | None = None,
    keep: Annotated[tuple[KeepName, ...], SINGLY] = ("auto",),
    keep_heads: tuple[str, ...] = (),
    corpus: CorpusOptions = CorpusOptions(),
    **options: Any,
) -> None:
    """Capture attention and save the record.

    headscope capture "I went to the store." --out run.safetensors

    headscope capture --texts texts.txt --keep qk --out records

    Args:
        asked: What is read, and the model.
        out: Write the record to this file (.safetensors), or the records of --texts and their
            index, records.jsonl, into this folder; the same command resumes after what is there.
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text and text_b.
        keep: What to store; may be given several times. weights; qk for queries and keys, from
            which weights follow exactly; values; before for queries and keys before positions are
            applied; statistics for numbers about every row without the row; norms for the norms of
            contributions. auto stores queries, keys and values, and weights as long as these stay
            below 256 MiB.
        keep_heads: Heads to store, as layer and head: 12-7 3-0, or cross:3-0 for one stack; by
            default all.
        corpus: Who captures the texts of --texts.
        routers: Store the router scores of mixture-of-experts layers, too.
        **options: Of `headscope.capture`.
    """
    from headscope.capturing import parse_keep

    options |= {
        "keep": "auto" if keep == ("auto",) else keep,
        "heads": files.parse_heads(keep_heads),
    }
    parse_keep(**options)
    text, model = asked.written(texts), asked.model
    if texts is not None:
        beside: dict[str, Any] = {"--target": model.target}
        beside |= {"--target-tokenizer": model.target_tokenizer, "a text": text}
        beside |= {"a picture or sound": asked.media.given}
        files.check_absent(beside, "Expected --texts alone, got {} with it; leave one out")
        if not files.is_folder(out):
            raise FileError(
                f"Expected a folder for --out with --texts, got {out}; leave the suffix out"
            )
        _capture_file(texts, Study(RunResults(out), corpus, model), options)
        return
    if corpus != CorpusOptions():
        raise RunError(
            "--workers, --dask and --part-size are for the texts of a file: give --texts"
        )
    files.check_suffix("--out", out, (files.RECORD,))
    run.say_what(run.captured(asked.parsed(), model, out, **options))
    run.say_written(out)


def _capture_file(texts: Path, asked: Study, options: dict[str, Any]) -> None:
    """The records of the texts of a file to a folder."""
    from headscope.capturing import parse_texts

    given = alone_or_all(parse_texts(texts))
    with asked.reading(given) as (source, how):
        from headscope.capturing import MOST_UNKNOWN, capture_many

        options |= {"max_unknown": 1.0 if how.pop("allow_unfit") else MOST_UNKNOWN}
        records: Any = capture_many(*source, given, progress=True, **how, **options)
    say(f"Wrote {len(records):,} records to {how['out'].resolve()}")


@Parameter(name="*")
@dataclass(frozen=True)
class Writing:
    """How a model writes."""

    max_new_tokens: Count = None
    """Maximum number of tokens to generate; by default that of the model's own generation_config,
    or 32.
    """
    sample: bool = False
    """Sample tokens instead of taking the most probable one."""
    temperature: Annotated[float | None, Parameter(validator=Number(gt=0))] = None
    """Sampling temperature: above 1 more random, below 1 less."""
    top_p: Annotated[float | None, Parameter(validator=Number(gt=0, lte=1))] = None
    """Sample from the most probable tokens that together have this probability."""
    seed: int | None = None
    """Random seed."""

    @property
    def options(self) -> dict[str, Any]:
        """Those that were given, so that the defaults of the model hold."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return given | ({"do_sample": True} if given.pop("sample") else {})


@made_from("headscope.capturing.options:KeepOptions", takes=KEPT)
def generate(
    *prompts: str,
    texts: Path | None = None,
    chat: Path | None = None,
    model: str,
    out: Path,
    target_tokenizer: str | None = None,
    writing: Writing = Writing(),
    keep: Annotated[tuple[Literal["auto", "weights", "qk", "values"], ...], SINGLY] = ("auto",),
    keep_heads: tuple[str, ...] = (),
    machine: FitOptions = FitOptions(),
    **options: Any,
) -> None:
    """Generate text and record the attention that led to every token.

    headscope generate "Once upon a time" --model path/to/a/llama --out story.safetensors

    headscope generate --texts prompts.txt --model path/to/a/llama --out stories

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
        writing: How tokens are chosen.
        keep: What to store, as in headscope capture; may be given several times.
        keep_heads: Heads to store, as layer and head: 12-7 3-0, or cross:3-0 for one stack; by
            default all.
        machine: Where and how the model runs.
        routers: Store the router scores of mixture-of-experts layers, too.
        **options: Of `headscope.generate`.
    """
    options |= {"heads": files.parse_heads(keep_heads)}
    given = _prompts_of(prompts, texts, chat)
    in_folder = texts is not None or len(given) > 1
    if in_folder:
        files.check_folder(out)
    else:
        files.check_suffix("--out", out, (files.RECORD,))
    run.check_model(model, machine.revision)
    run.check_model(target_tokenizer)
    options |= writing.options | {"keep": "auto" if keep == ("auto",) else keep}
    options |= machine.read_many() | {"allow_unfit": machine.allow_unfit}
    left_out.begin("prompt", len(given))
    loaded = load("load_model", model, writes=True, **machine.fitting)
    if target_tokenizer is not None:
        trusted = machine.trust_remote_code
        tokenizer = load("load_tokenizer", target_tokenizer, trust_remote_code=trusted)
        options["target_tokenizer"] = tokenizer
    from headscope.capturing import generate_many

    lost: dict[int, Any] = {}
    several = len(given) > 1
    options |= {"on_error": left_out.losing(lost, alone=not several), "progress": several}
    # A prompt that is left out is reported before the record of any later one comes.
    numbers = (number for number in range(len(given)) if number not in lost)
    with warnings_as_lines("one at a time"), run.quiet():
        for record in generate_many(*loaded, given, **options):
            number = next(numbers) + 1
            _write(record, out / f"{number}.safetensors" if in_folder else out)


def _prompts_of(prompts: tuple[str, ...], texts: Path | None, chat: Path | None) -> list[Outcome]:
    """The prompts from the command line or from a file.

    Raises:
        TextError: where there is no prompt, or both are given.
        FileError: where the file cannot be read.
    """
    from headscope.capturing import parse_prompt, parse_prompts

    if chat is not None:
        return [parse_prompt(run.text_or_chat(None, chat, prompts, texts))]
    if bool(prompts) == (texts is not None):
        raise TextError("Expected one or more prompts, or a file of them with --texts")
    if texts is None:
        return [parse_prompt(prompt, "prompt") for prompt in prompts]
    return alone_or_all(parse_prompts(texts))


def _write(record: Record, out: Path) -> None:
    from headscope.storage import save

    out.parent.mkdir(parents=True, exist_ok=True)
    save(record, out)
    written = record.generation
    if written is not None:
        count = len(written)
        say(
            f"{written.text!r}: {count} tokens generated ({ENDED[written.stop]}), mean probability "
            f"{sum(written.probabilities) / count:.2g}, mean entropy "
            f"{sum(written.entropies) / count:.2g} nats"
        )
    run.say_what(record)
    run.say_written(out)


@made_from("headscope.studies:answer", takes="layers keep_sinks")
def answer(
    question: str,
    /,
    *,
    image: Annotated[tuple[Path, ...], SINGLY],
    model: str,
    heads: tuple[int, ...] = (),
    at: tuple[str, ...] = (),
    relative: bool = False,
    results: Results = Results(),
    writing: Writing = Writing(),
    machine: FitOptions = FitOptions(),
    **options: Any,
) -> None:
    """Ask about a picture, and see which patches each word of the answer attends to.

    headscope answer "What is this?" --image cat.png --model path/to/a/llava --out answer.html

    headscope answer "How many?" --image a.png --model path/to/a/llava --at 12 --plot answer.svg

    Args:
        question: What is asked; it is put into the chat template of the model.
        image: A picture; give it several times if the text has a place for each.
        model: Hub name or folder of a vision-language model.
        layers: Layers that the mean is over; by default all.
        heads: Heads that the mean is over, in each of the layers; by default all.
        at: Layer and heads, such as 2-0, 2-0,3,5, or 2 for all heads of layer 2; several for single
            heads of several layers, instead of --layers and --heads.
        relative: With --plot: draw the difference to the mean over all words of the answer.
        results: Where the result is written.
        writing: How tokens are chosen.
        machine: Where and how the model runs.
        **options: Of `headscope.answer`.
    """
    results.check()
    if at and (heads or "layers" in options):
        raise RecordError("--at names layers and heads; remove --layers and --heads")
    options |= {"heads": list(heads)} if heads else {}
    options |= _chosen(at) | writing.options | {"allow_unfit": machine.allow_unfit}
    given = Media(image).parsed(question, None)
    run.check_model(model, machine.revision)
    loaded = load("load_for", model, given, writes=True, **machine.fitting)
    with run.status("Answering"), run.quiet():
        from headscope.studies import answer as answer_of

        result = answer_of(*loaded, None, given, **options)
    say(str(result))
    run.say_where()
    if result.record is not None and result.record.verification:
        say(result.record.verification)
    results.write(result, **({"relative": True} if relative else {}))


def _chosen(at: tuple[str, ...]) -> dict[str, Any]:
    """The heads that the mean is over, as `headscope.answer` takes them."""
    places = files.parse_places(at, "--at")
    # An entry without heads means a whole layer.
    if not any(own for _, own in places):
        return {"layers": [layer for layer, _ in places]} if places else {}
    if not all(own for _, own in places):
        raise RecordError("--at names whole layers and single heads; give either of them")
    return {"heads": [(layer, head) for layer, own in places for head in own]}
