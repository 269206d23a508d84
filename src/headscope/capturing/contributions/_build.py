"""What each token added, from the path of an attention's output; checked against the model's own
vectors. All is worked out in float64 on the model's own device, some texts and queries at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from headscope.capturing.building.padding import cut, padding_of
from headscope.capturing.calls.attention import QueryRows, weights_of
from headscope.capturing.contributions._modules import exact, matrix_of, remembered
from headscope.capturing.contributions._path import ResidualPath
from headscope.capturing.device import allowed_apart, full_precision
from headscope.norms import (
    Block,
    ContributionVectors,
    Norm,
    alti,
    attention_vectors,
    expansion_rate,
    globenc_vectors,
    mixing,
    output_vectors,
    own_norms,
    residual_vectors,
)
from headscope.record import CONTRIBUTIONS, Contributions
from headscope.record import ContributionKind as Kind

SUMS_WITHIN = 1e-5
"""How far the sum of the pieces may be from the model's own vector in float32, relative to its
largest value (or 1).
"""
BYTES_AT_ONCE = 2**26
"""How much the weights may take that are worked on at once."""
ALL: tuple[Kind, ...] = ("attention", "residual", "output", "alti", "globenc")
OF_STREAM: tuple[Kind, ...] = ALL[1:]
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
RATIO_OF = {"mixing_residual": "residual", "own": "residual", "mixing_output": "output"}
ALTI_NOT_KEPT = 'it was not kept; capture with keep="alti"'
NO_PROJECTION = (
    "no matrix takes the output of its heads unchanged (something stands between, or there is none)"
)
ADDED = ("residual", "beside", "stream_again")
"""The parts of a block that each query has for itself."""
Missing = dict[str, str]


def refused(reason: str, kinds: Iterable[str] = ALL) -> Contributions:
    """Contributions of which every kind is missing, for this reason."""
    return Contributions(missing=dict.fromkeys(kinds, reason))


@full_precision()
def write_contributions(path: ResidualPath, *, with_alti: bool) -> None:
    """Write value norms ``[head key]`` and contributions into the layers of all texts of a call;
    kinds that cannot be proved are missing.
    """
    try:
        parts = _parts(path)
    except ValueError as error:
        reason = f"{path.call.name}: its output projection is not affine: {error}"
        for layer in path.layers:
            layer["value_norms"], layer["contributions"] = None, refused(reason)
        return
    missing: Missing = {} if with_alti else {"alti": ALTI_NOT_KEPT}
    parts |= _added(path, missing) | {"same": _has_same_tokens(path)}
    block, tensors, apart = _measured(path, parts, with_alti=with_alti)
    arrays = {name: tensor.float().cpu().numpy() for name, tensor in tensors.items()}
    allowed = allowed_apart(path.output, SUMS_WITHIN)
    for text, layer in enumerate(path.layers):
        compared = {
            name: (differences[text], allowed * max(1.0, largest[text]))
            for name, (differences, largest) in apart.items()
        }
        own_missing, worst = _proved(path.call.name, compared, missing)
        if "attention" in own_missing:
            layer["value_norms"] = None
            layer["contributions"] = Contributions(missing=own_missing)
            continue
        _note_kinds_without_parts(path, block, own_missing)
        kept = {}
        for name, array in arrays.items():
            if RATIO_OF.get(name, name) not in own_missing:
                kept[name] = _of_text(array[text], name, path, text)
        layer["value_norms"] = kept.pop("value_norms")
        layer["contributions"] = Contributions(
            **kept,
            expansion=_expansion(path),
            decomposes=_sentence(path, block, own_missing),
            verified=worst,
            missing=own_missing,
        )


def _parts(path: ResidualPath) -> dict[str, Any]:
    """The parts of a block that all texts share.

    Raises:
        ValueError: where the output projection is not a matrix and a bias.
    """
    if path.call.projection is None:
        raise ValueError("it was not seen")
    heads, features = path.call.size[1], path.call.value.shape[-1]
    matrix, bias = matrix_of(path.call.projection)
    if len(matrix) != heads * features:
        raise ValueError(f"it has {len(matrix)} inputs for {heads} heads of {features} features")
    parts = {"projection": matrix.reshape(heads, features, -1), "bias": bias}
    norms = {"before": path.before, "second": path.second}
    norms["after"] = path.after if len(path.residuals) == 1 else None
    for name, use in norms.items():
        parts[name] = None if use is None else _like(use.norm, matrix)
    if path.scale is not None:
        scale = path.scale.to(matrix.device, matrix.dtype)
        before = parts["before"]
        if before is None:
            ones = torch.ones_like(scale)
            before = Norm(gain=ones, shift=0 * ones, centred=False, divided=False)
        parts["before"] = replace(before, gain=before.gain * scale, shift=before.shift * scale)
    return parts


def _like(norm: Norm, like: torch.Tensor) -> Norm:
    gain, shift = (torch.as_tensor(part) for part in (norm.gain, norm.shift))
    return replace(
        norm, gain=gain.to(like.device, like.dtype), shift=shift.to(like.device, like.dtype)
    )


def _measured(
    path: ResidualPath, parts: dict[str, Any], *, with_alti: bool
) -> tuple[Block, dict[str, torch.Tensor], dict[str, list[list[float]]]]:
    """The block of the last queries; what follows from all of them; and in each text how far the
    sums of the pieces are from the model's own vectors, by their names, and how large these are.
    """
    texts, heads, queries, keys = path.call.size
    values = exact(path.call.value)
    step = max(1, BYTES_AT_ONCE // max(1, 8 * texts * heads * keys))
    arrays: dict[str, list[torch.Tensor]] = {}
    sums: dict[str, list[torch.Tensor]] = {}
    grams: dict = {}
    for first in range(0, max(1, queries), step):
        rows = slice(first, first + step)
        own = dict(parts)
        for name in ADDED:
            own[name] = None if parts[name] is None else parts[name][:, rows]
        own["first"] = first if parts["same"] else 0
        block = Block(weights=_weights(path, rows), values=values, grams=grams, **own)
        for name, array in _arrays(block, with_alti=with_alti).items():
            arrays.setdefault(name, []).append(array)
        for name, ours in _sums(block).items():
            sums.setdefault(name, []).append(ours)
    whole = {name: torch.cat(of_rows, 1) for name, of_rows in arrays.items()}
    whole["value_norms"] = block.value_lengths
    theirs, padding = _vectors_of_model(path), padding_of(path.call.size[2], path.sides[0])
    sizes = []
    for name, ours in sums.items():
        pair = torch.cat(ours, 1) - theirs[name], theirs[name]
        sizes.append(torch.stack([_largest(each, padding) for each in pair]))
    return block, whole, dict(zip(sums, torch.stack(sizes).tolist(), strict=True))


def _proved(
    name: str, differences: dict[str, tuple[float, float]], missing: Missing
) -> tuple[Missing, float]:
    """The kinds that are missing, and the largest difference of the others, from how far the pieces
    are from each vector of the model, and how far they may be.
    """
    missing, worst = dict(missing), 0.0
    for what, (apart, allowed) in differences.items():
        # Written so that NaN fails, too.
        if apart <= allowed:
            worst = max(worst, apart)
            continue
        reason = (
            f"{name}: the pieces sum to a vector that is {apart:.3g} from the {what} of the model "
            f"(allowed {allowed:.1g}); what it does with them is not known to headscope"
        )
        missing = dict.fromkeys(HANG_ON[what], reason) | missing
    return missing, worst


def _weights(path: ResidualPath, rows: slice) -> torch.Tensor:
    """Weights ``[text head row key]`` of some queries."""
    numbers = torch.arange(path.call.size[2], device=path.call.value.device)
    chosen = QueryRows() if rows.stop - rows.start >= len(numbers) else QueryRows(numbers[rows])
    if path.weights is not None:
        return exact(chosen.of(path.weights))
    return exact(weights_of(path.call, path.visibility, chosen))


def _rows(path: ResidualPath, rows: torch.Tensor) -> torch.Tensor:
    """``[text query model]`` of ``[row model]`` in the order of the output."""
    texts, _, queries, _ = path.call.size
    rows = exact(rows)
    if not path.packed:
        return rows.reshape(texts, queries, path.width)
    whole = rows.new_zeros(texts, queries, path.width)
    for text, at in zip(whole, path.sides[0].positions, strict=True):
        text[at], rows = rows[: len(at)], rows[len(at) :]
    return whole


def _added(path: ResidualPath, missing: Missing) -> dict[str, torch.Tensor | None]:
    """What the block's input adds, the sum of all else that was added, and what the second norm
    takes; why there is no residual is noted.
    """
    added: dict[str, torch.Tensor | None] = dict.fromkeys(ADDED)
    count = len(path.residuals)
    if path.again is not None:
        added["stream_again"] = _rows(path, path.ordered(path.again))
    if count == 1:
        added["residual"] = _rows(path, path.ordered(path.residuals[0]))
        if path.others:
            added["beside"] = _rows(path, path.ordered(torch.stack(path.others).sum(0)))
        return added
    if path.stream is None:
        reason = (
            "nothing is added to its output, be it after a norm or a scale, row by row; there is "
            "no residual"
        )
    else:
        reason = (
            f"of what is added to its output, {f'{count} tensors' if count else 'nothing'} had "
            "been read by a part of the model before; the residual is unknown"
        )
    missing |= dict.fromkeys(OF_STREAM, f"{path.call.name}: {reason}")
    return added


def _has_same_tokens(path: ResidualPath) -> bool:
    """Whether queries and keys are the same tokens in every text."""
    query, key = path.sides
    if path.call.cross or query is key:  # most layers have one object for both sides
        return not path.call.cross
    places = zip(query.positions, key.positions, strict=True)
    return query.tokens == key.tokens and all(torch.equal(*pair) for pair in places)


def _arrays(block: Block, *, with_alti: bool) -> dict[str, torch.Tensor]:
    """``[text query key]`` and ``[text query]``, all that follows from a block."""
    vectors: dict[str, ContributionVectors] = {"attention": attention_vectors(block)}
    if block.residual is not None:
        vectors["residual"] = residual_vectors(block)
        if block.after is not None:
            vectors["output"] = output_vectors(block)
            if block.second is not None and block.stream_again is not None:
                vectors["globenc"] = globenc_vectors(block)
    arrays = {name: added.lengths() for name, added in vectors.items()}
    for kind in ("attention", "residual", "output"):
        if kind in vectors and (block.same or kind != "attention"):
            arrays[f"mixing_{kind}"] = mixing(vectors[kind])
    if block.residual is not None and not block.same:
        arrays["own"] = own_norms(block)
    if block.residual is not None and with_alti:
        arrays["alti"] = alti(block)
    return arrays


def _sums(block: Block) -> dict[str, torch.Tensor]:
    """``[text query model]``, the sums of the pieces, by the name of the model's vector."""
    sums = {OUTPUT: block.output}
    if block.residual is not None:
        sums[STREAM] = block.stream
        if block.after is not None:
            sums[NORMED] = block.normed
            if block.second is not None and block.stream_again is not None:
                sums[NORMED_AGAIN] = block.second(block.stream_again)
    return sums


