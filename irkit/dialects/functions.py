"""The functions of a module."""

from __future__ import annotations

from typing import TypeGuard

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.scf import ForOp, WhileOp
from xdsl.ir import Operation

BUDGET = "irkit.budget"
"""How many bytes a function of calls may have in use at once, beside arguments, results and state."""


def function_named(module: ModuleOp, name: str) -> FuncOp | None:
    """The function `name` of a module, if there is one; it may be a declaration."""
    functions = (op for op in module.ops if isinstance(op, FuncOp))
    return next((f for f in functions if f.sym_name.data == name), None)


def is_composed(function: FuncOp) -> bool:
    """Whether a function calls others, in loops or not: its ops are those of its parts."""
    return any(
        isinstance(op, CallOp | ForOp | WhileOp) for b in function.body.blocks for op in b.ops
    )


def is_straight(op: Operation) -> TypeGuard[FuncOp]:
    """Whether an op is a function with a body whose ops are its own: what passes over functions take."""
    return isinstance(op, FuncOp) and bool(op.body.blocks) and not is_composed(op)
