"""What each token added, from the path of an attention's output; checked against the model's own
vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from headscope.capturing.building._real_tokens import RealTokens
from headscope.capturing.contributions._residual_path import NormUse, ResidualPath
from headscope.capturing.contributions._texts_of_path import ALL, OF_STREAM, Missing, TextsOfPath
from headscope.capturing.device import allowed_apart
from headscope.norms import (
    Block,
    BlockArrays,
    BlockStack,
    Kinds,
    Norm,
    alti,
    attention_norms,
    attention_vectors,
    globenc_norms,
    mixing,
    output_norms,
    output_vectors,
    own_norms,
    residual_norms,
    residual_vectors,
    shape_of,
    value_norms,
)
from headscope.record import CONTRIBUTIONS, Contributions

SUMS_WITHIN = 1e-5
"""How far the sum of the pieces may be from the model's own vector in float32, relative to its
largest value (or 1).
"""
OF_NORM = ("output", "alti", "globenc")
OUTPUT, STREAM = "attention's output", "residual stream"
NORMED, NORMED_AGAIN = "norm's output", "second norm's output"
HANG_ON: dict[str, tuple[str, ...]] = {
    OUTPUT: ALL,
    STREAM: OF_STREAM,
    NORMED: OF_NORM,
    NORMED_AGAIN: ("globenc",),
}
"""Each vector of the model that pieces sum to, and the kinds that hang on it."""


def refused(reason: str, kinds: Iterable[str] = ALL) -> Contributions:
    """Contributions of which every kind is missing, for this reason."""
    return Contributions(missing=dict.fromkeys(kinds, reason))


def write_contributions(members: Sequence[TextsOfPath]) -> None:
    """Write value norms ``[head key]`` and contributions into the layers of all texts; kinds that
    cannot be proved are missing.
    """
    alike: dict[tuple, list[TextsOfPath]] = {}
    for member in members:
        if member.block is None:
            for text in member.texts:
                layer = member.path.layers[text.example]
                layer["value_norms"] = None
                layer["contributions"] = Contributions(missing=dict(member.missing))
        else:
            key = (shape_of(member.block), member.block.products is None, tuple(member.missing))
            alike.setdefault(key, []).append(member)
    for stacked in alike.values():
        _write(stacked)


def _write(members: list[TextsOfPath]) -> None:
    """As `write_contributions`, for texts that one set of operations is enough for."""
    blocks = [member.block for member in members if member.block is not None]
    whole = blocks[0] if len(blocks) == 1 else BlockStack.of(blocks)
    if "attention" not in members[0].missing:
        whole.measure(_measured_kinds(whole, members[0].missing))
    unproved, worst = _unproved(members, _checked_sums(members, whole))
    wanted = {kind for missing in unproved.values() for kind in ALL if kind not in missing}
    if "attention" not in wanted:
        arrays, lengths = {}, None
    else:
        arrays, lengths = _arrays(whole, wanted), value_norms(whole)
    is_stack = isinstance(whole, BlockStack)
    for (number, index), missing in unproved.items():
        member, at = members[number], (number, index) if is_stack else (index,)
        text = member.texts[index]
        layer = member.path.layers[text.example]
        if "attention" in missing or lengths is None:
            layer["value_norms"], layer["contributions"] = None, Contributions(missing=missing)
            continue
        own = {name: _real(array[at], CONTRIBUTIONS[name], text) for name, array in arrays.items()}
        if "alti" not in missing:
            own["alti"] = alti(_real_block(whole.one(at, ())[0], text).in_double)
        layer["value_norms"] = _stored(_real(lengths[at], "head key", text))
        layer["contributions"] = _contributions(member, own, missing, worst=worst[number, index])


def _real(array: np.ndarray, axes: str, text: RealTokens) -> np.ndarray:
    """What of an array is of the text's own tokens, and not filled up."""
    sizes = {"query": len(text.queries), "key": len(text.keys)}
    return array[tuple(slice(sizes.get(axis)) for axis in axes.split())]


