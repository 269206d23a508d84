"""Arguments of a model's forward, encoded from texts, with the tokens they stand for."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import nn

from headscope.capturing.device import device_of
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.inputs.tokens import (
    SpecialTokens,
    joined_tokens,
    tokenized,
    tokens_from_encoding,
    tokens_from_ids,
)
from headscope.capturing.media._pixels import Picture
from headscope.capturing.media.input_positions import InputPositions, UnnamedPositions, origins_of
from headscope.capturing.walk import arguments_of, named_modules_of, reads_target
from headscope.errors import CaptureError, HeadscopeError, TextError
from headscope.record import Tokens

GENERATED_AT_MOST = 64
CUT = "pass truncate=True (--truncate) to keep its beginning"


@dataclass(frozen=True)
class Inputs:
    """Arguments of the model's forward, and the tokens they stand for (one entry for each example).

    Args:
        arguments: of the model's forward.
        source: tokens of each example; empty where there is no text.
        target: tokens of each example that the decoder of an encoder-decoder reads.
        input_positions: which element of pictures, sounds and texts each position comes from.
        sides: where nothing is known of the arguments, tokens for queries or keys of the same
            number.
        pictures: of each example as the model sees them, where that is known.
        numbered: why positions that are no tokens of a text are numbered; empty to refuse them.
        examples: their number if nothing else shows it.
        given: what was parsed of each example, which has the places of its parts; empty where there
            are none.
        as_given: whether the arguments are a call of the user's own, to which nothing is added.
    """

    arguments: dict[str, Any]
    source: tuple[Tokens, ...]
    target: tuple[Tokens, ...] = ()
    input_positions: InputPositions | None = None
    sides: tuple[Tokens, ...] | None = None
    pictures: tuple[tuple[Picture, ...], ...] = ()
    numbered: str = ""
    examples: int | None = None
    given: tuple[ParsedInput, ...] = ()
    as_given: bool = False

    @property
    def count(self) -> int:
        """Number of examples."""
        if self.examples is not None:
            return self.examples
        return len(self.source) if self.input_positions is None else self.input_positions.count


def followed_inputs(
    model: Any,
    arguments: dict[str, torch.Tensor],
    source: tuple[Tokens, ...],
    target: tuple[Tokens, ...] = (),
    *,
    seconds: tuple[float, float] | None = None,
    pictures: tuple[tuple[Picture, ...], ...] = (),
    frame_numbers: tuple[int, ...] = (),
) -> Inputs:
    """Inputs with pictures, videos or sounds, whose positions are followed; numbered where it is
    unknown what they hold.

    Raises:
        CaptureError: where it is unknown which pictures belong to which text.
    """
    try:
        input_positions = origins_of(model, arguments, seconds, frame_numbers)
    except UnnamedPositions as error:
        # The pictures of a packed batch are attended to one by one, and numbers would not tell them
        # apart.
        grids = [given for name, given in arguments.items() if name.endswith("grid_thw")]
        # Column 0 of [time height width] counts the frames of each picture or video.
        if grids and int(grids[0][:, 0].sum()) > 1:
            raise CaptureError(
                f"{error}; give one picture of one frame, whose positions can be numbered"
            ) from None
        # Packed pictures without a text are one example.
        count = len(source) or 1
        return Inputs(arguments, source, target, numbered=str(error), examples=count)
    return Inputs(arguments, source, target, input_positions, pictures=pictures)


def encode(
    model: Any, tokenizer: Any, given: ParsedInput, *, truncate: bool = False, advice: str = CUT
) -> Any:
    """The tokenizer's encoding of a text or a pair, that the model has positions for.

    Args:
        model: that reads it.
        tokenizer: of the model.
        given: a text, or a pair.
        truncate: whether a text that is too long is cut.
        advice: what may be done where it is not.

    Raises:
        TextError: where the tokenizer finds no token, or more than the model has positions for.
    """
    # Not verbose, or the tokenizer warns of texts that are too long, which raises below.
    texts = given.texts
    options = {"padding": False, "verbose": False, "truncation": False}
    own = {"input_ids": list(given.ids or ())}
    encoding = own if given.ids else tokenized(tokenizer, *texts, **options)
    count = len(encoding["input_ids"])
    if not count:
        raise TextError(f"The tokenizer finds no token in {texts[0]!r}; give another text")
    cut = cut_of(model, count, given.cuts) if truncate else {}
    if cut:
        return tokenized(tokenizer, *texts, warns=False, padding=False, **cut)
    check_length(model, count, advice=advice)
    return encoding


def cut_of(model: Any, count: int, cuts: list[int]) -> dict[str, Any]:
    """The arguments with which a tokenizer cuts a text to the model's positions, with a warning;
    none where it fits.

    Args:
        model: that reads the text.
        count: how many tokens it has.
        cuts: see `ParsedInput`.
    """
    limit = position_limit(model)
    if limit is None or count <= limit:
        return {}
    if not cuts:
        warnings.warn(
            f"The text has {count} tokens and the model has positions for {limit}: the rest is cut "
            "off, and so is that of every longer text",
            stacklevel=2,
        )
    cuts.append(count)
    return {"truncation": True, "max_length": limit}


def check_length(model: Any, count: int, what: str = "The text", advice: str = CUT) -> None:
    """Raise where a text has more tokens than the model has positions.

    Raises:
        TextError: with both numbers.
    """
    limit = position_limit(model)
    if limit is not None and count > limit:
        raise TextError(
            f"{what} has {count} tokens and the model has positions for {limit}; shorten it, or "
            f"{advice}"
        )


def position_limit(model: Any) -> int | None:
    """How many tokens the model has positions for; None where it has no such limit."""
    config = getattr(model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    limit = getattr(config, "max_position_embeddings", None)
    for name, each in named_modules_of(model):
        # RoBERTa counts its positions from the padding index on, so that 514 of them hold 512.
        if isinstance(each, nn.Embedding) and "position" in name and each.padding_idx is not None:
            return each.num_embeddings - each.padding_idx - 1
    return limit if isinstance(limit, int) and limit > 0 else None


def with_target(
    model: Any, inputs: dict[str, Any], target: str | None, tokenizer: Any
) -> tuple[dict[str, Any], Tokens]:
    """The arguments of an encoder-decoder with what its decoder reads, and the tokens of that.

    Args:
        model: the encoder-decoder.
        inputs: its source.
        target: the target text; None for what the model itself generates, without sampling.
        tokenizer: of the target side.

    Raises:
        CaptureError: where no target was given and the model cannot generate.
    """
    if target is not None:
        encoding = tokenized(tokenizer, text_target=target, padding=False, truncation=False)
        labels = torch.tensor([encoding["input_ids"]], device=device_of(model))
        check_length(model, labels.shape[1])
        start, read = model.config.decoder_start_token_id, labels
        # What the decoder reads while it is to write the labels: a start token, then the labels but
        # the last, which keep their words and offsets.
        if start is not None:
            read = torch.cat([torch.full_like(labels[:, :1], start), labels[:, :-1]], dim=1)
            written = tokens_from_encoding(tokenizer, encoding, (target,))
            behind = written.take(range(len(written) - 1))
            tokens = joined_tokens(tokens_from_ids(tokenizer, [start]), behind)
            return inputs | {"decoder_input_ids": read}, tokens
    elif hasattr(model, "generate") and model.can_generate():
        longest = min(GENERATED_AT_MOST, position_limit(model) or GENERATED_AT_MOST)
        ours = {"num_return_sequences": 1, "return_dict_in_generate": False, "max_length": longest}
        try:
            read = model.generate(**inputs, use_cache=False, do_sample=False, **ours)
        except ValueError as error:
            if isinstance(error, HeadscopeError):
                raise
            own = ", ".join(
                f"{name}={value!r}"
                for name, value in model.generation_config.to_diff_dict().items()
                if value and not name.startswith(("_", "transformers_")) and name[-3:] != "_id"
            )
            raise CaptureError(
                f"{type(model).__name__} cannot write a target as its generation_config says, "
                f"with {own}; give one with target= ({str(error).strip()})"
            ) from error
        # The decoder writes the end and never reads it.
        if read.shape[1] > 1 and read[0, -1].item() in ends_of(model):
            read = read[:, :-1]
    else:
        raise CaptureError(
            f"{type(model).__name__} cannot generate a target of its own; give one with target="
        )
    return inputs | {"decoder_input_ids": read}, tokens_from_ids(tokenizer, read[0].tolist())


def ends_of(model: Any, arguments: Mapping[str, Any] | None = None) -> tuple[int, ...]:
    """The tokens that end a text, of these arguments of ``generate`` or the model's own."""
    end = (arguments or {}).get("eos_token_id", model.generation_config.eos_token_id)
    if end is None:
        return ()
    return tuple(end) if isinstance(end, Sequence) else (end,)


