"""Walk a function forward: where the batch is in every value, and the ops at which rows of it mix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import NameLoc, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import WhileOp
from xdsl.ir import Operation, SSAValue

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.batch.dims import UNKNOWN, BatchDim, RowsMix, State
from irkit.dialects.graph.batch.rules import RULES, of_other_dialects
from irkit.dialects.segments import unmarked
from irkit.dialects.symbols import STORED, argument_symbols
from irkit.dialects.types import DYNAMIC, tensor_type


@dataclass(frozen=True)
class Mixing:
    """An op at which rows of the batch mix: of which operand, and why."""

    op: Operation
    operand: int
    reason: str

    def __str__(self) -> str:
        """`node 'n' (graph.x): the reason`, the node being that of the model which the op comes from."""
        where = unmarked(self.op.location)
        if isinstance(where, NameLoc):
            return f"node '{where.desc.data}' ({self.op.name}): {self.reason}"
        hint = self.op.results[0].name_hint if self.op.results else None
        name = f"'{self.op.name}'" if hint is None else f"'{self.op.name}' (%{hint})"
        return f"{name}: {self.reason}"


@dataclass
class BatchAnalysis:
    """What is known of the batch in a function's values; filled op by op, in the order of the text."""

    states: dict[SSAValue, State] = field(default_factory=dict[SSAValue, State])
    mixing: list[Mixing] = field(default_factory=list[Mixing])

    def of(self, value: SSAValue) -> State:
        """Where the batch is in a value; None if it has none."""
        return self.states.get(value)

    def argument(self, value: SSAValue) -> None:
        """A value that comes from outside: its dynamic dimension is the batch."""
        shape = tensor_type(value).get_shape() if isinstance(value.type, TensorType) else ()
        if DYNAMIC in shape:
            single = shape.count(DYNAMIC) == 1
            self.states[value] = BatchDim(shape.index(DYNAMIC)) if single else UNKNOWN

    def visit(self, op: Operation) -> None:
        """Note what an op, whose operands are known, does to the batch."""
        if isinstance(op, GraphOp):
            self.states.update(zip(op.results, self._results(op), strict=True))
            return
        if isinstance(op, WhileOp) and any(self.of(v) is not None for v in op.operands):
            self.mixing.append(Mixing(op, 0, "how often it turns hangs on all rows"))
        for value in op.results:
            self.argument(value)

    def _results(self, op: GraphOp) -> Sequence[State]:
        states = [self.of(v) for v in op.operands]
        dims = [s for s in states if s is not UNKNOWN]
        shapes = [tensor_type(r).get_shape() for r in op.results]
        unknown = [UNKNOWN if DYNAMIC in s else None for s in shapes]
        if len(dims) < len(states):
            return unknown
        try:
            found = RULES.get(type(op), of_other_dialects)(op, dims)
        except RowsMix as mix:
            self.mixing.append(Mixing(op, mix.operand, mix.reason))
            return unknown
        return found if any(dims) else [None] * len(found)

    def elsewhere(self) -> Sequence[SSAValue]:
        """The values in which the batch is not the leading dimension, or not that alone."""
        return [v for v, s in self.states.items() if isinstance(s, BatchDim) and not s.leads]


def analyse(function: FuncOp) -> BatchAnalysis:
    """The analysis of a function at the graph level."""
    found = BatchAnalysis()
    symbols = dict(zip(function.args, argument_symbols(function), strict=True))
    for block in function.body.blocks:
        for argument in block.args:
            if STORED not in symbols.get(argument, ()):
                found.argument(argument)
        for op in block.ops:
            found.visit(op)
    return found