def _real_block(block: Block, text: RealTokens) -> Block:
    """The block of the text's own tokens."""
    axes = {"weights": "head query key", "values": "head key feature"}
    names = (*axes, "residual", "beside", "stream_again")
    known = {name: getattr(block, name) for name in names}
    own = {
        name: _real(array, axes.get(name, "query model"), text)
        for name, array in known.items()
        if array is not None
    }
    return replace(block, **own)


def _measured_kinds(whole: BlockArrays, missing: Missing) -> Kinds:
    """The norms of each kind whose lengths are wanted, if no sum of pieces fails."""
    kinds: list[tuple[Norm, ...]] = [()]
    steps = {"residual": whole.before, "output": whole.after, "globenc": whole.second}
    for kind, norm in steps.items():
        if kind in missing:
            break
        if norm is not None:
            kinds.append((*kinds[-1], norm))
        elif kind != "residual":
            break
    return tuple(kinds)


@dataclass(frozen=True)
class SumCheck:
    """How far the pieces' sums are from one of the model's own vectors.

    Args:
        what: the vector's name.
        apart: ``[member text]``, the largest difference.
        allowed: ``[member text]``, how large it may be.
    """

    what: str
    apart: np.ndarray
    allowed: np.ndarray

    def fails(self, member: int, text: int) -> bool:
        """Whether the pieces of a text are not shown to sum to the vector."""
        # Written so that NaN fails, too.
        return not self.apart[member, text] <= self.allowed[member, text]


def _checked_sums(members: list[TextsOfPath], whole: BlockArrays) -> list[SumCheck]:
    """The sums of the pieces compared with the model's own vectors."""
    checks, own_vectors = [], list(map(_vectors_of_model, members))
    limits = [allowed_apart(member.path.output, SUMS_WITHIN) for member in members]
    within = np.array(limits)[:, None]
    for what, ours in _sums(whole).items():
        theirs = [vectors[what] for vectors in own_vectors]
        # [member text number]; one member's are not copied
        theirs = theirs[0][None] if len(theirs) == 1 else np.stack(theirs)
        theirs = theirs.reshape(*theirs.shape[:2], -1)
        apart = _largest(ours.reshape(theirs.shape) - theirs)
        allowed = np.broadcast_to(within, apart.shape)
        # Nearly all are within what is allowed of vectors of any size.
        if not (apart <= allowed).all():
            allowed = within * np.maximum(1.0, _largest(theirs))
        checks.append(SumCheck(what, apart, allowed))
    return checks


def _largest(numbers: np.ndarray) -> np.ndarray:
    """``[member text]``, the largest size; NaN where there is one."""
    return np.maximum(numbers.max(axis=-1, initial=0.0), -numbers.min(axis=-1, initial=0.0))


def _sums(whole: BlockArrays) -> dict[str, np.ndarray]:
    """``[*text query model]``, the sums of the pieces, by the name of the model's vector."""
    sums = {OUTPUT: whole.output}
    if whole.residual is not None:
        sums[STREAM] = whole.stream
    if whole.after is not None:
        sums[NORMED] = whole.normed
        if whole.second is not None and whole.stream_again is not None:
            sums[NORMED_AGAIN] = whole.second(whole.stream_again)
    return sums


def _vectors_of_model(member: TextsOfPath) -> dict[str, np.ndarray]:
    """``[text query model]``, the model's own vectors that pieces sum to, by name."""
    path, texts = member.path, member.texts
    vectors = {OUTPUT: path.own_rows(texts)}
    if path.stream is not None:
        vectors[STREAM] = path.rows(path.stream, texts)
    if path.after is not None:
        vectors[NORMED] = path.rows(path.after.output, texts)
    if path.second is not None:
        vectors[NORMED_AGAIN] = path.rows(path.second.output, texts)
    return vectors


def _unproved(
    members: list[TextsOfPath], checks: list[SumCheck]
) -> tuple[dict[tuple[int, int], Missing], dict[tuple[int, int], float]]:
    """For each text, by its member and its number there, the kinds that are missing, and the
    largest difference of the others from the model's own vectors.
    """
    unproved: dict[tuple[int, int], Missing] = {}
    worst: dict[tuple[int, int], float] = {}
    for number, member in enumerate(members):
        for index in range(len(member.texts)):
            missing = dict(member.missing)
            at = number, index
            worst[at] = _note_unproved(member.path.call.name, checks, at, missing)
            if "attention" not in missing:
                _note_kinds_without_parts(member, missing)
            unproved[at] = missing
    return unproved, worst


