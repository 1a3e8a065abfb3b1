"""Same-level rewrites and lowerings, by name. Each line imports its pass only when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def _lazy(module: str, attribute: str) -> Callable[[], type[ModulePass]]:
    return lambda: getattr(importlib.import_module(f"irkit.{module}"), attribute)


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    # graph level
    # tensor level
    # task level
    # between levels
}
