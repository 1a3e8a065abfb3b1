"""`generated`: any one reduction, by the loop nest that its schedule makes of it."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.dialects.linalg_generic import combiner
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.family import Family
from irkit.rkernels.scheduled.block_layout import BlockLayout
from irkit.rkernels.scheduled.block_text import body_of_block
from irkit.rkernels.scheduled.layout import VECTORS
from irkit.rkernels.scheduled.layouts import layout_of
from irkit.rkernels.scheduled.text import body_of


class Generated(Family):
    """`NEST(OPERANDS, task, scratch)`: the whole of an rTask, printed from the rOperator's `schedule`.

    `INIT` and `STORE` take every index of the result: `STORE(OPERANDS, i0, i1, acc)`.
    """

    name = "generated"

    def refuses(self, root: Root) -> str | None:
        """One reduction with an associative combination, of numbers, and no batch."""
        if len(root.chain) != 1 or root.op is not root.chain[0]:
            return f"its root is of family '{root.family}'"
        if combiner(root.chain[0]) is None:
            return "its root is no one associative combination"
        if DYNAMIC in root.parallel:
            return "a schedule of a batch that is not known"
        if not root.parallel:
            return "a schedule of one number, whose parts are no index's"
        if tensor_type(root.chain[0].results[0]).element_type not in VECTORS:
            return "a schedule of elements that are no numbers"
        return None

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """The schedule says it (`bind`)."""
        return None

    def bind(self, binder: Binder) -> None:
        """The grid and the scratch are those of the schedule."""
        op = binder.op
        if op.schedule is None:
            raise UnsupportedError("a generated rKernel of an rOperator without a schedule")
        layout = layout_of(binder.target, binder.root, op.schedule)
        if (grid := ints(op.grid)) != layout.nest.grid:
            raise UnsupportedError(
                f"a grid {grid} of a schedule whose parts are {layout.nest.grid}"
            )
        if op.scratch_bytes != layout.scratch:
            raise UnsupportedError(
                f"{op.scratch_bytes} bytes of scratch: its schedule needs {layout.scratch}"
            )
        given = f"{binder.binding.operands}, task, scratch"
        if isinstance(layout, BlockLayout):
            binder.binding.function("NEST", given, body_of_block(binder, layout))
        else:
            binder.binding.function("NEST", given, body_of(binder, layout))