def _note_unproved(
    name: str, checks: list[SumCheck], at: tuple[int, int], missing: Missing
) -> float:
    """Note the kinds of a text whose pieces do not sum to the model's own vector; returned is the
    largest difference of the others.
    """
    worst = 0.0
    for check in checks:
        if not check.fails(*at):
            worst = max(worst, float(check.apart[at]))
            continue
        for kind in HANG_ON[check.what]:
            missing.setdefault(
                kind,
                f"{name}: the pieces sum to a vector that is {check.apart[at]:.3g} from "
                f"the {check.what} of the model (allowed {check.allowed[at]:.1g}); what it does "
                "with them is not known to headscope",
            )
    return worst


def _arrays(whole: BlockArrays, wanted: Set[str]) -> dict[str, np.ndarray]:
    """What these kinds of contributions are, with the ratios that belong to them."""
    arrays: dict[str, np.ndarray] = {"attention": attention_norms(whole)}
    if whole.same:
        arrays["mixing_attention"] = mixing(attention_vectors(whole))
    if "residual" in wanted:
        arrays["residual"] = residual_norms(whole)
        arrays["mixing_residual"] = mixing(residual_vectors(whole))
        if not whole.same:
            arrays["own"] = own_norms(whole)
    if "output" in wanted and whole.after is not None:
        arrays["output"] = output_norms(whole)
        arrays["mixing_output"] = mixing(output_vectors(whole))
    if "globenc" in wanted and whole.second is not None:
        arrays["globenc"] = globenc_norms(whole)
    return arrays


def _note_kinds_without_parts(member: TextsOfPath, missing: Missing) -> None:
    """Note the kinds for which the layer has no norm."""
    path, block = member.path, member.block
    if block is None:
        return
    if "residual" not in missing and block.after is None:
        missing.setdefault(
            "output",
            f"{path.call.name}: no module that is a norm takes the sum of its output and the "
            "residual",
        )
    if block.second is None:
        missing.setdefault("globenc", missing.get("output", _without_second(path)))


def _contributions(
    member: TextsOfPath, arrays: dict[str, np.ndarray], missing: Missing, *, worst: float
) -> Contributions:
    """Those of one text.

    Args:
        member: whose text it is.
        arrays: of this text, among them some that are missing in it.
        missing: the kinds that it does not have.
        worst: how far the pieces' sums are from the model's own vectors.
    """
    ratio_of = {"mixing_residual": "residual", "own": "residual", "mixing_output": "output"}
    kept = {}
    for name, array in arrays.items():
        if ratio_of.get(name, name) not in missing:
            kept[name] = _stored(array)
    return Contributions(
        **kept,
        expansion=member.path.expansion,
        decomposes=_sentence(member.path, member.block, missing),
        verified=worst,
        missing=missing,
    )


def _without_second(path: ResidualPath) -> str:
    if path.goes_on == "stream":
        return (
            f"{path.call.name}: GlobEnc is of post-norm layers, and here the norm comes before "
            "the next part"
        )
    return (
        f"{path.call.name}: no second norm takes the norm's output with what a feed-forward "
        "part adds"
    )


def _sentence(path: ResidualPath, block: Block | None, missing: Missing) -> str:
    beside = (
        "; what else is added in the same place is not a token's"
        if block is not None and block.beside is not None
        else ""
    )
    if "residual" in missing:
        return f"the attention's output ({path.call.projection_name}) without its bias"
    if path.after is None:
        return (
            f"the residual stream after the attention, which no module that is a norm takes{beside}"
        )
    if "output" in missing:
        return f"the residual stream after the attention{beside}"
    goes_on = {
        "normed": ", which the layer continues with (post-norm)",
        "stream": (
            ", which the next part reads, while the layer continues with the stream itself "
            "(pre-norm)"
        ),
    }.get(path.goes_on, "")
    return f"{_named(path.after)} of the residual stream after the attention{goes_on}{beside}"


def _named(taken: NormUse) -> str:
    return f"the output of {taken.name} ({taken.norm.kind})"


def _stored(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32)
