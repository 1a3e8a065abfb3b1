"""Constants that launches read, laid out anew: each once, whatever number of launches reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.constants import constant, constant_array
from irkit.dialects.task import LaunchOp, ROperatorOp
from irkit.weights import Array, WeightStore


def launches_of(module: ModuleOp, op: ROperatorOp) -> list[LaunchOp]:
    """The launches of an rOperator, in program order."""
    name = op.sym_name.data
    found = (o for o in module.walk() if isinstance(o, LaunchOp))
    return [o for o in found if o.callee.string_value() == name]


@dataclass
class LaidOut:
    """Makes constants of others; `known` has those that were made, by the other and how they are laid out."""

    weights: WeightStore
    known: dict[tuple[SSAValue, Any], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Any], SSAValue]
    )

    def is_known(self, launch: LaunchOp, number: int) -> bool:
        """Whether an operand is a constant."""
        return constant_array(launch.arguments[number], self.weights) is not None

    def give(
        self, launch: LaunchOp, number: int, how: Any, lay_out: Callable[[Array], Array]
    ) -> None:
        """Another constant in place of operand `number`; what nobody reads any more goes."""
        operand = launch.arguments[number]
        if (operand, how) not in self.known:
            array, owner = constant_array(operand, self.weights), operand.owner
            assert array is not None
            assert isinstance(owner, Operation)
            made = constant(lay_out(array), self.weights)
            made.location = launch.location
            Rewriter.insert_op(made, InsertPoint.after(owner))
            self.known[operand, how] = made.result
        given = list(launch.operands)
        given[number] = self.known[operand, how]
        launch.operands = given
        if isinstance(operand.owner, arith.ConstantOp) and not operand.uses:
            Rewriter.erase_op(operand.owner)
