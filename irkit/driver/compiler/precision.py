"""What `irkit.compile(precision=...)` says of a model's contractions, on its functions."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from irkit.dialects.precision import NAMES, Precision, set_precision
from irkit.errors import UnsupportedError


def check_precision(name: Any) -> None:
    """Raises UnsupportedError for what is no precision."""
    if name is not None and name not in NAMES:
        raise UnsupportedError(f"precision={name!r}: expected one of {', '.join(NAMES)}")


def ask_precision(module: ModuleOp, name: str | None) -> None:
    """Replace what the functions of `module` ask for; None leaves it. `set-precision` carries it out."""
    if name is None:
        return
    for op in module.ops:
        if isinstance(op, FuncOp):
            set_precision(op, Precision(name))