def _vectors_of_model(path: ResidualPath) -> dict[str, torch.Tensor]:
    """``[text query model]``, the model's own vectors that pieces sum to, by name."""
    vectors = {OUTPUT: _rows(path, path.output.reshape(-1, path.width))}
    if path.stream is not None:
        vectors[STREAM] = _rows(path, path.ordered(path.stream))
    for name, use in {NORMED: path.after, NORMED_AGAIN: path.second}.items():
        if use is not None:
            vectors[name] = _rows(path, path.ordered(use.output))
    return vectors


def _largest(numbers: torch.Tensor, padding: torch.Tensor | None) -> torch.Tensor:
    """``[text]``, the largest size of ``[text query model]``; NaN where there is one."""
    numbers = numbers if padding is None else numbers.masked_fill(padding[..., None], 0)
    flat = numbers.abs().flatten(1)
    return flat.amax(1) if flat.shape[1] else flat.new_zeros(len(flat))


def _of_text(array: np.ndarray, name: str, path: ResidualPath, text: int) -> np.ndarray:
    """What of an array is of real tokens."""
    query, key = (side.places[text] for side in path.sides)
    axes = CONTRIBUTIONS.get(name, "head key")
    if axes == "query key":
        return cut(array, query, key)
    return array[..., query if axes == "query" else key]


