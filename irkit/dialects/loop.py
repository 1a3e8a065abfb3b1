"""The `loop` dialect: how a nest of loops is run, apart from what it computes.

A schedule is an attribute, whose text is that of docs/expressions.md: the names of the loops and operands, and
steps, each of them checked. It stands on an op of the graph level as the user wrote it, on a contraction or
reduction of the tensor level as `irkit.schedule`, and on an rOperator as what was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from irkit.expressions.loops import Nest
from irkit.expressions.nest import nest_of
from irkit.expressions.steps import Schedule, schedule_of
from irkit.expressions.syntax import ExpressionError

SCHEDULE = "irkit.schedule"
"""The attribute of a `linalg.generic` that is to be run by a schedule, and no other way."""


@irdl_attr_definition
class ScheduleAttr(ParametrizedAttribute):
    """Steps that make of a nest of loops the one that is run: `bind` (to vEUs, or to threads of a block),
    `split`, `fuse`, `reorder`, `unroll`, `vectorize`, `tensorise` and `cache` (`irkit/expressions/nest.py`). The loops that it names first are the nest's, in order.

    ```mlir
    #loop.schedule<"for m, n, k of A, B; split n by 16 as no, ni; reorder no, m, k, ni; vectorize ni">
    ```
    """

    name = "loop.schedule"
    text: StringAttr

    @staticmethod
    def of(schedule: Schedule) -> ScheduleAttr:
        """As an attribute, in one spelling."""
        return ScheduleAttr(StringAttr(str(schedule)))

    @property
    def schedule(self) -> Schedule:
        """The steps."""
        return schedule_of(self.text.data)

    def nest(self, sizes: Sequence[int], parallel: int) -> Nest:
        """What it makes of loops of these extents, the first `parallel` of them those of the result.

        Raises ExpressionError for a step that may not be taken.
        """
        return nest_of(self.schedule, sizes, parallel)

    def verify(self) -> None:
        try:
            named = self.schedule.loops
        except ExpressionError as error:
            raise VerifyException(f"'{self.name}' expects a schedule: {error}") from None
        if not named:
            raise VerifyException(f"'{self.name}' expects `for` and the names of the loops first")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_str_literal())]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.text.data)


def schedule_on(op: Operation | None) -> ScheduleAttr | None:
    """By what `op` says that it is to be run; None where it says nothing."""
    found = None if op is None else op.attributes.get(SCHEDULE)
    return found if isinstance(found, ScheduleAttr) else None


Loop = Dialect("loop", [], [ScheduleAttr])
