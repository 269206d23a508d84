"""What each token added, from the path of an attention's output; checked against the model's own
vectors.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from headscope.capturing.building._real_tokens import RealTokens
from headscope.capturing.calls.attention import QueryRows, weights_of
from headscope.capturing.contributions._residual_path import NormUse, ResidualPath
from headscope.norms import (
    Block,
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
Step = tuple[str, tuple[str, ...], np.ndarray, np.ndarray]


def refused(reason: str, kinds: Iterable[str] = ALL) -> Contributions:
    """Contributions of which every kind is missing, for this reason."""
    return Contributions(missing=dict.fromkeys(kinds, reason))


def added_by(
    path: ResidualPath, example: int, *, with_alti: bool
) -> tuple[np.ndarray | None, Contributions]:
    """Value norms ``[head key]`` and contributions of one example; kinds that cannot be proved are
    missing.
    """
    unpadded = path.unpadded(example)
    missing: Missing = {}
    if not with_alti:
        missing["alti"] = ALTI_NOT_KEPT
    try:
        block = _block(path, unpadded, missing)
    except ValueError as error:
        return None, refused(f"{path.call.name}: its output projection is not affine: {error}")
    contributions = _proved(path, unpadded, block, missing)
    if "attention" in missing:
        return None, Contributions(missing=missing, verified=contributions.verified)
    return _stored(value_norms(block)), contributions


def _block(path: ResidualPath, unpadded: RealTokens, missing: Missing) -> Block:
    call = path.call
    text, visibility = call.of_text(unpadded.example), path.visibility.of_text(unpadded.example)
    weights = weights_of(text, visibility, QueryRows(unpadded.queries))[0, :, :, unpadded.keys]
    values = unpadded.of_keys(call.value)
    matrix, bias = path.projection
    heads, features = weights.shape[0], values.shape[-1]
    if len(matrix) != heads * features:
        raise ValueError(f"it has {len(matrix)} inputs for {heads} heads of {features} features")
    residual, beside = _residual(path, unpadded, missing)
    return Block(
        weights=weights.double().cpu().numpy(),
        values=values.double().cpu().numpy(),
        projection=matrix.reshape(heads, features, -1),
        bias=bias,
        residual=residual,
        same=_has_same_tokens(path, unpadded.example),
        before=_before(path),
        beside=beside,
        after=None if residual is None or path.after is None else path.after.norm,
        second=None if path.second is None else path.second.norm,
        stream_again=None if path.again is None else path.rows(path.again, unpadded),
        products=path.products,
    )


def _residual(
    path: ResidualPath, unpadded: RealTokens, missing: Missing
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
    beside = path.rows(torch.stack(others).sum(dim=0), unpadded) if others else None
    return path.rows(known[0], unpadded), beside


def _has_same_tokens(path: ResidualPath, example: int) -> bool:
    query, key = path.sides
    if path.call.cross:
        return False
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


def _proved(
    path: ResidualPath, unpadded: RealTokens, block: Block, missing: Missing
) -> Contributions:
    """The kinds whose pieces sum to the model's own vector; the others are missing, with the
    difference.
    """
    worst = 0.0
    within = SUMS_WITHIN_HALF
    if path.output.dtype in {torch.float32, torch.float64}:
        within = SUMS_WITHIN
    for what, kinds, ours, theirs in _steps(path, unpadded, block):
        apart = float(np.abs(ours - theirs).max(initial=0.0))
        allowed = within * max(1.0, float(np.abs(theirs).max(initial=0.0)))
        if not apart <= allowed:
            for kind in kinds:
                missing.setdefault(
                    kind,
                    f"{path.call.name}: the pieces sum to a vector that is {apart:.3g} from "
                    f"the {what} of the model (allowed {allowed:.1g}); what it does with them is "
                    "not known to headscope",
                )
        else:
            worst = max(worst, apart)
    return _contributions(path, block, missing, worst)


def _steps(path: ResidualPath, unpadded: RealTokens, block: Block) -> list[Step]:
    """Each vector of the model that the pieces sum to, and the kinds that hang on it: its name,
    these, our sum, and the model's own.
    """
    steps: list[Step] = [("attention's output", ALL, block.output, path.own_rows(unpadded))]
    if block.residual is None:
        return steps
    if path.stream is not None:
        steps.append(("residual stream", OF_STREAM, block.stream, path.rows(path.stream, unpadded)))
    if path.after is None:
        return steps
    theirs = path.rows(path.after.output, unpadded)
    steps.append(("norm's output", OF_NORM, block.normed, theirs))
    if path.second is not None and path.again is not None:
        ours = path.second.norm(path.rows(path.again, unpadded))
        theirs = path.rows(path.second.output, unpadded)
        steps.append(("second norm's output", ("globenc",), ours, theirs))
    return steps


def _contributions(
    path: ResidualPath, block: Block, missing: Missing, worst: float
) -> Contributions:
    if "attention" in missing:
        return Contributions(missing=missing)
    name = path.call.name
    arrays: dict[str, np.ndarray] = {"attention": attention_norms(block)}
    if block.same:
        arrays["mixing_attention"] = mixing(attention_vectors(block))
    if "residual" not in missing:
        arrays["residual"] = residual_norms(block)
        arrays["mixing_residual"] = mixing(residual_vectors(block))
    if "residual" not in missing and block.after is None:
        missing.setdefault(
            "output",
            f"{name}: no module that is a norm takes the sum of its output and the residual",
        )
    if "output" not in missing:
        arrays["output"] = output_norms(block)
        arrays["mixing_output"] = mixing(output_vectors(block))
    if "alti" not in missing:
        arrays["alti"] = alti(block)
    if "residual" not in missing and not block.same:
        arrays["own"] = own_norms(block)
    if block.second is None:
        missing.setdefault("globenc", missing.get("output", _without_second(path)))
    if "globenc" not in missing:
        arrays["globenc"] = globenc_norms(block)
    return Contributions(
        **{kind: _stored(array) for kind, array in arrays.items()},
        expansion=path.expansion,
        decomposes=_sentence(path, block, missing),
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


def _sentence(path: ResidualPath, block: Block, missing: Missing) -> str:
    beside = (
        "; what else is added in the same place is not a token's"
        if block.beside is not None
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
