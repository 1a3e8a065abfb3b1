"""Fused functions of an rOperator: what its rKernel's placeholders stand for (docs/emission.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.builtin import StringAttr, i1
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineMap

from irkit.dialects import te
from irkit.dialects.graph.forest import ForestBase
from irkit.dialects.regions import grid_of
from irkit.dialects.roots import Root, combiner, find_root, gemm_inputs, maps, row_term
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import UnsupportedError
from irkit.lower.task_to_numba.elements import (
    ElementPrinter,
    Index,
    delinearised,
    linear,
)
from irkit.lower.task_to_numba.product import bind_product
from irkit.lower.task_to_numba.scalars import numba_type
from irkit.lower.task_to_numba.tiles import bind_tiles

# Element types that emitted modules have pointers to; booleans are bytes.
_ELEMENTS = frozenset(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)) | {
    "float32",
    "float64",
}
_COMBINE = {
    "add": "acc + term",
    "mul": "acc * term",
    "max": "acc if (acc > term or acc != acc) else term",
    "min": "acc if (acc < term or acc != acc) else term",
}


@dataclass
class Binding:
    """What the placeholders of one rOperator's rKernel become, and the functions they name."""

    symbol: str
    pointers: list[str]
    pointer_types: list[str]
    names: dict[str, str] = field(default_factory=dict[str, str])
    functions: list[str] = field(default_factory=list[str])
    resident: bool = False
    scratch_bytes: int = 0
    batch: bool = False

    @property
    def operands(self) -> str:
        """`p0, p1, ...`"""
        return ", ".join(self.pointers)

    def function(self, placeholder: str, arguments: str, lines: Sequence[str]) -> None:
        """Add a fused function `<symbol>_<placeholder>(arguments)`."""
        name = f"{self.symbol}_{placeholder.lower()}"
        self.names[placeholder] = name
        body = "\n".join(f"    {line}" for line in lines)
        self.functions.append(f"@fused\ndef {name}({arguments}):\n{body}\n")


class Binder:
    """Binds one rOperator."""

    def __init__(self, op: ROperatorOp) -> None:
        self.op, self.block = op, op.body.block
        self.root: Root = find_root(self.block)
        values = [*self.block.args, *op.terminator.values]
        types = [numba_type(tensor_type(v).element_type) for v in values]
        if unknown := sorted(set(types) - _ELEMENTS):
            raise UnsupportedError(
                f"emission of @{op.sym_name.data}: elements of type {', '.join(unknown)}"
            )
        self.binding = Binding(op.sym_name.data, [f"p{i}" for i in range(len(values))], types)
        self.binding.names["OPERANDS"] = self.binding.operands
        self.binding.batch = self.root.parallel[:1] == (DYNAMIC,)
        rank = len(self.root.parallel)
        split = self.root.family != "argmax" and rank > 0
        if rank == 1 and self.root.parallel[0] == DYNAMIC:
            split = False
        self.lead = self.root.parallel[: rank - 1] if split else self.root.parallel
        self.last = self.root.parallel[-1] if split else 1
        self.split = split

    def bind(self, family: str) -> Binding:
        """Everything that an rKernel of `family` needs."""
        self._literal("J", self.last)
        self._literal("ROWS", 0 if DYNAMIC in self.lead else math.prod(self.lead))
        value = self.root.value if self.root.value is not None else self.op.terminator.values[0]
        self.binding.names["FLOAT"] = numba_type(tensor_type(value).element_type)
        _FAMILIES[family](self)
        return self.binding

    def _literal(self, name: str, value: int) -> None:
        self.binding.names[name] = str(value)

    # Index helpers

    def index(self, r: str, j: str, printer: ElementPrinter) -> Index:
        """Index into the root's parallel dimensions, names bound in `printer`."""
        lead = [printer.name(i) for i in delinearised(r, self.lead)]
        return (*lead, j) if self.split else tuple(lead)

    def range(self) -> None:
        """`RANGE(task, tasks, rows)`: this rTask's part of rows r and columns j."""
        grid = grid_of(self.op, self.root)
        lead = grid[: len(self.lead)]
        across = grid[-1] if self.split else 1
        axis = max((d for d, g in enumerate(lead) if g > 1), default=0)
        if any(g != s for g, s in zip(lead[:axis], self.lead, strict=False)):
            raise UnsupportedError(
                f"emission of grid {grid} of @{self.op.sym_name.data}: dimensions before the last "
                "that is cut must be cut into single elements"
            )
        inner = math.prod(self.lead[axis + 1 :])
        lines: list[str] = []
        if not self.lead:
            lines.append("r0, r1, number = 0, 1, task")
        elif self.lead[0] == DYNAMIC:
            scale = "" if inner == 1 else f" * {inner}"
            lines.append(f"r0 = (rows * task) // tasks{scale}")
            lines.append(f"r1 = (rows * (task + 1)) // tasks{scale}")
            lines.append("number = 0")
        else:
            size, parts = self.lead[axis], lead[axis]
            lines.append(f"number = task % {across}")
            lines.append(f"part = (task // {across}) % {parts}")
            lines.append(f"outer = task // {across * parts}")
            lines.append(f"r0 = (outer * {size} + ({size} * part) // {parts}) * {inner}")
            lines.append(f"r1 = (outer * {size} + ({size} * (part + 1)) // {parts}) * {inner}")
        lines.append(f"j0 = ({self.last} * number) // {across}")
        lines.append(f"j1 = ({self.last} * (number + 1)) // {across}")
        lines.append("return r0, r1, j0, j1")
        self.binding.function("RANGE", "task, tasks, rows", lines)

    def units(self) -> None:
        """`UNITS(task, tasks)`: this rTask's part of dimension u; all of it where rows are shared."""
        size = self.root.parallel[1]
        part = f"return ({size} * task) // tasks, ({size} * (task + 1)) // tasks"
        if self.root.parallel[0] == DYNAMIC:
            part = f"return 0, {size}"
        self.binding.function("UNITS", "task, tasks", [part])

    # Pieces shared by families

    def store(
        self,
        arguments: str,
        index: Callable[[ElementPrinter], Index],
        accumulator: Callable[[Index], str],
    ) -> None:
        """`STORE`: the epilogue of one element of the root, into every result."""
        printer = ElementPrinter()
        where = index(printer)
        if self.root.value is not None:
            printer.known[self.root.value] = accumulator
        first = len(self.block.args)
        for number, value in enumerate(self.op.terminator.values):
            at = where[: tensor_type(value).get_num_dims()]
            text = printer.element(value, at)
            if tensor_type(value).element_type == i1:
                text = f"uint8(1) if {text} else uint8(0)"
            position = linear(at, tensor_type(value).get_shape())
            printer.line(f"p{first + number}[{position}] = {text}")
        self.binding.function("STORE", f"{self.binding.operands}, {arguments}", printer.lines)

    def load(
        self,
        placeholder: str,
        arguments: str,
        value: SSAValue,
        index: Callable[[ElementPrinter], Index],
    ) -> None:
        """A function that returns one element of `value`."""
        printer = ElementPrinter()
        printer.line(f"return {printer.element(value, index(printer))}")
        self.binding.function(placeholder, f"{self.binding.operands}, {arguments}", printer.lines)

    def init(self, arguments: str, index: Callable[[ElementPrinter], Index]) -> None:
        """`INIT`: what the accumulation starts from."""
        self.load("INIT", arguments, self.root.chain[0].outputs[0], index)

    def rj_index(self, printer: ElementPrinter) -> Index:
        """The index that variables r and j stand for."""
        return self.index("r", "j", printer)


