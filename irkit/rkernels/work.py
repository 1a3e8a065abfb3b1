"""What an rTask does, in kinds of work, and what that costs: one function for all rKernels and devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import SSAValue

from irkit.dialects.roperator_root import Root
from irkit.dialects.task.rates import RATES, Lane
from irkit.dialects.tensor_ops.registry import in_memory
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.fused_work import Counts, element_counts, term_counts, term_loads, words
from irkit.schedule.model import VDevice

TYPICAL_ROWS = 1024
"""The batch is not known when rTasks are cut; costs are compared for this many rows."""


@dataclass(frozen=True)
class Work:
    """Units of each kind of work (`irkit.dialects.task.rates.RATES`)."""

    units: Mapping[str, float] = field(default_factory=dict[str, float])

    def __add__(self, other: Work) -> Work:
        kinds = {**self.units, **other.units}
        return Work({k: self.units.get(k, 0.0) + other.units.get(k, 0.0) for k in kinds})

    def __mul__(self, times: float) -> Work:
        return Work({kind: units * times for kind, units in self.units.items()})

    def nanoseconds(self, device: VDevice) -> float:
        """Its time on one vEU: the slowest of arithmetic, memory and waits, and what overlaps with none.

        Raises UnsupportedError where the device has no rate for it.
        """
        lanes: dict[Lane, float] = {"compute": 0.0, "memory": 0.0, "latency": 0.0, "serial": 0.0}
        for kind, units in self.units.items():
            if units > 0:
                lanes[RATES[kind].lane] += units * device.rate(kind)
        return lanes["serial"] + max(lanes["compute"], lanes["memory"], lanes["latency"])


def work(**units: float) -> Work:
    """`work(fma=4096, row=2)`: units by kind."""
    unknown = units.keys() - RATES.keys()
    assert not unknown, f"no kind of work: {unknown}"
    return Work(units)


def total(parts: Iterable[Work]) -> Work:
    """The sum of all."""
    found = Work()
    for part in parts:
        found = found + part
    return found


def largest_share(size: int, parts: int, batch: int = TYPICAL_ROWS) -> float:
    """The extent of a loop in the largest of its parts; of the batch its share, which need not be whole."""
    return max(1.0, batch / parts) if size == DYNAMIC else math.ceil(size / parts)


@dataclass(frozen=True)
class Part:
    """The largest rTask that a grid makes of a root, on a vEU of `threads` threads.

    An rKernel counts its work from here; a batch counts as `batch` rows.
    """

    root: Root
    grid: Sequence[int]
    threads: int = 1
    batch: int = TYPICAL_ROWS

    @cached_property
    def sizes(self) -> tuple[float, ...]:
        """Extents of its parallel loops."""
        return tuple(
            largest_share(size, parts, self.batch)
            for size, parts in zip(self.root.parallel, self.grid, strict=True)
        )

    @property
    def elements(self) -> float:
        """Elements of the root's parallel loops."""
        return math.prod(self.sizes)

    @property
    def width(self) -> float:
        """Extent of the last parallel loop: a run of elements."""
        return self.sizes[-1] if self.sizes else 1.0

    @property
    def rows(self) -> float:
        """Runs of elements: the parallel loops but the last."""
        return self.elements / max(self.width, 1.0)

    @property
    def terms(self) -> int:
        """Terms of one output."""
        return math.prod(self.root.reduction)

    def rounds(self, elements: float, at_once: float) -> int:
        """How often `at_once` elements are taken until all are done."""
        return math.ceil(elements / at_once)

    def share(self, dims: Sequence[int]) -> float:
        """Extent of a group of loops in this part; those behind the parallel ones are whole."""
        sizes = (*self.sizes, *self.root.reduction)
        return math.prod(sizes[d] for d in dims)

    @property
    def lanes(self) -> float:
        """How many times four bytes an element of the root takes."""
        if self.root.value is None:
            return 1.0
        return words(tensor_type(self.root.value).element_type)

    def _once(self, name: str, count: Callable[[], Counts]) -> Work:
        """Work that every part of the root has alike, counted for the first of them."""
        found: Work | None = self.root.counted.get(name)
        if found is None:
            found = self.root.counted[name] = Work(dict(count()))
        return found

    def load(self, value: SSAValue) -> Work:
        """What it takes to have one element of `value`, an operand of the root: its prologue."""
        return Work(dict(element_counts([value], None)))

    def fused(self, value: SSAValue) -> Work:
        """What is fused before an operand of the root; nothing where it is read from memory."""
        return Work() if in_memory(value) is not None else self.load(value)

    @cached_property
    def loads(self) -> Work:
        """What it takes to have an element of each of the root's operands."""
        op = self.root.op
        operands = op.operands if op is not None else ()
        return self._once("loads", lambda: total(self.load(v) for v in operands).units)

    @cached_property
    def term(self) -> Work:
        """One term of a sum, outputs side by side: an element of each of the root's inputs, combined."""
        loops = len(self.root.parallel)
        return self._once("term", lambda: term_counts(self.root.chain[-1], loops - 1))

    @cached_property
    def next_term(self) -> Work:
        """The same, one term of an output after another."""
        loops = len(self.root.parallel) + len(self.root.reduction)
        return self._once("next term", lambda: term_counts(self.root.chain[-1], loops - 1))

    @cached_property
    def term_loads(self) -> int:
        """Operands in memory that one term of a sum reads."""
        return term_loads(self.root.chain[-1])

    @cached_property
    def store(self) -> Work:
        """What it takes to have one element of every result, the root's being there: its epilogue."""
        body = self.root.body
        if body is None or body.last_op is None:
            return work(op=1)
        results = list(body.last_op.operands)
        return self._once("store", lambda: element_counts(results, self.root.value))
