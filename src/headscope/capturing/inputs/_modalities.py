"""Which kinds of input a model reads, from the arguments of its forward."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.walk import arguments_of, reads_target
from headscope.errors import CaptureError, HeadscopeError

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
    reads, name = (
        set(arguments_of(model)),
        (model if isinstance(model, type) else type(model)).__name__,
    )
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
    no_decoder = f"{type(model).__name__} has no decoder that reads a text of its own"
    for name, is_read, why in (
        ("target", reads_target(model), no_decoder),
        ("target_tokenizer", reads_target(model), no_decoder),
        (
            "sampling_rate",
            given.sound is not None,
            "it is that of a sound, and no sound= was given",
        ),
    ):
        if not is_read and options.get(name) is not None:
            raise CaptureError(f"{name}= does not apply: {why}; leave {name} out")


@contextmanager
def needing(model: Any, arguments: Mapping[str, Any]) -> Generator[None]:
    """Say so where a model that also reads pictures, videos or sounds stops at a text without one.

    Raises:
        CaptureError: in place of what the model raised.
    """
    missing = MEDIA.intersection(arguments_of(model))
    try:
        yield
    except HeadscopeError:
        raise
    except IndexError as error:
        shapes = {n: list(each.shape) for n, each in arguments.items() if hasattr(each, "shape")}
        raise CaptureError(
            f"{type(model).__name__} was given {shapes} and has no row for one of their numbers "
            f"({error}); encode the text with the tokenizer of this model"
        ) from error
    except (RuntimeError, NotImplementedError) as error:
        explained = _weights_error(model, error)
        if explained is None:
            raise
        raise explained from error
    except (AttributeError, TypeError, ValueError) as error:
        # What models say where pixel_values is None, such as that it has no shape, helps nobody.
        if not missing or missing & set(arguments):
            raise
        raise CaptureError(
            f"{type(model).__name__} stopped at a text alone ({str(error).splitlines()[0]}); give "
            f"it {_wanted(set(arguments_of(model)) - {'input_ids'})}, too"
        ) from error


def _weights_error(model: Any, error: BaseException) -> CaptureError | None:
    """What is wrong with the weights of a model that stopped: not there, or of several precisions;
    else None.
    """
    weights = [each for each in model.parameters() if each.is_floating_point()]
    # accelerate keeps weights elsewhere and puts them on the meta device until a module runs.
    offloaded = any(hasattr(module, "_hf_hook") for module in model.modules())
    name = type(model).__name__
    if not offloaded and any(each.is_meta for each in weights):
        return CaptureError(
            f"{name} has weights on the meta device, where there are no numbers; load it with "
            "from_pretrained, or fill them with model.to_empty and load_state_dict"
        )
    kinds = sorted({str(each.dtype).removeprefix("torch.") for each in weights})
    if len(kinds) > 1 and "dtype" in str(error):
        return CaptureError(
            f"{name} has weights in {' and '.join(kinds)} and stopped between them "
            f"({str(error).splitlines()[0]}); bring them to one, such as model.float()"
        )
    return None


def _wanted(reads: set[str]) -> str:
    named = [what for what, names in WANTED.items() if names & reads]
    return " or ".join(named) or "what its forward reads"
