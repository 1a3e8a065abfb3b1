"""What the rTasks of a module's rOperators touch, as the scheduler's plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import ModuleOp

from irkit.dialects.access_boxes import operand_boxes
from irkit.dialects.task import AlternativeAttr, ROperatorOp
from irkit.dialects.types import ints
from irkit.passes.task.same_bodies import digests, meanings_of
from irkit.rkernels import registry
from irkit.schedule.model import Access, Boxes, Launch, Option, VDevice

# Of an rOperator that `partition-rtasks` has not seen.
_UNKNOWN_COST_NS = 1000.0


class _Known(NamedTuple):
    """Boxes of an rOperator by grid, while its body is the one of a digest."""

    body: str
    boxes: dict[tuple[int, ...], Sequence[Boxes]]


# Every pass of a schedule asks for the same: what an rTask touches hangs on its body and the grid alone.
_known: WeakKeyDictionary[ROperatorOp, _Known] = WeakKeyDictionary()


class RTaskFootprints:
    """What each rTask of each rOperator touches, found once per symbol and grid, when it is asked for."""

    def __init__(self, module: ModuleOp, device: VDevice) -> None:
        self.device = device
        self.roperators = {op.sym_name.data: op for op in module.ops if isinstance(op, ROperatorOp)}
        self._digests = digests(module)
        self._meanings = meanings_of(self._digests)
        self._options: dict[str, tuple[Option, ...]] = {}

    def launch(self, name: str, symbol: str, reads: list[int], writes: list[int]) -> Launch:
        """A use of `symbol` on these buffers: with options, and as the first of them, where its rOperator
        has alternatives."""
        op = self.roperators[symbol]
        options = self._options_of(symbol)
        boxes = options[0].boxes() if options else self._boxes(symbol, None)
        uses = [Access(b, x) for b, x in zip((*reads, *writes), boxes, strict=True)]
        return Launch(
            name,
            symbol,
            options[0].tasks if options else op.tasks,
            tuple(uses[: len(reads)]),
            tuple(uses[len(reads) :]),
            options[0].cost_ns if options else _cost_ns(op),
            options[0].scratch_bytes if options else op.scratch_bytes,
            op.in_place_pairs,
            options,
            whole=(lambda: self._boxes(symbol, ())) if options else None,
            computes=self._meanings[symbol],
            maps=self._maps(op),
        )

    def _maps(self, op: ROperatorOp) -> int:
        """How many tensor maps its rTasks are given, once it has an rKernel."""
        if op.rkernel is None or self.device.kind != "cuda":
            return 0
        return len(registry.find("cuda", op.rkernel.data).maps)

    def _options_of(self, symbol: str) -> tuple[Option, ...]:
        if symbol not in self._options:
            offered = self.roperators[symbol].alternatives
            found = () if offered is None else offered.data
            self._options[symbol] = tuple(self._option(symbol, a) for a in found)
        return self._options[symbol]

    def _option(self, symbol: str, offered: AlternativeAttr) -> Option:
        return Option(
            offered.tasks,
            offered.cost_ns,
            offered.scratch_bytes,
            lambda: self._boxes(symbol, offered.grid),
            offered.rkernel,
            offered.costs,
        )

    def _boxes(self, symbol: str, grid: tuple[int, ...] | None) -> Sequence[Boxes]:
        """Boxes of reads, then of writes. An empty grid is one part, no grid is the op's own."""
        op, body = self.roperators[symbol], self._digests[symbol]
        grid = tuple(ints(op.grid)) if grid is None else grid
        known = _known.get(op)
        if known is None or known.body != body:
            known = _known[op] = _Known(body, {})
        if grid not in known.boxes:
            reads, writes = operand_boxes(op, grid)
            known.boxes[grid] = [*reads, *writes]
            for boxes in known.boxes[grid]:
                boxes.setflags(write=False)
        return known.boxes[grid]


def _cost_ns(op: ROperatorOp) -> float:
    return op.cost.value.data if op.cost is not None else _UNKNOWN_COST_NS
