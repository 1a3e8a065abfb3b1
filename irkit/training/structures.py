"""Structures of arrays, dicts, lists and tuples, as arrays by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from irkit.errors import UnsupportedError
from irkit.frontends.numpy.nested import mapped


def named_leaves(structure: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All that is in a structure, with its path: keys and numbers behind `name`, dots between."""
    if isinstance(structure, Mapping):
        for key, part in cast("Mapping[Any, Any]", structure).items():
            yield from named_leaves(part, f"{name}.{key}")
    elif isinstance(structure, list | tuple):
        for number, part in enumerate(cast("list[Any]", structure)):
            yield from named_leaves(part, f"{name}.{number}")
    else:
        yield name, structure


def arrays_by_name(structure: Any, name: str) -> dict[str, Any]:
    """All arrays in a structure by their paths, as C-contiguous arrays.

    Raises UnsupportedError for two of one path, and for what is no array.
    """
    found: dict[str, Any] = {}
    for path, leaf in named_leaves(structure, name):
        if not isinstance(leaf, np.ndarray | np.generic):
            kind = type(leaf).__name__
            raise UnsupportedError(f"'{path}' is a {kind}: expected an array")
        if path in found:
            raise UnsupportedError(f"two arrays have the path '{path}': name them otherwise")
        found[path] = np.array(cast("Any", leaf), order="C")
    return found


def filled_with(structure: Any, arrays: Mapping[str, Any], name: str) -> Any:
    """A structure with arrays, by their paths, in the places of its leaves."""
    paths = iter([path for path, _ in named_leaves(structure, name)])
    return mapped(lambda _: arrays[next(paths)], _plain(structure))


def _plain(structure: Any) -> Any:
    """Mappings as dicts, which is what traces know."""
    if isinstance(structure, Mapping):
        items = cast("Mapping[Any, Any]", structure)
        return {k: _plain(v) for k, v in items.items()}
    return structure
