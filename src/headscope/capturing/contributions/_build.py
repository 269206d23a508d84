"""What each token added, from the path of an attention's output; checked against the model's own
vectors. All is worked out in float64 on the model's own device, some texts and queries at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from headscope.capturing.calls.attention import QueryRows, weights_of
from headscope.capturing.calls.call import Call, some_of
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


class RealTokens(NamedTuple):
    """The real tokens of one example of a call: positions of queries and of keys."""

    call: Call
    example: int
    queries: torch.Tensor
    keys: torch.Tensor


def refused(reason: str, kinds: Iterable[str] = ALL) -> Contributions:
    """Contributions of which every kind is missing, for this reason."""
    return Contributions(missing=dict.fromkeys(kinds, reason))


@full_precision()
def write_contributions(path: ResidualPath, *, with_alti: bool) -> None:
    """Write value norms ``[head key]`` and contributions into the layers of all texts of a call;
    kinds that cannot be proved are missing.
    """
    sides = [side.positions for side in path.sides]
    texts = [
        RealTokens(path.call, example, *(positions[example] for positions in sides))
        for example in range(len(path.layers))
    ]
    try:
        parts = _parts(path)
    except ValueError as error:
        reason = f"{path.call.name}: its output projection is not affine: {error}"
        for layer in path.layers:
            layer["value_norms"], layer["contributions"] = None, refused(reason)
        return
    for is_same in (True, False):
        alike = [text for text in texts if _has_same_tokens(path, text.example) == is_same]
        heads, queries, keys = path.call.size[1:]
        most = max(1, BYTES_AT_ONCE // max(1, 8 * heads * queries * keys))
        for first in range(0, len(alike), most):
            some = alike[first : first + most]
            _write(path, some, parts | {"same": is_same}, with_alti=with_alti)


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


def _write(
    path: ResidualPath, texts: list[RealTokens], parts: dict[str, Any], *, with_alti: bool
) -> None:
    """Write those of texts that share blocks. Shorter texts are filled up to the longest one with
    copies of their last token, which no query attends to: no text depends on another one.
    """
    missing: Missing = {} if with_alti else {"alti": ALTI_NOT_KEPT}
    parts = parts | _added(path, texts, missing)
    block, arrays, apart = _measured(path, texts, parts, with_alti=with_alti)
    allowed = allowed_apart(path.output, SUMS_WITHIN)
    for number, text in enumerate(texts):
        compared = {
            name: (differences[number], allowed * max(1.0, largest[number]))
            for name, (differences, largest) in apart.items()
        }
        own_missing, worst = _proved(path.call.name, compared, missing)
        layer = path.layers[text.example]
        if "attention" in own_missing:
            layer["value_norms"] = None
            layer["contributions"] = Contributions(missing=own_missing)
            continue
        _note_kinds_without_parts(path, block, own_missing)
        kept = {}
        for name, array in arrays.items():
            if RATIO_OF.get(name, name) not in own_missing:
                kept[name] = _real(array[number], name, text)
        layer["value_norms"] = kept.pop("value_norms")
        layer["contributions"] = Contributions(
            **kept,
            expansion=_expansion(path),
            decomposes=_sentence(path, block, own_missing),
            verified=worst,
            missing=own_missing,
        )


def _measured(
    path: ResidualPath, texts: list[RealTokens], parts: dict[str, Any], *, with_alti: bool
) -> tuple[Block, dict[str, np.ndarray], dict[str, list[list[float]]]]:
    """The block of the last queries; what follows from all of them; and in each text how far the
    sums of the pieces are from the model's own vectors, by their names, and how large these are.
    """
    values = exact(_keys_of(texts).of(path.call.of_texts(_numbers(texts)).value, axis=2))
    heads, queries, keys = path.call.size[1], *_lengths(texts)
    step = max(1, BYTES_AT_ONCE // max(1, 8 * len(texts) * heads * keys))
    arrays: dict[str, list[torch.Tensor]] = {}
    sums: dict[str, list[torch.Tensor]] = {}
    grams: dict = {}
    for first in range(0, max(1, queries), step):
        rows = slice(first, first + step)
        own = dict(parts)
        for name in ADDED:
            own[name] = None if parts[name] is None else parts[name][:, rows]
        own["first"] = first if parts["same"] else 0
        block = Block(weights=_weights(path, texts, rows), values=values, grams=grams, **own)
        for name, array in _arrays(block, with_alti=with_alti).items():
            arrays.setdefault(name, []).append(array)
        for name, ours in _sums(block).items():
            sums.setdefault(name, []).append(ours)
    whole = {name: torch.cat(of_rows, 1) for name, of_rows in arrays.items()}
    whole["value_norms"] = block.value_lengths
    theirs = _vectors_of_model(path, texts)
    pairs = [(torch.cat(ours, 1) - theirs[name], theirs[name]) for name, ours in sums.items()]
    sizes = torch.stack([torch.stack([_largest(each) for each in pair]) for pair in pairs]).tolist()
    return (
        block,
        {name: array.float().cpu().numpy() for name, array in whole.items()},
        dict(zip(sums, sizes, strict=True)),
    )


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


def _numbers(texts: Sequence[RealTokens]) -> list[int]:
    return [text.example for text in texts]


def _lengths(texts: Sequence[RealTokens]) -> tuple[int, int]:
    """Numbers of queries and of keys of the longest texts."""
    return max(len(text.queries) for text in texts), max(len(text.keys) for text in texts)


def _are_whole(texts: Sequence[RealTokens], *, queries: bool) -> bool:
    """Whether all queries of a call, or all its keys, are real tokens of each of these texts."""
    size = texts[0].call.size[2 if queries else 3]
    return all(len(text.queries if queries else text.keys) == size for text in texts)


def _keys_of(texts: Sequence[RealTokens]) -> QueryRows:
    if _are_whole(texts, queries=False):
        return QueryRows()
    return QueryRows(filled_up([text.keys for text in texts]).to(texts[0].call.value.device))


def _weights(path: ResidualPath, texts: list[RealTokens], rows: slice) -> torch.Tensor:
    """Weights ``[text head row key]`` of some queries, over the real keys."""
    numbers, device = _numbers(texts), path.call.value.device
    queries = path.call.size[2]
    if not _are_whole(texts, queries=True):
        chosen = QueryRows(filled_up([text.queries for text in texts])[:, rows].to(device))
    elif rows.start == 0 and rows.stop >= queries:
        chosen = QueryRows()
    else:
        chosen = QueryRows(torch.arange(queries, device=device)[rows])
    if path.weights is not None:
        weights = chosen.of(some_of(path.weights, numbers))
    else:
        call, visibility = path.call.of_texts(numbers), path.visibility.of_texts(numbers)
        weights = weights_of(call, visibility, chosen)
    if _are_whole(texts, queries=False):
        return exact(weights)
    weights = exact(_keys_of(texts).of(weights, axis=3))
    lengths = torch.tensor([len(text.keys) for text in texts], device=weights.device)
    real = torch.arange(weights.shape[-1], device=weights.device) < lengths[:, None]
    return weights * real[:, None, None]


def _rows(path: ResidualPath, rows: torch.Tensor, texts: Sequence[RealTokens]) -> torch.Tensor:
    """``[text query model]`` of texts, filled up to the longest one, of ``[row model]`` in the
    order of the output.
    """
    batch, _, queries, _ = path.call.size
    if len(texts) == batch and _are_whole(texts, queries=True):
        return exact(rows).reshape(batch, queries, path.width)
    numbers = []
    for text in texts:
        if path.packed:
            first = sum(len(at) for at in path.sides[0].positions[: text.example])
            numbers.append(torch.arange(first, first + len(text.queries)))
        else:
            numbers.append(text.example * queries + text.queries.cpu())
    return exact(rows[filled_up(numbers).to(rows.device)])


def filled_up(positions: Sequence[torch.Tensor]) -> torch.Tensor:
    """``[text place]``, the positions of each text; the last one of a shorter text is repeated."""
    longest = max(len(at) for at in positions)
    return torch.stack([torch.cat([at, at[-1:].expand(longest - len(at))]) for at in positions])


def _added(
    path: ResidualPath, texts: list[RealTokens], missing: Missing
) -> dict[str, torch.Tensor | None]:
    """What the block's input adds, the sum of all else that was added, and what the second norm
    takes; why there is no residual is noted.
    """
    added: dict[str, torch.Tensor | None] = dict.fromkeys(ADDED)
    count = len(path.residuals)
    if path.again is not None:
        added["stream_again"] = _rows(path, path.ordered(path.again), texts)
    if count == 1:
        added["residual"] = _rows(path, path.ordered(path.residuals[0]), texts)
        if path.others:
            added["beside"] = _rows(path, path.ordered(torch.stack(path.others).sum(0)), texts)
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


def _has_same_tokens(path: ResidualPath, example: int) -> bool:
    query, key = path.sides
    if path.call.cross:
        return False
    # Most layers have one object for both sides.
    if query is key:
        return True
    same_places = torch.equal(query.positions[example], key.positions[example])
    return same_places and query.tokens[example] == key.tokens[example]


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


def _vectors_of_model(path: ResidualPath, texts: list[RealTokens]) -> dict[str, torch.Tensor]:
    """``[text query model]``, the model's own vectors that pieces sum to, by name."""
    vectors = {OUTPUT: _rows(path, path.output.reshape(-1, path.width), texts)}
    if path.stream is not None:
        vectors[STREAM] = _rows(path, path.ordered(path.stream), texts)
    for name, use in {NORMED: path.after, NORMED_AGAIN: path.second}.items():
        if use is not None:
            vectors[name] = _rows(path, path.ordered(use.output), texts)
    return vectors


def _largest(numbers: torch.Tensor) -> torch.Tensor:
    """``[text]``, the largest size; NaN where there is one."""
    flat = numbers.abs().flatten(1)
    return flat.amax(1) if flat.shape[1] else flat.new_zeros(len(flat))


def _real(array: np.ndarray, name: str, text: RealTokens) -> np.ndarray:
    """A copy of what of an array is of the text's own tokens, and not filled up."""
    sizes = {"query": len(text.queries), "key": len(text.keys)}
    axes = CONTRIBUTIONS.get(name, "head key").split()
    return array[tuple(slice(sizes.get(axis)) for axis in axes)].copy()


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
