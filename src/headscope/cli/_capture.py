"""Commands that run a model on one input, or on many: records, written texts, answers, effects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli import _files as files
from headscope.cli._asked import FIT, INPUT, MODEL, ONE_TEXT, RESULT, RUN, STUDY, Request
from headscope.cli._files import alone_or_all, hs, left_out, load, say, warnings_as_lines
from headscope.cli._signature import hyphenated, made_from
from headscope.errors import FileError, InterventionError, RecordError, RunError, TextError

if TYPE_CHECKING:
    from headscope.capturing import Outcome
    from headscope.record import Record

ENDED = {
    "end": "the model ended the text",
    "length": "reached --max-new-tokens",
    "criterion": "a stopping criterion was met",
}
KEPT = "precision routers"
Parts = Literal[
    "turn", "document", "page", "paragraph", "sentence", "picture", "region", "frame", "time"
]
"""What a prompt can be divided into; spans and expressions are given in Python."""
WRITTEN = "max_new_tokens sample=do_sample temperature top_p seed"
"""How a model writes."""


@made_from(
    "headscope.capturing.options:KeepOptions",
    takes=f"{INPUT} out! texts keep keep_heads rows top {KEPT} {RUN} {MODEL}",
)
def capture(asked: Request, **options: Any) -> None:
    """Capture attention and save the record.

    headscope capture "I went to the store." --out run.safetensors

    headscope capture --texts texts.txt --keep qk --out records

    Args:
        asked: What is read, and the model.
        out: Write the record to this file (.safetensors), or the records of --texts and their
            index, records.jsonl, into this folder; the same command resumes after what is there.
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text and text_b.
        routers: Store the router scores of mixture-of-experts layers, too.
        **options: Of `headscope.capture`.
    """
    options |= asked.kept
    hs.capturing.parse_keep(**options)
    if asked.texts is None:
        if asked.is_run:
            raise RunError("--workers, --dask and --part-size are for many texts: give --texts")
        files.check_file("--out", asked.out, (files.RECORD,))
        files.say_what(asked.captured(asked.parsed(), asked.out, **options))
        files.say_written(asked.place)
        return
    text = files.text_or_chat(asked.text, asked.chat, asked.text_b, asked.texts)
    beside: dict[str, Any] = {"--target": asked.target, "a text": text}
    beside |= {"--target-tokenizer": asked.target_tokenizer, "a picture or sound": asked.media}
    files.check_absent(beside, "Expected --texts alone, got {} with it; leave one out")
    files.check_folder(asked.place)
    given = alone_or_all(hs.capturing.parse_texts(asked.texts), file=asked.texts)
    with asked.reading() as (source, how):
        options["max_unknown"] = 1.0 if how.pop("allow_unfit") else hs.capturing.MOST_UNKNOWN
        records = hs.capturing.capture_many(*source, given, progress=True, **options, **how)
    say(f"Wrote {len(records):,} records to {asked.place.resolve()}")


@made_from(
    "headscope.capturing.options:KeepOptions",
    takes=f"texts chat model! out! target_tokenizer keep keep_heads {WRITTEN} {KEPT} {FIT}",
)
def generate(*prompts: str, asked: Request, **options: Any) -> None:
    """Generate text and record the attention that led to every token.

    headscope generate "Once upon a time" --model path/to/a/llama --out story.safetensors

    headscope generate --texts prompts.txt --model path/to/a/llama --out stories

    Args:
        prompts: The text to continue, or several; for an encoder-decoder, the source.
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the field
            text or prompt, or messages.
        asked: Files of prompts, model, and where it is written.
        model: Hub name or folder of a generative model.
        out: Write the record to this file (.safetensors); for several prompts or --texts a folder,
            with 1.safetensors, 2.safetensors ...
        routers: Store the router scores of mixture-of-experts layers, too.
        **options: Of `headscope.generate`.
    """
    options |= asked.kept | asked.many
    in_folder = asked.texts is not None or len(prompts) > 1
    given = _prompts_of(prompts, asked)
    if in_folder:
        files.check_folder(asked.place)
    else:
        files.check_file("--out", asked.out, (files.RECORD,))
    asked.check_model()
    loaded = load("load_model", asked.model, writes=True, **asked.fitting)
    if asked.target_tokenizer is not None:
        options["target_tokenizer"] = asked.tokenizer_of_target()
    options["on_error"], numbers = left_out.losing(len(given))
    options["progress"] = len(given) > 1
    # A prompt that is left out is reported before the record of any later one comes.
    with warnings_as_lines("one at a time"), files.quiet():
        for record in hs.capturing.generate_many(*loaded, given, **options):
            number = next(numbers)
            _write(record, asked.place / f"{number}.safetensors" if in_folder else asked.place)


def _prompts_of(prompts: tuple[str, ...], asked: Request) -> list[Outcome]:
    """The prompts from the command line or from a file.

    Raises:
        TextError: where there is no prompt, or both are given.
        FileError: where the file cannot be read.
    """
    texts = asked.texts
    if asked.chat is not None:
        prompts = (files.text_or_chat(None, asked.chat, prompts, texts),)
    elif bool(prompts) == (texts is not None):
        raise TextError("Expected one or more prompts, or a file of them with --texts")
    if texts is not None:
        return alone_or_all(hs.capturing.parse_prompts(texts), "prompt", texts)
    return alone_or_all([hs.capturing.parse_prompt(each, "prompt") for each in prompts], "prompt")


def _write(record: Record, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    hs.storage.save(record, out)
    written = record.generation
    if written is not None:
        count = len(written)
        say(
            f"{written.text!r}: {count} tokens generated ({ENDED[written.stop]}), mean probability "
            f"{sum(written.probabilities) / count:.2g}, mean entropy "
            f"{sum(written.entropies) / count:.2g} nats"
        )
    files.say_what(record)
    files.say_written(out)


@made_from(takes=f"image video model at {RESULT} {WRITTEN} {FIT}")
def ask(
    messages: Path | None = None,
    /,
    *,
    asked: Request,
    documents: tuple[Path, ...] = (),
    question: str | None = None,
    answer: str | None = None,
    parts: Parts | None = None,
    of: str | None = None,
    need: Literal["cut", "direct", "delete", "replace", "none"] = "cut",
    quantity: Literal["weight", "norm", "alti"] = "weight",
    layers: tuple[int, ...] = (),
    heads: tuple[int, ...] = (),
    keep_sinks: bool = False,
    relative: bool = False,
    **options: Any,
) -> None:
    """Ask a model, and see which parts of the prompt its answer looked at and needed.

    headscope ask chat.json --model path/to/a/llama --parts sentence --out answer.html

    headscope ask --documents a.txt b.txt --question "Which code opens the mill?"

    headscope ask --question "What is this?" --image cat.png --model path/to/a/llava

    Args:
        messages: A conversation: a .json file with a list of messages, each with role (also
            document) and content.
        documents: Files of text that the question, or the last one of the conversation, is about.
        question: What is asked about documents, pictures or a video.
        model: Hub name or folder; by default a small model that answers from documents.
        answer: The answer, a text that is read as one; by default the model writes it.
        parts: What the prompt is divided into, such as sentence, paragraph, page or frame; by
            default documents, turns or pictures.
        of: Kind of the parts that are compared and cut.
        need: How a part is cut off: from all that is behind it, directly from the answer, with its
            tokens deleted or replaced by the same in random order, or none.
        quantity: What is looked at: attention weights, norms of contributions, or ALTI.
        layers: Layers that the mean is over; by default all.
        heads: Heads that the mean is over, in each of the layers; by default all.
        at: Layer and heads, such as 2-0, 2-0,3,5, or 2 for all heads of layer 2; several for single
            heads of several layers, instead of --layers and --heads.
        keep_sinks: Keep patches in heat that get outsized attention from most of the text.
        relative: With --plot of a picture: draw the difference to the mean over all words.
        asked: Pictures, model, and where the result is written.
        **options: Of `headscope.answer`.
    """
    asked.check()
    if asked.at and (heads or layers):
        raise RecordError("--at names layers and heads; remove --layers and --heads")
    prompt = _prompt_of(messages, documents, question)
    given = hs.capturing.parse_call(prompt, None, asked.media).in_memory()
    options |= {"answer": answer, "parts": parts, "of": of, "quantity": quantity, "progress": True}
    options |= {"need": None if need == "none" else need, "keep_sinks": keep_sinks}
    options |= {"layers": list(layers) or None, "heads": list(heads) or None} | _chosen(asked.at)
    asked.check_model()
    name = hs.answering.DEMO if asked.model is None and not given.has_media else asked.model
    loaded = load("load_for", name, given, writes=True, **asked.fitting)
    with files.status("Answering"), files.quiet():
        result = hs.answering.answer(*loaded, given, allow_unfit=asked.allow_unfit, **options)
    asked.tell(result, **({"relative": True} if relative else {}))


def _prompt_of(messages: Path | None, documents: tuple[Path, ...], question: str | None) -> Any:
    """The conversation or question, with the documents that it is about.

    Raises:
        TextError: where both are given, or neither.
        FileError: where a file cannot be read.
    """
    if (messages is None) == (question is None):
        raise TextError("Expected a file of messages that ends with the question, or --question")
    asked = question if messages is None else files.messages_of(messages, "MESSAGES")
    if not documents:
        return asked
    return {"documents": [_text_of(each) for each in documents], "question": asked}


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"Cannot read the document {file}: {error}") from None


def _chosen(at: tuple[str, ...]) -> dict[str, Any]:
    """The heads that the mean is over, as `headscope.answer` takes them."""
    places = files.parse_places(at, "--at")
    # An entry without heads means a whole layer.
    if not any(own for _, own in places):
        return {"layers": [layer for layer, _ in places]} if places else {}
    if not all(own for _, own in places):
        raise RecordError("--at names whole layers and single heads; give either of them")
    return {"heads": [(layer, head) for layer, own in places for head in own]}


@made_from(takes=f"{ONE_TEXT} {RESULT} {MODEL}")
def why(
    asked: Request, *, answer: str | None = None, instead: str | None = None, position: int = -1
) -> None:
    """Follow a predicted token back through layers and heads to the words it came from.

    headscope why "Once upon a time, there was a girl named" --model path/to/a/llama

    headscope why "The capital of France is" --model path/to/a/llama --answer Paris --out why.html

    Args:
        asked: What is read, and the model; by default a small one that answers from documents.
        answer: The answer, one token that is explained; by default the likeliest.
        instead: The token that it is compared with; by default the likeliest other one.
        position: Place of the token whose row predicts the answer; by default that of the mask, or
            the last one.
    """
    asked.check()
    given = asked.parsed()
    asked.check_model()
    name = hs.answering.DEMO if asked.model is None and not given.has_media else asked.model
    loaded = load("load_for", name, given, kept=True, **asked.fitting)
    options: dict[str, Any] = {"instead": instead, "position": position, "progress": True}
    options |= {"allow_unfit": asked.allow_unfit, "truncate": asked.truncate}
    with files.status("Following the answer"), files.quiet():
        result = hs.why.why(*loaded, given, answer, **options)
    asked.tell(result)


HEADS = dict.fromkeys(("next-word", "repeats", "translation"), "next word")
HEADS |= {"masked-word": "masked word", "classification": "class"}
"""The head that a model needs for a task, where it needs one."""


@made_from("headscope.studies:effect", takes=f"{INPUT} {RESULT} {MODEL} stack")
def effect(
    asked: Request,
    *,
    zero: tuple[str, ...] = (),
    uniform: tuple[str, ...] = (),
    control: tuple[str, ...] = (),
    **options: Any,
) -> None:
    """Measure what disabling heads changes.

    headscope effect "The rabbit hopped." --zero 1-8

    headscope effect "The rabbit hopped." --uniform 2-0,3 --control 2-1 2-2 --out effect.html

    Args:
        asked: What is read, and the model, loaded with the head that was saved with it.
        zero: Heads whose output is set to zero: layer and heads, such as 2-0, 2-0,3,5, or 2 for all
            heads of layer 2.
        uniform: Heads that attend uniformly; written as for --zero.
        control: Heads that are disabled in the same way, one after the other, to show what any such
            change does; written as for --zero.
        out: Write the table of the result to this file (.csv, .json or .parquet), or its page
            (.html), besides printing it.
        **options: The stack.
    """
    asked.check()
    zeroed, evened, controls = (files.parse_places(each) for each in (zero, uniform, control))
    if not zero and not uniform:
        raise InterventionError("Expected heads to disable, such as --zero 2-0 or --uniform 2-0")
    given = asked.parsed()
    asked.check_model()
    reads: dict[str, Any] = asked.fitting | {"truncate": asked.truncate}
    if asked.target_tokenizer:
        reads["target_tokenizer"] = asked.tokenizer_of_target()

    def changes(kind: str, places: list[tuple[int, list[int]]]) -> list[Any]:
        change = getattr(hs.interventions, kind)
        return [change(layer=layer, heads=heads or None, **options) for layer, heads in places]

    with files.status("Running the model"), files.quiet():
        reads["interventions"] = [*changes("Zero", zeroed), *changes("Uniform", evened)]
        # Controls change other heads in the same way as the heads in question.
        reads["controls"] = [[each] for each in changes("Zero" if zero else "Uniform", controls)]
        result = hs.studies.effect(asked.model, None, given, **reads)
    facts = result.comparison.a.model
    files.ran.set(f"{facts.name} ran on {facts.ran}")
    asked.tell(result)


@made_from(
    "headscope.studies:ablate",
    takes=f"{STUDY} +single_heads=heads +whole_layers=layers +share stack screen "
    "screen_top=top confidence alpha correction random_weights",
)
def ablate(
    asked: Request,
    *,
    task: Annotated[str, Parameter(converter=hyphenated)],
    data: Path | None = None,
    by: Annotated[
        Literal["zero", "uniform", "mean-attention", "mean-output", "mean"],
        Parameter(converter=hyphenated),
    ] = "zero",
    limit: int | None = None,
    masked: Annotated[bool | None, Parameter(negative="--causal")] = None,
    **options: Any,
) -> None:
    """Measure how much each head matters for a task.

    headscope ablate --task next-word --data texts.txt --model path/to/a/gpt2

    headscope ablate --task likeness --data pairs.jsonl --no-whole-layers --plot heads.svg

    Args:
        asked: The model, and where the result is written.
        task: Name of the task: next-word, masked-word (texts), classification (texts or pairs with
            a label), likeness (similarity of pairs with a label or score; by embeddings),
            minimal-pairs (sentence_good, sentence_bad), translation (source, target; summaries
            too), repeats (repeated random tokens), or file.py:function, which is called with model
            and tokenizer, and of a run in parts with a list of one example, too.
        data: Annotated data: a file of examples: .jsonl, .csv, .tsv, .parquet, or .txt with one
            text per line. Fields are named as in GLUE, BLiMP or our own files: text, text_b, label;
            sentence1, sentence2; premise, hypothesis ... The field group names the document of an
            example, so that intervals and tests are over documents.
        by: What replaces what is disabled: zeros (zero; Michel et al. 2019), uniform attention
            (uniform; Kovaleva et al. 2019), a head's mean attention over the examples by position
            (mean-attention), or its mean output over examples and tokens, the usual mean ablation
            (mean-output).
        single_heads: Disable each head on its own.
        whole_layers: Disable each layer as a whole.
        limit: Maximum number of examples to read.
        share: Compute the layers below the disabled one only once.
        masked: For minimal pairs: whether the model predicts masked words (--masked) or the next
            word (--causal).
        stack: Attention stack of the model, such as decoder or cross; by default all.
        **options: Of `headscope.ablate`.
    """
    if data is not None and not data.is_file():
        raise FileError(f"{data} does not exist")
    if ":" not in task:
        # Mistakes in the task's name or file show now, before PyTorch is imported.
        hs.tasks.check_task(task, data)
        if data is not None:
            hs.storage.read_rows(data)
    asked.check_model()
    left_out.begin("example", file=data)
    options["by"] = by.replace("-", " ")
    if not asked.in_parts:
        network, made = _whole_task(task, asked, data, limit=limit, masked=masked)
        options |= {"allow_unfit": asked.allow_unfit, "on_error": left_out.losing(0)[0]}
        result = hs.studies.ablate(network, made, progress=True, **options)
    else:
        rows = _rows_of(task, data, limit)
        left_out.of = len(rows)
        with asked.reading() as (source, how):
            how.pop("batch_size", None)
            result = hs.studies.ablate(source[0], task, masked=masked, texts=rows, **how, **options)
    asked.tell(result)


def _rows_of(task: str, data: Path | None, limit: int | None) -> list[Any]:
    """The examples of a run in parts."""
    if task == "repeats":
        return hs.tasks.repeated_runs(*([limit] if limit else []))
    if data is None:
        raise RunError("A run in parts needs a file of examples; give --data")
    return hs.storage.read_rows(data)[:limit]


def _whole_task(
    task: str, asked: Request, data: Path | None, *, limit: int | None, masked: bool | None
) -> tuple[Any, Any]:
    """The model, and the task on all examples, held in this process."""
    network, tokenizer = _with_head(task, asked, masked=masked)
    # A function of the user's own gets model and tokenizer only.
    reads: dict[str, Any] = {"batch": asked.batch_size or 16} if ":" not in task else {}
    if task == "minimal-pairs":
        reads["masked"] = masked
    if task == "translation":
        reads["target_tokenizer"] = asked.tokenizer_of_target()
    if task in hs.tasks.NAMES and task != "repeats":
        reads |= {"truncate": asked.truncate, "allow_unfit": asked.allow_unfit}
        reads["on_error"] = left_out.losing(0)[0]
    made = hs.tasks.named_task(task, network, tokenizer, data, limit=limit, **reads)
    left_out.of = len(made.order or ()) + len(made.left_out)
    return network, made


def _with_head(task: str, asked: Request, *, masked: bool | None) -> tuple[Any, Any]:
    """The model with the head that the task needs, and its tokenizer."""
    tokenizer = load("load_tokenizer", asked.model, **asked.loading)
    # Where the user does not say, a tokenizer with a mask token means a masked model.
    is_masked = tokenizer.mask_token_id is not None if masked is None else masked
    pairs = "masked word" if is_masked else "next word"
    head = (HEADS | {"minimal-pairs": pairs}).get(task, "")
    return load("load_bare_model", asked.model, head=head, **asked.fitting), tokenizer
