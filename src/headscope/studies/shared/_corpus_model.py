"""The model of a run: named, so that every worker loads it by itself, or given to this process."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.corpus import CorpusText, Engine, worker_number
from headscope.errors import HeadscopeError, RecordError, RunError, TextError
from headscope.evidence.groups import group_of, parse_groups, several_groups
from headscope.studies.shared._fold import name_and_code
from headscope.studies.shared._source import LOADING, plain_of, with_copies

if TYPE_CHECKING:
    from headscope.interventions import Intervention

_loading = threading.Lock()
WRITTEN = {"architectures", "dtype", "transformers_version"}
RETURNED = {"output_attentions", "output_hidden_states", "return_dict", "use_cache"}
NOT_SETTINGS = WRITTEN | RETURNED
"""Of a config: how its file was written, and what a call returns, on which no number depends."""


@dataclass(frozen=True)
class NamedModel:
    """A model by name or folder, as every worker loads it.

    Args:
        name: None for the demo model.
        loading: options of `headscope.capturing.LoadOptions`.
        random: whether the same architecture with random weights is meant.
        needs: what it must have: ``"attention"``, whatever head it has, or a head that was trained:
            ``"classifier"``, ``"masked words"``, ``"next words"``, ``"sentences"`` for one of the
            two by its tokenizer, ``"own"`` for the head that it was saved with. With ``"any "``
            before it, trained or not.
        state: of its folder, see `state_of`: a model that was saved anew is loaded anew.
    """

    name: str | None = None
    loading: tuple[tuple[str, Any], ...] = ()
    random: bool = False
    needs: str = "attention"
    state: tuple[Any, ...] = ()

    def load(self) -> tuple[Any, Any]:
        """Model and tokenizer, loaded once in a process."""
        # Threads of one process that begin together would load it several times.
        with _loading:
            return _loaded(self)


@dataclass(frozen=True, eq=False)
class GivenModel:
    """A loaded model and its tokenizer, for runs in this process."""

    model: Any
    tokenizer: Any
    random: bool = False

    def load(self) -> tuple[Any, Any]:
        """Both."""
        from headscope.capturing import random_twin

        return (random_twin(self.model) if self.random else self.model), self.tokenizer


RunModel = NamedModel | GivenModel


def parse_model(
    model: Any, tokenizer: Any, options: dict[str, Any], engine: Engine, *, needs: str = "attention"
) -> RunModel:
    """What a run loads; options of loading are taken out of ``options``.

    Args:
        model: loaded, its name or folder, or None for the demo model.
        tokenizer: of a loaded model.
        options: all that was given.
        engine: what runs the parts.
        needs: what the model must have, see `NamedModel`.

    Raises:
        RunError: where a loaded model would have to go to other processes.
        RecordError: where its tokenizer is missing.
    """
    loading = {name: options.pop(name) for name in LOADING if name in options}
    if model is None or isinstance(model, str | Path):
        if tokenizer is not None:
            raise RunError(
                "A run loads the tokenizer of a named model in every worker; leave tokenizer out, "
                "or give the loaded model with it and no workers"
            )
        name, state = None, ()
        if model is not None:
            # From the root on, since workers may have another working directory.
            name = str(Path(model).absolute() if Path(model).is_dir() else model)
            state = state_of(name)
        return NamedModel(name, tuple(sorted(loading.items())), needs=needs, state=state)
    check_pair(model, tokenizer, loading)
    if not engine.is_own or engine.name != "this process":
        raise RunError(
            f"A loaded {type(model).__name__} cannot go to other processes; give its name or its "
            "folder (model.save_pretrained(folder), tokenizer.save_pretrained(folder)), or leave "
            "workers= and executor= out"
        )
    return GivenModel(model, tokenizer)


def check_pair(model: Any, tokenizer: Any, loading: Mapping[str, Any]) -> None:
    """Raise where a loaded model cannot be run or has no tokenizer, or options of loading."""
    from headscope.capturing import check_not_loaded
    from headscope.capturing.run import unwrapped

    check_not_loaded(model, loading)
    unwrapped(model)
    if tokenizer is None:
        raise RecordError(
            f"The texts need the tokenizer of {type(model).__name__}: (model, tokenizer, texts)"
        )


def state_of(path: str | Path) -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of a file, or of the files in a folder; empty where there is neither.

    What a process read of them holds as long as these are the same.
    """
    here = Path(path)
    files = [at for at in (sorted(here.iterdir()) if here.is_dir() else [here]) if at.is_file()]
    return tuple((at.name, at.stat().st_mtime_ns, at.stat().st_size) for at in files)


