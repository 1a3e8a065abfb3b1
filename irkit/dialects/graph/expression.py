"""A tensor expression as an op: one statement of the language of docs/expressions.md."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, cast

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, result_def, var_operand_def

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.inference import Props, fail
from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.types import DYNAMIC, Tensor, element_type, numpy_dtype, tensor, tensor_type
from irkit.expressions.binding import Step, bind, program_of
from irkit.expressions.ranges import Shape
from irkit.expressions.syntax import ExpressionError
from irkit.expressions.typing import DType


@irdl_op_definition
class ExpressionOp(GraphOp):
    """One statement of a tensor expression: each element of the result by an index expression of the operands.

    `text` reads the operands in their order, under names of its own. All extents are known. Indices run over
    the largest ranges over which no read is out of bounds, or those that the text says; an index that hangs on
    values of an operand is taken to the nearest element. Sums of floats have no fixed order; whole numbers
    wrap, `/` and `%` of them round down, and are 0 and the dividend's own rest 0 where the divisor is 0.
    `schedule` says how the loops over its indices are run.

    ```mlir
    %y = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)"}
      : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    ```
    """

    name = "graph.expression"
    CONTRACTS: ClassVar[bool] = True
    inputs = var_operand_def(TensorType)
    text = prop_def(StringAttr)
    schedule = opt_prop_def(ScheduleAttr)
    y = result_def(TensorType)
    assembly_format = "$inputs attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        for t in operands:
            if DYNAMIC in t.get_shape():
                raise fail(cls, "operands whose extents are known", t)
        text = cast(StringAttr, props["text"]).data
        try:
            step = statement_of(
                text,
                tuple(tuple(t.get_shape()) for t in operands),
                tuple(numpy_dtype(t.element_type) for t in operands),
            )
        except ExpressionError as error:
            raise fail(cls, "a text with a meaning", error) from None
        schedule = props.get("schedule")
        if isinstance(schedule, ScheduleAttr):
            _check_schedule(cls, schedule, step)
        return [tensor(element_type(step.dtype), step.domain.shape)]

    @property
    def step(self) -> Step:
        """The statement, over its ranges."""
        types = [tensor_type(v) for v in self.operands]
        return statement_of(
            self.text.data,
            tuple(tuple(t.get_shape()) for t in types),
            tuple(numpy_dtype(t.element_type) for t in types),
        )


def _check_schedule(op: type[GraphOp], schedule: ScheduleAttr, step: Step) -> None:
    """Every step may be taken. Raises VerifyException."""
    named = tuple(loop.name for loop in step.domain.loops)
    if schedule.schedule.loops != named:
        raise fail(op, f"a schedule for {', '.join(named)}", schedule)
    if not step.statement.operator:
        raise fail(op, "a schedule of a statement that reduces", schedule)
    try:
        schedule.nest([loop.size for loop in step.domain.loops], len(step.domain.parallel))
    except ExpressionError as error:
        raise fail(op, "a schedule whose steps may be taken", error) from None


@lru_cache(maxsize=2048)
def statement_of(text: str, shapes: tuple[Shape, ...], dtypes: tuple[DType, ...]) -> Step:
    """The one statement of a text, of tensors of these shapes and types. Raises ExpressionError."""
    program = program_of(text)
    steps, _ = bind(program, shapes, dtypes)
    if len(steps) != 1:
        raise ExpressionError(f"{len(steps)} statements in place of one")
    if steps[0].operands != tuple(p.name for p in program.parameters):
        raise ExpressionError("operands that are not read")
    return steps[0]


OPS: list[type[GraphOp]] = [ExpressionOp]
