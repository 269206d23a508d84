"""What each token added, from the path of an attention's output; checked against the model's own
vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np
import torch

from headscope.capturing.building._real_tokens import RealTokens
from headscope.capturing.calls.attention import QueryRows, weights_of
from headscope.capturing.calls.call import Call, some_of
from headscope.capturing.calls.visibility import Visibility
from headscope.capturing.contributions._residual_path import NormUse, ResidualPath
from headscope.norms import (
    Block,
    BlockArrays,
    BlockStack,
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
from headscope.record import ContributionKind as Kind
from headscope.record import Contributions

SUMS_WITHIN = 1e-5
"""How far the sum of the pieces may be from the model's own vector in float32, relative to its
largest value (or 1).
"""
SUMS_WITHIN_HALF = 3e-2
ALL: tuple[Kind, ...] = ("attention", "residual", "output", "alti", "globenc")
OF_STREAM: tuple[Kind, ...] = ALL[1:]
OF_NORM: tuple[Kind, ...] = ("output", "alti", "globenc")
ALTI_NOT_KEPT = 'it was not kept; capture with keep="alti"'
Missing = dict[str, str]
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


BYTES_AT_ONCE = 2**26
"""How much the weights of the texts of one call may take that are worked on together."""


@dataclass(eq=False, kw_only=True)
class TextsOfPath:
    """Texts of one call that have the same number of tokens, and what is known of them.

    Args:
        path: where the call's output went.
        texts: these texts; one after the other they are the axis in front of the block's arrays.
        block: what the contributions follow from; None where it has no projection that is affine.
        missing: the kinds that no text has, with the reason.
    """

    path: ResidualPath
    texts: list[RealTokens]
    block: Block | None
    missing: Missing

    @property
    def size(self) -> int:
        """How many numbers the block's arrays hold."""
        if self.block is None:
            return 0
        heads, queries, keys, model = self.block.size
        return len(self.texts) * (heads * queries * keys + 6 * queries * model)


