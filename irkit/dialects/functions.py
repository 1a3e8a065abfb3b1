"""The functions of a module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp


def function_named(module: ModuleOp, name: str) -> FuncOp | None:
    """The function `name` of a module, if there is one; it may be a declaration."""
    functions = (op for op in module.ops if isinstance(op, FuncOp))
    return next((f for f in functions if f.sym_name.data == name), None)