def _expansion(path: ResidualPath) -> float | None:
    """Rate at which f stretches vectors; None where W_V is unknown, or does not take the model's
    vectors.
    """
    if path.value is None or path.call.projection is None:
        return None
    (module, columns), projection = path.value, path.call.projection
    heads, shared = path.call.size[1], path.call.value.shape[1]

    def rate() -> float | None:
        try:
            matrix, offset = matrix_of(module)
        except ValueError:
            return None
        if len(matrix) != path.width:
            return None
        # Heads that share values have the columns of these again.
        chosen = torch.tensor(columns).reshape(shared, -1).repeat_interleave(heads // shared, 0)
        at = chosen.flatten().to(matrix.device)
        out, bias = matrix_of(projection)
        biases = (None if offset is None else offset[at]), bias
        own = (None if one is None else one.double().cpu().numpy() for one in biases)
        value, out = (one.double().cpu().numpy() for one in (matrix[:, at], out))
        return expansion_rate(value, out, *own)

    return remembered([module, projection], ("expansion", heads, shared, columns), rate)


def _note_kinds_without_parts(path: ResidualPath, block: Block, missing: Missing) -> None:
    """Note the kinds for which the layer has no norm."""
    name = path.call.name
    if "residual" not in missing and block.after is None:
        reason = f"{name}: no module that is a norm takes the sum of its output and the residual"
        missing.setdefault("output", reason)
    if block.second is not None:
        return
    if path.goes_on == "stream":
        reason = "GlobEnc is of post-norm layers, and here the norm comes before the next part"
    else:
        reason = "no second norm takes the norm's output with what a feed-forward part adds"
    missing.setdefault("globenc", missing.get("output", f"{name}: {reason}"))


def _sentence(path: ResidualPath, block: Block, missing: Missing) -> str:
    """Which vector of the model the pieces sum to."""
    beside = ""
    if block.beside is not None:
        beside = "; what else is added in the same place is not a token's"
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
    taken = f"the output of {path.after.name} ({path.after.norm.kind})"
    return f"{taken} of the residual stream after the attention{goes_on}{beside}"