@dataclass(frozen=True)
class EncodedText:
    """A text that was encoded and waits for its turn.

    Args:
        number: its place among the inputs.
        item: the text.
        encoding: of the text alone, or of several.
        example: which of them it is.
        readable: its place among the inputs that could be read, where these are counted.
    """

    number: int
    item: ParsedInput
    encoding: Any
    example: int = 0
    readable: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def ids(self) -> list[int]:
        """Of its tokens."""
        return self.arguments["input_ids"]

    @cached_property
    def arguments(self) -> dict[str, list[int]]:
        """What the model is given for this text."""
        values = dict(self.encoding)
        if isinstance(values["input_ids"][0], list):
            return {name: each[self.example] for name, each in values.items()}
        return values


def inputs_of_texts(
    model: Any,
    tokenizer: Any,
    texts: Sequence[EncodedText],
    *,
    copies: int = 0,
    specials: SpecialTokens | None = None,
) -> Inputs:
    """Texts side by side, shorter ones with padding behind their end.

    Args:
        model: that is to read them.
        tokenizer: that encoded them.
        texts: all of them.
        copies: of the first, which come last.
        specials: of the tokenizer, where they are known already.
    """
    specials = SpecialTokens.of(tokenizer) if specials is None else specials
    tokens = [
        tokens_from_encoding(
            tokenizer, text.encoding, text.item.texts, text.example, specials=specials
        )
        for text in texts
    ]
    rows = [text.arguments for text in texts]
    given = [text.item for text in texts]
    beside = side_by_side(model, rows + rows[:1] * copies, tokens + tokens[:1] * copies)
    return replace(beside, given=tuple(given + given[:1] * copies))


