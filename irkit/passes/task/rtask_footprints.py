"""What the rTasks of a module's rOperators touch, as the scheduler's plain data."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from irkit.dialects.access_boxes import operand_boxes
from irkit.dialects.task import ROperatorOp
from irkit.schedule.model import Access, Boxes, Launch, VDevice

# Of an rOperator that `partition-rtasks` has not seen.
_UNKNOWN_COST_NS = 1000.0


class RTaskFootprints:
    """What each rTask of each rOperator touches, found once per symbol."""

    def __init__(self, module: ModuleOp, device: VDevice) -> None:
        self.device = device
        self.roperators = {op.sym_name.data: op for op in module.ops if isinstance(op, ROperatorOp)}
        self._boxes: dict[str, tuple[list[Boxes], list[Boxes]]] = {}

    def launch(self, name: str, symbol: str, reads: list[int], writes: list[int]) -> Launch:
        """A use of `symbol` on these buffers."""
        op = self.roperators[symbol]
        if symbol not in self._boxes:
            self._boxes[symbol] = operand_boxes(op)
        read_boxes, write_boxes = self._boxes[symbol]
        return Launch(
            name,
            symbol,
            op.tasks,
            tuple(Access(b, x) for b, x in zip(reads, read_boxes, strict=True)),
            tuple(Access(b, x) for b, x in zip(writes, write_boxes, strict=True)),
            op.cost.value.data if op.cost is not None else _UNKNOWN_COST_NS,
            op.scratch_bytes,
            op.in_place_pairs,
        )