def _map(b: Binder) -> None:
    b.range()
    b.store("r, j", b.rj_index, lambda index: "")


def _scalar_accumulator(index: Index) -> str:
    return "acc"


def _reduction_index(b: Binder, printer: ElementPrinter) -> Index:
    """Names of the reduction indices: k0 stands for all but the last two."""
    extents = b.root.reduction
    if len(extents) <= 3:
        return tuple(f"k{i}" for i in range(len(extents)))
    lead = [printer.name(i) for i in delinearised("k0", extents[:-2])]
    return (*lead, "k1", "k2")


def _reduce(b: Binder) -> None:
    b.range()
    b.init("r, j", b.rj_index)
    extents = list(b.root.reduction)
    if len(extents) > 3:
        extents = [math.prod(extents[:-2]), *extents[-2:]]
    for number, extent in enumerate([*extents, 1, 1, 1][:3]):
        b.binding.names[f"K{number}"] = str(extent)
    op = b.root.chain[-1]
    found = combiner(op)
    if found is None or len(b.root.chain) != 1:
        raise UnsupportedError("a reduction whose body is not one associative combination")
    printer = ElementPrinter()
    loops = (*b.rj_index(printer), *_reduction_index(b, printer))
    (term,) = printer.body(op, printer.inputs(op, loops), loops, skip=found[1])
    printer.line(f"return {term}")
    arguments = f"{b.binding.operands}, r, j, k0, k1, k2"
    b.binding.function("TERM", arguments, printer.lines)
    b.binding.function("COMBINE", "acc, term", [f"return {_COMBINE[found[0]]}"])
    b.store("r, j, acc", b.rj_index, _scalar_accumulator)