@lru_cache(maxsize=1)
def _loaded(model: NamedModel) -> tuple[Any, Any]:
    from transformers.utils import logging

    from headscope.capturing import random_twin

    # Bars of all workers would be written over each other, and over how far the run is.
    shows = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        loading = dict(model.loading) | own_device(dict(model.loading))
        loaded, tokenizer = load_named(replace(model, loading=tuple(loading.items())))
    finally:
        if shows:
            logging.enable_progress_bar()
    return (random_twin(loaded) if model.random else loaded), tokenizer


def load_named(model: NamedModel) -> tuple[Any, Any]:
    """A model with what it needs, and its tokenizer."""
    from headscope.capturing import load_model, load_tokenizer

    loading: dict[str, Any] = dict(model.loading)
    if model.needs == "attention":
        return load_model(model.name, **loading)
    tokenizer = load_tokenizer(model.name, **loading)
    return _with_head(model, tokenizer, loading), tokenizer


def own_device(loading: Mapping[str, Any]) -> dict[str, str]:
    """The GPU that is this worker's, as an option of loading: one worker a GPU, in turn, where
    there are several and the call names none.
    """
    import torch

    if loading.get("device", "auto") != "auto" or "device_map" in loading:
        return {}
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return {"device": f"cuda:{worker_number() % count}"} if count > 1 else {}


def _with_head(model: NamedModel, tokenizer: Any, loading: dict[str, Any]) -> Any:
    from headscope.capturing import load_bare_model, load_for

    unfit, head = model.needs.startswith("any "), model.needs.removeprefix("any ")
    if head == "sentences":
        head = "next words" if tokenizer.mask_token_id is None else "masked words"
    if head == "own":
        return load_for(model.name, kept=True, allow_unfit=unfit, **loading)[0]
    asks = {"classifier": "class", "masked words": "masked word", "next words": "next word"}
    return load_bare_model(model.name, head=asks.get(head, ""), allow_unfit=unfit, **loading)


def facts_of_model(model: Any, tokenizer: Any) -> dict[str, str]:
    """What the numbers of a model depend on beside the texts."""
    from headscope.capturing.facts import facts_of, weights_name

    config = getattr(model, "config", None)
    settings = config.to_dict() if hasattr(config, "to_dict") else {}
    settings = {
        name: settings[name]
        for name in settings
        if not name.startswith("_") and name not in NOT_SETTINGS
    }
    facts = facts_of(model)
    # Workers may have a GPU each, which is none of what the numbers depend on.
    ran = re.sub(r"\bcuda:\d+", "cuda", facts.ran)
    return {
        "weights": weights_name(model, anew=True),
        "config": _digest(settings),
        "tokenizer": _digest(_read_by(getattr(tokenizer, "tokenizer", tokenizer))),
        "runs on": ran,
        "changed by": "; ".join(_changes_of(model)) or "nothing",
        "modules and their numbers": _numbers_of(model),
    } | {name: facts.versions[name] for name in sorted(facts.versions) if name != "headscope"}


def _interventions_on(model: Any) -> Iterator[Intervention]:
    from headscope.capturing.run import unwrapped
    from headscope.capturing.seam import sessions
    from headscope.interventions.session import ModelSession

    for session in sessions():
        if isinstance(session, ModelSession) and session.model is unwrapped(model):
            yield from session.interventions


def changed_name(model: Any) -> str:
    """The name of a model, with the interventions in force."""
    from headscope.capturing.facts import display_name

    name, changes = display_name(model), "; ".join(map(str, _interventions_on(model)))
    return f"{name} (changed: {changes})" if changes else name