def side_by_side(
    model: Any,
    rows: Sequence[Mapping[str, list[int]]],
    tokens: Sequence[Tokens],
    *,
    before: int | None = None,
) -> Inputs:
    """Texts side by side, shorter ones with padding on their right, where no model counts positions
    from it.

    Args:
        model: that is to read them.
        rows: what it is given for each text.
        tokens: of each text.
        before: the token that stands on their left instead, where the model is to continue them.
    """
    longest, device = max(len(row["input_ids"]) for row in rows), device_of(model)

    def filled(values: list[int], padding: int = 0) -> list[int]:
        more = [padding] * (longest - len(values))
        return values + more if before is None else more + values

    lists = {name: [filled(row[name]) for row in rows] for name in rows[0]}
    lists["input_ids"] = [filled(row["input_ids"], before or 0) for row in rows]
    lists["attention_mask"] = [filled([1] * len(row["input_ids"])) for row in rows]
    arguments = {name: torch.tensor(each, device=device) for name, each in lists.items()}
    return Inputs(arguments, tuple(tokens))


PICTURES = {"pixel_values"}
VIDEOS = {"pixel_values_videos"}
SOUNDS = {"input_values", "input_features"}
MEDIA = PICTURES | VIDEOS | SOUNDS
WANTED = {
    "a text": {"input_ids"},
    "a picture with image= (--image)": PICTURES,
    "a video with video= (--video)": VIDEOS,
    "a sound with sound= (--sound)": SOUNDS,
}
"""What to give, by the arguments that it becomes."""


def reads_frames(model: Any) -> bool:
    """Whether a model reads videos, which some take under the name of pictures."""
    lengths = ("num_frames", "frames_per_clip", "tubelet_size")
    is_of_videos = any(getattr(model.config, name, None) is not None for name in lengths)
    return bool(VIDEOS.intersection(arguments_of(model))) or is_of_videos


