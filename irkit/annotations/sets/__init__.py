"""Annotations that come with irkit, by the package that they are for: read when a traced function uses it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping

SETS: Mapping[str, tuple[str, ...]] = {"scipy": ("irkit.annotations.sets.ndimage",)}
"""Package → modules here, each with `annotate_all()`."""
FURTHER: dict[str, list[Callable[[], None]]] = {}
"""Package → what else annotates its functions."""
_LOADED: set[str] = set()


def load_sets(package: str) -> None:
    """Annotate the functions of a package that was imported."""
    if package in _LOADED or package not in sys.modules:
        return
    _LOADED.add(package)
    for name in SETS.get(package, ()):
        importlib.import_module(name).annotate_all()
    for annotate_all in FURTHER.get(package, ()):
        annotate_all()
