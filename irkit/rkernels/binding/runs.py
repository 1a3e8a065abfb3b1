"""`LOAD_RUN` and `STORE_RUN`: what `INIT` and `STORE` do, of four elements that lie side by side.

They are read and written at once. `LOAD_RUN` gives what is read, so that what several runs read is on its way
together; `STORE_RUN` takes it. Four accumulators are given, of rows m to m + 3 where the product is
TRANSPOSED, else of columns c to c + 3. `RUN` is 1 where all parts of the grid begin and end at multiples of
four and every result can be written so; an operand that cannot be read so is read one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import BlockArgument, SSAValue

from irkit.dialects.products import Product
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, linear, strides
from irkit.rkernels.binding.inserted import inserted_of

TOGETHER = 4
_LANES = range(TOGETHER)


def run_loops(product: Product) -> tuple[int, ...]:
    """The loops whose elements lie side by side in the result."""
    return product.m if product.transposed else product.columns


def in_fours(product: Product, grid: Sequence[int]) -> bool:
    """Whether the run and its parts begin and end at multiples of four."""
    loops = run_loops(product)
    if DYNAMIC in product.extents(loops) or product.extent(loops) % TOGETHER:
        return False
    cut = [d for d in loops if grid[d] > 1]
    if not cut:
        return True
    size, parts = product.sizes[cut[-1]], grid[cut[-1]]
    inner = math.prod(product.sizes[d] for d in loops if d > cut[-1])
    outer = 1 if len(cut) == 1 else size * inner
    starts = [size * n // parts * inner for n in range(parts)]
    return not any(n % TOGETHER for n in (*starts, outer * (len(cut) > 1)))


@dataclass
class RunPrinter(ElementPrinter):
    """Prints an element of each lane; what lies side by side in an operand is read at once.

    `lanes` are the names of the index that runs. `numbers` are the operands that are read so, `loads` the
    names of what a line reads.
    """

    lanes: tuple[str, ...] = ()
    numbers: set[int] = field(default_factory=set[int])
    loads: dict[int, list[str]] = field(default_factory=dict[int, list[str]])

    def _element(self, value: SSAValue, index: Index) -> str:
        known = not isinstance(value, BlockArgument) or value in self.known
        if known or not self._runs(value, index):
            return super()._element(value, index)
        assert isinstance(value, BlockArgument)
        own = [self._fresh() for _ in _LANES]
        first = linear((*index[:-1], self.lanes[0]), tensor_type(value).get_shape())
        self.loads[len(self.lines)] = own
        self.line(f"{', '.join(own)} = load4({self._pointer(value)}, {first})")
        self.numbers.add(value.index)
        for name, lane in zip(own, self.lanes, strict=True):
            self.remember(value, (*index[:-1], lane), name)
        return own[self.lanes.index(index[-1])]

    def _runs(self, value: SSAValue, index: Index) -> bool:
        return bool(index) and index[-1] in self.lanes and whole(value, index)

    def _pointer(self, value: BlockArgument) -> str:
        return self.results.get(value.index, f"p{value.index}")

    def _fresh(self) -> str:
        found = f"w{self._count[0]}"
        self._count[0] += 1
        return found


def whole(value: SSAValue, index: Index) -> bool:
    """Whether fours along the last dimension are whole, in memory as floats of at most 32 bits."""
    t = tensor_type(value)
    if not isinstance(t.element_type, Float32Type | BFloat16Type | Float16Type):
        return False
    steps = zip(index[:-1], strides(t.get_shape()), strict=False)
    return all(i == "0" or step % TOGETHER == 0 for i, step in steps)


def store_run(
    b: Binder, product: Product, index: Callable[[ElementPrinter], Index], grid: Sequence[int]
) -> None:
    """`RUN`, `LOAD_RUN(OPERANDS, b, m, l, c)` and `STORE_RUN(OPERANDS, b, m, l, c, a0, a1, a2, a3, loaded)`;
    `index` is the element's in the result."""
    found = in_fours(product, grid) and not b.binding.batch
    lines = _lines(b, product, index) if found else None
    b.literal("RUN", int(lines is not None))
    load, store = lines or (["return (float32(0),)"], ["return"])
    given = ", ".join(f"a{i}" for i in _LANES)
    place = f"{b.binding.operands}, b, m, l, c"
    b.binding.function("LOAD_RUN", place, load)
    b.binding.function("STORE_RUN", f"{place}, {given}, loaded", store)


def _lines(
    b: Binder, product: Product, index: Callable[[ElementPrinter], Index]
) -> tuple[list[str], list[str]] | None:
    """The bodies of `LOAD_RUN` and `STORE_RUN`; None where results cannot be written so."""
    letter, values = "m" if product.transposed else "c", b.op.terminator.values
    lanes = (letter, *(f"{letter}{i}" for i in _LANES[1:]))
    printer = RunPrinter(results=b.written_over(), lanes=lanes)
    for lane, i in zip(lanes[1:], _LANES[1:], strict=True):
        printer.line(f"{lane} = {letter} + {i}")
    where = index(printer)
    places: list[Index] = [(*where[:-1], lane) for lane in lanes]
    shapes = {tuple(tensor_type(v).get_shape()) for v in values}
    if where[-1] != letter or shapes != {b.root.parallel}:
        return None
    if any(inserted_of(v) is not None or not whole(v, where) for v in values):
        return None
    assert b.root.value is not None
    start = b.root.chain[0].outputs[0]
    sums = {
        place: printer.name(f"a{i} + {printer.element(start, place)}")
        for i, place in enumerate(places)
    }
    printer.known[b.root.value] = sums.__getitem__
    stores: list[str] = []
    for number, value in enumerate(values, len(b.block.args)):
        found = ", ".join(printer.element(value, place) for place in places)
        stores.append(f"store4(p{number}, {linear(places[0], b.root.parallel)}, {found})")
        b.binding.wide.add(number)
    b.binding.wide |= printer.numbers
    return _before_and_behind(printer, stores)


def _before_and_behind(printer: RunPrinter, stores: list[str]) -> tuple[list[str], list[str]]:
    """What reads all that is read at once, and what computes and stores with it.

    The compiler drops from the first what it has no use for.
    """
    nothing = " = ".join(f"a{i}" for i in _LANES) + " = float32(0)"
    read = [name for names in printer.loads.values() for name in names]
    last = max(printer.loads, default=-1)
    returned = f"return ({', '.join(read)},)" if read else "return (float32(0),)"
    load = [nothing, *printer.lines[: last + 1], returned] if read else [returned]
    store = list(printer.lines)
    for number, names in printer.loads.items():
        taken = ", ".join(f"loaded[{read.index(name)}]" for name in names)
        store[number] = f"{', '.join(names)} = {taken}"
    return load, [*store, *stores]