def texts_of(path: ResidualPath, *, with_alti: bool) -> Iterator[TextsOfPath]:
    """The texts of a call, those of one length together, as many at once as may be held."""
    alike: dict[tuple[int, int], list[RealTokens]] = {}
    for example in range(len(path.layers)):
        text = path.unpadded(example)
        alike.setdefault((len(text.queries), len(text.keys)), []).append(text)
    for (queries, keys), texts in alike.items():
        # Of a longer text alone the weights are held as well.
        most = max(1, BYTES_AT_ONCE // (8 * path.call.size[1] * queries * keys or 1))
        for first in range(0, len(texts), most):
            yield _texts_of(path, texts[first : first + most], with_alti=with_alti)


def _texts_of(path: ResidualPath, texts: list[RealTokens], *, with_alti: bool) -> TextsOfPath:
    missing: Missing = {} if with_alti else {"alti": ALTI_NOT_KEPT}
    try:
        block = _block(path, texts, missing)
    except ValueError as error:
        block = None
        reason = f"{path.call.name}: its output projection is not affine: {error}"
        missing |= dict.fromkeys(ALL, reason)
    return TextsOfPath(path=path, texts=texts, block=block, missing=missing)


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
    checks = _checked_sums(members, whole)
    unproved: dict[tuple[int, int], Missing] = {}
    worst: dict[tuple[int, int], float] = {}
    for number, member in enumerate(members):
        for index in range(len(member.texts)):
            missing = dict(member.missing)
            at = number, index
            worst[at] = _note_unproved(member.path.call.name, checks, at, missing)
            if "attention" not in missing:
                _note_kinds_without_parts(member.path, blocks[number], missing)
            unproved[at] = missing
    wanted = {kind for missing in unproved.values() for kind in ALL if kind not in missing}
    if "attention" not in wanted:
        arrays, lengths = {}, None
    else:
        arrays, lengths = _arrays(whole, wanted), value_norms(whole)
    is_stack = isinstance(whole, BlockStack)
    for (number, index), missing in unproved.items():
        member, at = members[number], (number, index) if is_stack else (index,)
        layer = member.path.layers[member.texts[index].example]
        if "attention" in missing or lengths is None:
            layer["value_norms"], layer["contributions"] = None, Contributions(missing=missing)
            continue
        own = {name: array[at] for name, array in arrays.items()}
        block = blocks[number]
        if "alti" not in missing:
            own["alti"] = alti(block.one((index,), ())[0])
        layer["value_norms"] = _stored(lengths[at])
        layer["contributions"] = _contributions(member, own, missing, worst=worst[number, index])


def _block(path: ResidualPath, texts: list[RealTokens], missing: Missing) -> Block:
    call = path.call
    numbers = [text.example for text in texts]
    of_texts, visibility = call.of_texts(numbers), path.visibility.of_texts(numbers)
    matrix, bias = path.projection
    weights, values = _weights_and_values(of_texts, visibility, texts, path.weights)
    heads, features = weights.shape[1], values.shape[-1]
    if len(matrix) != heads * features:
        raise ValueError(f"it has {len(matrix)} inputs for {heads} heads of {features} features")
    residual, beside = _residual(path, texts, missing)
    after = second = again = None
    if residual is not None and path.after is not None:
        after = path.after.norm
    if path.second is not None:
        second = path.second.norm
    if path.again is not None:
        again = path.rows(path.again, texts)
    return Block(
        weights=weights,
        values=values,
        projection=matrix.reshape(heads, features, -1),
        bias=bias,
        residual=residual,
        same=all(_has_same_tokens(path, number) for number in numbers),
        before=_before(path),
        beside=beside,
        after=after,
        second=second,
        stream_again=again,
        products=path.products,
    )


def _weights_and_values(
    call: Call,
    visibility: Visibility,
    texts: list[RealTokens],
    known: torch.Tensor | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Weights ``[text head query key]`` and values ``[text kv_head key feature]`` of the real
    tokens in float64: copies, since the model may write into its own.
    """
    _, _, queries, keys = call.size
    if (len(texts[0].queries), len(texts[0].keys)) == (queries, keys):
        if known is not None:
            known = some_of(known, [text.example for text in texts])
        else:
            known = weights_of(call, visibility)
        return _copied(known), _copied(call.value)
    weights, values = [], []
    for index, text in enumerate(texts):
        own, seen = call.of_texts([index]), visibility.of_texts([index])
        rows = weights_of(own, seen, QueryRows(text.queries))
        weights.append(_copied(rows[0, :, :, text.keys]))
        values.append(_copied(own.value[0][:, text.keys]))
    return np.stack(weights), np.stack(values)


def _copied(tensor: torch.Tensor) -> np.ndarray:
    """A copy in float64, whose axes lie in memory in their order."""
    copied = tensor.detach().to(
        "cpu", torch.float64, copy=True, memory_format=torch.contiguous_format
    )
    return copied.numpy()


def _residual(
    path: ResidualPath, texts: list[RealTokens], missing: Missing
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What the block's input adds, and the sum of all else that was added."""
    name = path.call.name
    if path.stream is None:
        missing |= dict.fromkeys(
            OF_STREAM,
            f"{name}: nothing is added to its output, be it after a norm or a scale, row by row; "
            "there is no residual",
        )
        return None, None
    known = path.residuals
    if len(known) != 1:
        count = "nothing" if not known else f"{len(known)} tensors"
        missing |= dict.fromkeys(
            OF_STREAM,
            f"{name}: of what is added to its output, {count} had been read by a part of the model "
            "before; the residual is unknown",
        )
        return None, None
    others = [addend for addend in path.addends if addend is not known[0]]
    beside = path.rows(torch.stack(others).sum(dim=0), texts) if others else None
    return path.rows(known[0], texts), beside


def _has_same_tokens(path: ResidualPath, example: int) -> bool:
    query, key = path.sides
    if path.call.cross:
        return False
    # Most layers have one object for both sides.
    if query is key:
        return True
    same_places = torch.equal(query.positions[example], key.positions[example])
    return same_places and query.tokens[example] == key.tokens[example]


def _before(path: ResidualPath) -> Norm | None:
    if path.scale is None:
        return None if path.before is None else path.before.norm
    scale = path.scale.cpu().numpy()
    if path.before is not None:
        norm = path.before.norm
        return Norm(
            gain=norm.gain * scale,
            shift=norm.shift * scale,
            eps=norm.eps,
            centred=norm.centred,
            divided=norm.divided,
        )
    return Norm(gain=scale, shift=np.zeros_like(scale), centred=False, divided=False)


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
    checks = []
    within = np.array([_within(member.path) for member in members])[:, None]
    own_vectors = [_vectors_of_model(member) for member in members]
    for what, ours in _sums(whole).items():
        theirs = [vectors[what] for vectors in own_vectors]
        # [member text query model]; one member's are not copied
        theirs = theirs[0][None] if len(theirs) == 1 else np.stack(theirs)
        apart = np.abs(ours.reshape(theirs.shape) - theirs).max(axis=(-2, -1), initial=0.0)
        largest = np.abs(theirs).max(axis=(-2, -1), initial=0.0)
        checks.append(SumCheck(what, apart, within * np.maximum(1.0, largest)))
    return checks


def _within(path: ResidualPath) -> float:
    is_exact = path.output.dtype in {torch.float32, torch.float64}
    return SUMS_WITHIN if is_exact else SUMS_WITHIN_HALF


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


def _note_kinds_without_parts(path: ResidualPath, block: Block, missing: Missing) -> None:
    """Note the kinds for which the layer has no norm."""
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
