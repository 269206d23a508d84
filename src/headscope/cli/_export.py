"""headscope export."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headscope.cli._layers_and_heads import layer_number
from headscope.cli._run import check_writable, say, status
from headscope.errors import FileError, HeadscopeError

if TYPE_CHECKING:
    from headscope.record import Stack

KINDS = (".csv", ".parquet", ".nc", ".npz")


def export(
    record: str,
    /,
    *,
    out: Path,
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    words: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Write the attention weights of a record for other programs.

    .csv and .parquet have a row for each weight: layer, head, query, query_token, key, key_token,
    weight. .nc is NetCDF with the axes layer, head, query, key; .npz the same arrays for NumPy.

    Args:
        record: The record file (.safetensors), or its address such as
            hf://datasets/me/records/run.safetensors.
        out: Write the weights to this file: .csv, .parquet, .nc or .npz.
        stack: Attention stack of the model, such as decoder or cross; by default the first.
        layer: Layer number, from 0; -1 is the last. By default all layers.
        head: Head number, from 0. By default all heads.
        words: Between whole words in place of tokens: the sum over the pieces of the word that is
            attended to, the mean over those of the word that looks.
    """
    from headscope.storage import load

    check_writable(out)
    if out.suffix not in KINDS:
        raise FileError(f"Expected {', '.join(KINDS)} for --out, got {out}")
    loaded = load(record)
    chosen = loaded[stack or next(iter(loaded.stacks))]
    layer = None if layer is None else layer_number(layer, [each.layer for each in chosen])
    with status("Writing"):
        write_weights(chosen.words() if words else chosen, out, layer, head)
    say(loaded.summary)
    say(f"Wrote {out.resolve()} ({out.stat().st_size / 1e6:.2f} MB)")


def write_weights(stack: Stack, out: Path, layer: int | None, head: int | None) -> None:
    """Write the weights of a stack, whole or not at all.

    Raises:
        HeadscopeError: where the library of a format is missing, or there is no such layer or head.
    """
    import numpy as np

    from headscope.storage import written_whole

    table: Any = {
        ".parquet": stack.to_arrow,
        ".nc": partial(_for_netcdf, stack),
        ".csv": stack.columns,
        ".npz": stack.weights,
    }[out.suffix](layer, head)
    with written_whole(out) as temporary:
        if out.suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(table, temporary)
        elif out.suffix == ".nc":
            # The engine that needs no further library than scipy.
            table.to_netcdf(temporary, engine="scipy")
        elif out.suffix == ".csv":
            _write_csv(table, temporary)
        else:
            query, key = (np.array(side.labels) for side in (stack.query, stack.key))
            # An open file, because NumPy adds .npz to names that do not end so, as the temporary
            # one.
            with temporary.open("wb") as file:
                np.savez_compressed(file, weights=table, query_token=query, key_token=key)


def _for_netcdf(stack: Stack, layer: int | None, head: int | None) -> Any:
    from importlib.util import find_spec

    if find_spec("scipy") is None:
        raise HeadscopeError(
            "NetCDF needs scipy, which is not installed: pip install 'headscope[statistics]'"
        )
    return stack.to_xarray(layer, head)


def _write_csv(columns: dict[str, Any], path: Path) -> None:
    import csv

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