def check_reads(model: Any, given: ParsedInput) -> None:
    """Raise where a model does not read what was given, or reads a text that was not.

    Args:
        model: the model, or its class, so that this is known before it is loaded.
        given: what it is to read.

    Raises:
        CaptureError: naming the model and what it reads.
    """
    reads = set(arguments_of(model))
    name = (model if isinstance(model, type) else type(model)).__name__
    kinds = (
        ("pictures", given.pictures, PICTURES),
        ("videos", given.video, PICTURES | VIDEOS),
        ("sound", given.sound, SOUNDS),
    )
    for what, what_is_given, names in kinds:
        if what_is_given and not names & reads:
            raise CaptureError(f"{name} reads no {what}; give it {_wanted(reads)}")
    why, is_text = "", given.text is not None
    if "input_ids" in reads:
        if given.has_media and not is_text:
            why = "a text too; give one with it, such as 'a photo of a cat'"
    elif given.has_media and is_text:
        why = "no text with it; leave text out"
        # The text of a model that writes one belongs to its decoder and has its own option.
        if "decoder_input_ids" in reads:
            why += ", or pass target= (--target) for what its decoder reads"
    # A model that names none of these arguments may take anything, so nothing is held against it.
    elif is_text and MEDIA & reads:
        why = f"no text; give it {_wanted(reads)}"
    if why:
        raise CaptureError(f"{name} reads {why}")


def check_applies(model: Any, given: ParsedInput, options: Mapping[str, Any]) -> None:
    """Raise where an option is about something that is not read here.

    Raises:
        CaptureError: naming the option, and why it does not apply.
    """
    no_sound = "it is that of a sound, and no sound= was given"
    no_decoder = f"{type(model).__name__} has no decoder that reads a text of its own"
    for name, is_read, why in (
        ("target", reads_target(model), no_decoder),
        ("target_tokenizer", reads_target(model), no_decoder),
        ("sampling_rate", given.sound is not None, no_sound),
    ):
        if not is_read and options.get(name) is not None:
            raise CaptureError(f"{name}= does not apply: {why}; leave {name} out")


@contextmanager
def needing(model: Any, arguments: Mapping[str, Any]) -> Generator[None]:
    """Say so where a model that also reads pictures, videos or sounds stops at a text without one.

    Raises:
        CaptureError: in place of what the model raised.
    """
    try:
        yield
    except HeadscopeError:
        raise
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        explained = _weights_error(model, error) or _input_error(model, arguments, error)
        if explained is None:
            raise
        raise explained from error


def _input_error(model: Any, arguments: Mapping[str, Any], error: Exception) -> CaptureError | None:
    """What is wrong with what a model was given where it stopped; None where that is not known."""
    reads, first = set(arguments_of(model)), str(error).partition("\n")[0]
    shapes = {n: list(each.shape) for n, each in arguments.items() if hasattr(each, "shape")}
    is_run, unread = isinstance(error, RuntimeError), MEDIA & reads
    is_size = isinstance(error, ValueError) or "must match the size of tensor" in first
    reasons = {
        f"was given {shapes} and has no row for one of their numbers ({first}); encode the text "
        "with the tokenizer of this model": isinstance(error, IndexError),
        f"stopped at a text alone ({first}); give it {_wanted(reads - {'input_ids'})}, too": (
            unread and not is_run and unread.isdisjoint(arguments)
        ),
        f"was given {shapes} and cannot read them ({first}); give what the tokenizer or processor "
        "of this model makes": is_size,
    }
    why = [why for why, is_true in reasons.items() if is_true]
    return CaptureError(f"{type(model).__name__} {why[0]}") if why else None


def _weights_error(model: Any, error: Exception) -> CaptureError | None:
    """What is wrong with the weights of a model that stopped, of several precisions; else None."""
    kinds = {each.dtype for each in model.parameters() if each.is_floating_point()}
    names = " and ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
    if len(kinds) < 2 or "dtype" not in str(error):
        return None
    return CaptureError(
        f"{type(model).__name__} has weights in {names} and stopped between them "
        f"({str(error).splitlines()[0]}); bring them to one, such as model.float()"
    )


def _wanted(reads: set[str]) -> str:
    named = [what for what, names in WANTED.items() if names & reads]
    return " or ".join(named) or "what its forward reads"
