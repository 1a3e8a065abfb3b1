"""Operands that a GPU's copy engine copies in boxes: what their tensor maps say (docs/emission.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from irkit.dialects.functions import is_composed
from irkit.dialects.task import CompositeOp, ROperatorOp

ROW_BYTES = 128
"""Of a row of a box, whose 16-byte chunks lie as `wgmma` reads them."""
LARGEST = 256
"""Elements of a box in any dimension."""


@dataclass(frozen=True)
class Boxed:
    """Operand number `operand` of an rOperator as its tensor map has it (`irkit.schedule.tables.TensorMap`),
    `first` bytes behind where it starts."""

    operand: int
    element: str
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    box: tuple[int, ...]
    first: int = 0


MapOf = Callable[..., Boxed]
"""The map of an operand, by root and parameters."""


def moves(op: ROperatorOp) -> bool:
    """Whether `op` is of a program with loops: operands may move with their turns, which maps cannot."""
    module = op.parent_op()
    return isinstance(module, ModuleOp) and any(
        isinstance(o, CompositeOp) or (isinstance(o, FuncOp) and is_composed(o)) for o in module.ops
    )
