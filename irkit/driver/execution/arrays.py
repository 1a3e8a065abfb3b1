"""The arrays that a run takes and gives: `.npz` files, random inputs, checks."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np

from irkit.bfloat16 import is_floating
from irkit.dialects.types import DYNAMIC, Tensor, numpy_dtype
from irkit.driver.diagnostics.diagnostic import UserError, did_you_mean
from irkit.driver.execution.entry_point import EntryPoint
from irkit.driver.files.model_files import file_to_write, is_special
from irkit.weights import Array

BATCH = 3
"""Rows taken for a dynamic leading dimension."""


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of an `.npz` file, in its order. Raises UserError if it is none."""
    try:
        with open(path, "rb") as file:
            if not file.read(6).startswith((b"PK", b"\x93NUMPY")):
                raise UserError("not a valid .npz file: it does not begin like one", path)
        # Pickled objects are refused: they may run any code.
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise UserError("expected an .npz archive, got a single array", path)
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        raise UserError(f"cannot read '{path}': {error.strerror or error}") from None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"not a valid .npz file: {error}", path) from None


def write_arrays(path: str, arrays: Mapping[str, Array]) -> None:
    """Write an `.npz` file at once. Raises UserError."""
    target = file_to_write(path)
    if is_special(target):
        raise UserError(f"cannot write '{path}': it is no regular file")
    partial = target.with_name(target.name + ".partial.npz")
    try:
        np.savez(partial, allow_pickle=False, **dict(arrays))
        os.replace(partial, target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"cannot write '{path}': {error.strerror}") from None


def random_inputs(entry: EntryPoint, seed: int, batch: int = BATCH) -> list[Array]:
    """Inputs by type: standard normal floats, integers 0 and 1."""
    generator = np.random.default_rng(seed)
    return [_random_array(generator, t, batch) for t in entry.inputs]


def _random_array(generator: np.random.Generator, t: Tensor, batch: int) -> Array:
    shape = [batch if s == DYNAMIC else s for s in t.get_shape()]
    dtype = numpy_dtype(t.element_type)
    if is_floating(dtype):
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def pick_inputs(given: Mapping[str, Array], entry: EntryPoint, path: str) -> list[Array]:
    """The arrays of file `path` for the inputs of `entry`: by name, or `arr_0`, ... in order.

    Raises UserError for one that is missing, or of another dtype or shape than its input.
    """
    names = entry.input_names
    unnamed = len(given) == len(names) and all(name.startswith("arr_") for name in given)
    missing = [name for name in names if name not in given]
    if missing and not unnamed:
        have = ", ".join(given) or "nothing"
        hint = did_you_mean(missing[0], given)
        raise UserError(f"no array for input '{missing[0]}'{hint} (the file has {have})", path)
    arrays = list(given.values()) if missing else [given[name] for name in names]
    for name, array, t in zip(names, arrays, entry.inputs, strict=True):
        _check_input(name, array, t, path)
    return arrays


def _check_input(name: str, array: Array, t: Tensor, path: str) -> None:
    dtype, shape = numpy_dtype(t.element_type), t.get_shape()
    if array.dtype != dtype:
        raise UserError(f"input '{name}' expects dtype {dtype}, got {array.dtype}", path)
    fits = len(shape) == array.ndim and all(
        want in (DYNAMIC, have) for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise UserError(
            f"input '{name}' expects shape {_shown(shape)}, got {_shown(array.shape)}", path
        )


def _shown(shape: Sequence[int]) -> str:
    return "x".join("?" if s == DYNAMIC else str(s) for s in shape) or "()"