def _gemm(b: Binder) -> None:
    b.range()
    b.init("r, j", b.rj_index)
    op, order = b.root.chain[-1], gemm_inputs(b.root)
    assert order is not None
    b.binding.names["K"] = str(b.root.reduction[0])
    for placeholder, arguments, number in (
        ("LOAD_A", "r, k", order[0]),
        ("LOAD_B", "k, j", order[1]),
    ):
        amap = maps(op)[number]

        def index(
            printer: ElementPrinter, amap: AffineMap = amap, rows: bool = "r" in arguments
        ) -> Index:
            lead = b.index("r", "j", printer)[:-1] if rows else ("0",) * len(b.lead)
            loops = (*lead, "j", "k")
            return tuple(printer.affine(e, loops) for e in amap.results)

        b.load(placeholder, arguments, op.inputs[number], index)
    b.store("r, j, acc", b.rj_index, _scalar_accumulator)


def _row_terms(b: Binder) -> None:
    """`gemv` and `recurrent_cell`."""
    b.units()
    batch, _, *group = b.root.parallel
    b.binding.names |= {
        "B": "0" if batch == DYNAMIC else str(batch),
        # What `range` takes: the rTask's share of the rows.
        "BATCH": "(rows * task) // tasks, (rows * (task + 1)) // tasks"
        if batch == DYNAMIC
        else str(batch),
        "U": str(b.root.parallel[1]),
        "G": str(math.prod(group)),
        "TERMS": str(len(b.root.chain)),
    }
    for number, op in enumerate(b.root.chain):
        term = row_term(op)
        if term is None:
            raise UnsupportedError("a contraction that is not row by row")
        b.binding.names[f"X{number}"] = _pointer(term.x)
        b.binding.names[f"W{number}"] = _pointer(term.w)
        b.binding.names[f"K{number}"] = str(term.k)
    b.init("b, u, g", lambda p: ("b", "u", *[p.name(i) for i in delinearised("g", group)]))

    def accumulator(index: Index) -> str:
        return f"acc[{linear(index[2:], group)}]" if group else "acc[0]"

    b.store("b, u, acc", lambda p: ("b", "u"), accumulator)


def _pointer(value: SSAValue) -> str:
    while isinstance(value.owner, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
        value = value.owner.src
    if not isinstance(value, BlockArgument):
        raise UnsupportedError("a row-wise contraction of a computed operand")
    return f"p{value.index}"


def _softmax(b: Binder) -> None:
    assert isinstance(b.root.op, te.SoftmaxOp)
    b.range()
    b.load("LOAD", "r, j", b.root.op.x, b.rj_index)
    b.store("r, j, acc", b.rj_index, _scalar_accumulator)


def _argmax(b: Binder) -> None:
    assert isinstance(b.root.op, te.ArgmaxOp)
    b.range()
    b.binding.names["K0"] = str(b.root.reduction[0])
    b.load("LOAD", "r, k", b.root.op.x, lambda p: (*b.index("r", "0", p), "k"))
    b.store("r, acc", lambda p: b.index("r", "0", p), _scalar_accumulator)


def _forest(b: Binder) -> None:
    op = b.root.op
    assert isinstance(op, ForestBase | te.PerfectForestOp)
    b.range()
    order = [
        "X",
        "FEATURE",
        "THRESHOLD",
        "LEFT",
        "RIGHT",
        "NAN_LEFT",
        "VALUE",
        "ROOT",
        "OUTPUT",
        "BASE",
    ]
    if isinstance(op, te.PerfectForestOp):
        order = ["X", "FEATURE", "THRESHOLD", "NAN_LEFT", "VALUE", "OUTPUT", "BASE"]
    for name, operand in zip(order, op.operands, strict=True):
        b.binding.names[name] = _pointer(operand)
    shapes = {n: tensor_type(v).get_shape() for n, v in zip(order, op.operands, strict=True)}
    b.binding.names |= {
        "FEATURES": str(shapes["X"][1]),
        "TREES": str(shapes["OUTPUT"][0]),
        "COLUMNS": str(shapes["BASE"][0]),
        "WIDTH": str(shapes["VALUE"][-1]),
        "DEPTH": str(op.depth.value.data),
        "NODES": str(shapes["FEATURE"][-1]),
        "INPUT": numba_type(tensor_type(op.x).element_type),
    }
    comparison: StringAttr = op.comparison
    symbol = {"le": "<=", "lt": "<"}[comparison.data]
    b.binding.names["LT"] = str(int(comparison.data == "lt"))
    b.binding.function(
        "GO_LEFT",
        "x, threshold, nan_left",
        # Bitwise: a branch a node would cost more than the comparison.
        [f"return (x {symbol} threshold) | ((nan_left != 0) & (x != x))"],
    )
    b.store("r, c, acc", lambda p: b.index("r", "c", p), _scalar_accumulator)


_FAMILIES: dict[str, Callable[[Binder], None]] = {
    "map": _map,
    "reduce": _reduce,
    "pool": _reduce,
    "conv": _reduce,
    "gemm": _gemm,
    "gemv": _row_terms,
    "recurrent_cell": _row_terms,
    "softmax": _softmax,
    "argmax": _argmax,
    "forest": _forest,
    "perfect_forest": _forest,
    "product": bind_product,
    "tiles": bind_tiles,
}