def _changes_of(model: Any) -> Iterator[str]:
    """What changes a model beside its weights and its config: interventions and hooks."""
    from torch.nn.modules import module as global_hooks

    for change in _interventions_on(model):
        # Of weights and records that it holds the words say nothing.
        holds = {*vars(change)} - {"layer", "heads", "kv_heads", "queries", "stack"}
        yield f"{change}, {_digest(repr(change))}" if holds else str(change)
    for hook in (
        *global_hooks._global_forward_pre_hooks.values(),
        *global_hooks._global_forward_hooks.values(),
    ):
        yield f"a hook on all modules: {name_and_code(hook)}"
    for name, module in model.named_modules():
        own = vars(module).get("forward"), *module._forward_pre_hooks.values()
        for function in filter(None, (*own, *module._forward_hooks.values())):
            said = name_and_code(getattr(function, "func", function))
            # transformers hooks a model when its hidden states are first asked for.
            if not said.startswith(("headscope.", "transformers.", "accelerate.")):
                yield f"a hook on {name or 'the model'}: {said}"


def _numbers_of(model: Any) -> str:
    """A short name of the modules of a model and of their numbers, such as a scale."""
    numbers: dict[str, Any] = {}
    for name, module in model.named_modules():
        numbers[name] = type(module).__qualname__
        scales = {key: value for key, value in vars(module).items() if isinstance(value, float)}
        numbers |= {f"{name}.{key}": value for key, value in scales.items()}
    return _digest(numbers)


def _read_by(tokenizer: Any) -> dict[str, Any]:
    """What a tokenizer does with a text."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        read = json.loads(backend.to_str())
        # How a text is cut and padded is said in each call, and kept by the tokenizer.
        return {name: read[name] for name in read if name not in ("truncation", "padding")}
    if not hasattr(tokenizer, "get_vocab"):
        return {}
    return {"vocabulary": tokenizer.get_vocab(), "class": type(tokenizer).__name__}


def _digest(given: Any) -> str:
    """A short name of what JSON can hold."""
    written = json.dumps(given, sort_keys=True, default=str)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@contextmanager
def one_thread() -> Generator[None]:
    """One thread of torch: several workers share the machine, and sums are of one order."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def corpus_texts(texts: Any, groups: Iterable[Any] | None) -> Iterator[CorpusText | HeadscopeError]:
    """What a user gives as texts, one by one; errors are inputs that are none.

    Args:
        texts: texts, pairs, rows of a data set, or an iterator of them.
        groups: the document that each is of; None where that is not known.

    Raises:
        RecordError: where no texts were given, or more or fewer groups than texts.
    """
    if texts is None:
        raise RecordError(
            "out, workers and executor are for a run over texts; give (model, tokenizer, texts)"
        )
    return _corpus_texts(texts, groups)


def _corpus_texts(
    texts: Any, groups: Iterable[Any] | None
) -> Iterator[CorpusText | HeadscopeError]:
    from headscope.capturing import groups_in, parse_input, parse_texts, several_of

    groups = groups_in(texts) if groups is None else several_groups(groups)
    texts = several_of(texts)
    if type(texts) in (list, tuple):  # of a stream, the texts that were read are not kept
        given = None if groups is None else tuple(groups)
        parse_groups(given, len(texts))
        # What is of no document is of that of its copies anyhow.
        groups = None if given is None else with_copies(parse_texts(texts), given)
    for given, group in with_groups(texts, groups):
        try:
            parsed = parse_input(given)
        except HeadscopeError as error:
            yield error
            continue
        if parsed.is_text:
            # As it is written to the file of its part, and read from it.
            yield CorpusText(plain_of(parsed), group_of(group))
        else:
            yield TextError(
                "A run over a corpus reads texts and pairs of them, no pictures or sounds"
            )


def with_groups(
    texts: Iterable[Any], groups: Iterable[Any] | None, what: str = "text"
) -> Iterator[tuple[Any, Any]]:
    """Each text with its document; None where there are none.

    Raises:
        RecordError: where there are more or fewer documents than texts.
    """
    rest, count, none = None if groups is None else iter(several_groups(groups)), 0, object()
    for count, given in enumerate(texts, 1):
        group = None if rest is None else next(rest, none)
        if group is none:
            raise RecordError(
                f"{count - 1} groups were given for more {what}s; give one for each {what}"
            )
        yield given, group
    if rest is not None and next(rest, none) is not none:
        raise RecordError(
            f"More groups were given than the {count} {what}s; give one for each {what}"
        )
