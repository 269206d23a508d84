"""Loading models and tokenizers by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headscope.capturing._demo import PACKAGE, demo_model
from headscope.capturing._reads import check_reads
from headscope.errors import ModelError

HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def load_model(
    name: str | Path | None = None, *, trust_remote_code: bool = False, writes: bool = False
) -> tuple[Any, Any]:
    """A model and its tokenizer, in evaluation mode.

    Args:
        name: hub name or folder; None for the demo model.
        trust_remote_code: whether the model may bring code of its own and run it.
        writes: load it with the head that predicts tokens.

    Raises:
        ModelError: where there is no such model, or it or its tokenizer cannot be loaded.
    """
    name = demo_model() if name is None else name
    model = load_bare_model(name, trust_remote_code=trust_remote_code, writes=writes)
    return model, load_tokenizer(name, trust_remote_code=trust_remote_code)


def load_for(
    name: str | Path | None,
    text: Any = None,
    *,
    image: Any = None,
    sound: Any = None,
    kept: bool = False,
    trust_remote_code: bool | None = None,
) -> tuple[Any, Any]:
    """A model and what it reads with: its tokenizer or, for pictures and sounds, its processor.

    Whether it reads what is given is told before its weights are loaded.

    Args:
        name: hub name or folder; None for the demo model.
        text: a text that it is to read, or None.
        image: pictures, or None.
        sound: a sound, or None.
        kept: load it with the head that it was kept with.
        trust_remote_code: whether the model may bring code of its own and run it.

    Raises:
        ModelError: where there is no such model, or it or its tokenizer or processor cannot be loaded.
        CaptureError: where it does not read what is given.
    """
    from transformers import AutoConfig

    more, trusted = image is not None or sound is not None, bool(trust_remote_code)
    if name is None and more:
        raise ModelError("The demo model reads text; name a model of pictures or sounds (--model)")
    name = demo_model() if name is None else name
    config = _loaded(AutoConfig, name, trusted)
    loader = (kept_class(config) if kept else None) or loader_of(config, writes=kept and not more)
    found = class_of(loader, config)
    if found is not None:
        check_reads(found, text, image=image, sound=sound)
    model = _loaded(loader, name, trusted).eval()
    if not more:
        return model, load_tokenizer(name, trust_remote_code=trusted)
    try:
        return model, load_processor(name, trust_remote_code=trusted)
    except ModelError:
        if text is not None:
            raise
    # a folder of wav2vec 2.0 without a tokenizer has what a sound needs, and yet no whole processor
    return model, load_processor(name, "picture" if image is not None else "sound", trust_remote_code=trusted)


def load_bare_model(name: str | Path, *, trust_remote_code: bool = False, writes: bool = False) -> Any:
    """A model without a tokenizer, in evaluation mode; ``writes`` is for the head that predicts tokens.

    Raises:
        ModelError: where there is none.
    """
    from transformers import AutoConfig

    config = _loaded(AutoConfig, name, trust_remote_code)
    return _loaded(loader_of(config, writes=writes), name, trust_remote_code).eval()


def kept_class(config: Any) -> type | None:
    """The class of transformers that a model was kept as, with its head; None where it has no such class."""
    import transformers

    name = next(iter(getattr(config, "architectures", None) or ()), "")
    found = getattr(transformers, name, None)
    return found if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel) else None


def class_of(loader: Any, config: Any) -> type | None:
    """The class that a loader makes of a configuration; None where that is not known beforehand."""
    classes = getattr(loader, "_model_mapping", None)
    found = loader if classes is None else classes.get(type(config), None)
    return found if isinstance(found, type) else None  # some configurations are of several models


def load_masked_model(name: str | Path | None, *, trust_remote_code: bool = False) -> Any:
    """A model with the head that guesses masked words, in evaluation mode.

    Raises:
        ModelError: where there is none, or it was kept without that head: guesses of an untrained one say nothing.
    """
    from transformers import AutoModelForMaskedLM

    wanted = ("masked-word head", "google-bert/bert-base-uncased")
    return _with_head(AutoModelForMaskedLM, name, trust_remote_code, wanted)


def load_classifier(name: str | Path | None, *, trust_remote_code: bool = False) -> Any:
    """A model that tells the class of a text, in evaluation mode.

    Raises:
        ModelError: where there is none, or it was kept without that head: classes of an untrained one say nothing.
    """
    from transformers import AutoModelForSequenceClassification

    wanted = ("classifier", "distilbert/distilbert-base-uncased-finetuned-sst-2-english")
    return _with_head(AutoModelForSequenceClassification, name, trust_remote_code, wanted)


def loader_of(config: Any, *, writes: bool = False) -> Any:
    """The class of transformers that makes a model of this configuration: with its head where it has a decoder.

    Args:
        config: of the model.
        writes: whether a model without an encoder is to have the head that predicts tokens.
    """
    from transformers import (
        AutoModel,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
        AutoModelForSeq2SeqLM,
        AutoModelForSpeechSeq2Seq,
    )

    if not getattr(config, "is_encoder_decoder", False):
        return AutoModelForCausalLM if writes else AutoModel
    loaders = (AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq, AutoModelForImageTextToText)
    return next((loader for loader in loaders if type(config) in loader._model_mapping), AutoModelForSeq2SeqLM)


def load_tokenizer(name: str | Path, *, trust_remote_code: bool = False) -> Any:
    """A tokenizer by hub name or folder.

    Raises:
        ModelError: where there is none.
    """
    from transformers import AutoTokenizer

    return _loaded(AutoTokenizer, name, trust_remote_code)


def load_processor(name: str | Path, part: str | None = None, *, trust_remote_code: bool = False) -> Any:
    """What prepares pictures, sounds and texts for a model, by hub name or folder.

    Args:
        name: hub name or folder.
        part: ``"picture"`` or ``"sound"`` for the part of it that prepares these; all of it by default.
        trust_remote_code: whether it may bring code of its own and run it.

    Raises:
        ModelError: where there is none.
    """
    from transformers import AutoFeatureExtractor, AutoImageProcessor, AutoProcessor

    loaders = {"picture": AutoImageProcessor, "sound": AutoFeatureExtractor, None: AutoProcessor}
    return _loaded(loaders[part], name, trust_remote_code)


def display_name(model: Any) -> str:
    """Hub name of a model, or the last part of its folder; never a path of this machine."""
    path = Path(str(getattr(getattr(model, "config", None), "_name_or_path", "") or type(model).__name__))
    if PACKAGE in path.parts:
        return "all-MiniLM-L6-v2"
    return path.name if path.is_dir() or path.is_absolute() else str(path)


def _with_head(loader: Any, name: str | Path | None, trust_remote_code: bool, wanted: tuple[str, str]) -> Any:
    """A model none of whose weights are missing; ``wanted`` names its head and a model that has one."""
    name = demo_model() if name is None else name
    found = _loaded(loader, name, trust_remote_code, output_loading_info=True)
    model, missing = found[0], sorted(found[1]["missing_keys"])
    if missing:
        raise ModelError(
            f"{display_name(model)} has no trained {wanted[0]}: its files lack {missing[0]} and "
            f"{len(missing) - 1} more; take a model that was kept with it, such as {wanted[1]}"
        )
    return model.eval()


def _loaded(loader: Any, name: str | Path, trust_remote_code: bool, **options: Any) -> Any:
    if not Path(name).exists() and not HUB_NAME.fullmatch(str(name)):
        raise ModelError(f"There is no folder {str(name)!r}, and a hub name looks like 'google-bert/bert-base-uncased'")
    try:
        return loader.from_pretrained(str(name), trust_remote_code=trust_remote_code, **options)
    except (OSError, ValueError, KeyError, TypeError, ImportError, AttributeError, RuntimeError) as error:
        parts = {"Tokenizer": "tokenizer", "Processor": "processor", "FeatureExtractor": "processor"}
        what = next((what for part, what in parts.items() if part in loader.__name__), "model")
        raise ModelError(
            f"Cannot load the {what} {str(name)!r}: {_first_sentence(error)}; "
            "wanted is a folder made by save_pretrained, or a hub name that can be reached from here"
        ) from error


def _first_sentence(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".:;")
