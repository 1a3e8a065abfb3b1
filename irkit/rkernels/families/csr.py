"""`csr`, `csr_dense` and `csr_reduce`: rows of a CSR matrix, by the elements that are stored."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from irkit.dialects import te
from irkit.dialects.csr_base import is_stored_length
from irkit.dialects.csr_steps import STEPS, Value, parsed
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.scalars import COMBINE, numba_type
from irkit.rkernels.family import Family, cuts_rows, leading_parts, of_floats

Csr = te.CsrDenseOp | te.CsrMatmulOp | te.CsrReduceOp
STORED_PER_ROW = 64
"""Elements of a row, of which none is known: those of a short document."""


class CsrRows(Family):
    """`RANGE` of whole rows, and `STORE`.

    `FIRST(OPERANDS, r)` and `LAST(OPERANDS, r)`, between which the places k of row r lie,
    `COLUMN(OPERANDS, k)` and `ELEMENT(OPERANDS, r, k, c)`. Of a product also the pointer `MATRIX`
    and its `COLUMNS`, of a reduction `INITIAL` and `COMBINE(acc, term)`,
    of dense rows `INITIAL` and their `COLUMNS`.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def refuses(self, root: Root) -> str | None:
        """Only `te.csr_dense`, `te.csr_matmul` or `te.csr_reduce`."""
        if not isinstance(root.op, Csr) or root.family != self.name:
            return "its root is no op on rows of a CSR matrix"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Rows stay whole."""
        return leading_parts(root, tasks, whole_rows=True)

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """Rows stay whole."""
        return cuts_rows(root, grid)

    def operations(self, root: Root, rows: int) -> float:
        """Two an element that is stored and a column of the result."""
        return super().operations(root, rows) * STORED_PER_ROW

    def bind(self, binder: Binder) -> None:
        """Arrays are read by pointer."""
        op = binder.root.op
        if not isinstance(op, Csr):
            raise UnsupportedError("rows of a CSR matrix of another root")
        binder.range()
        data, indices, starts, ends = (binder.pointer(v) for v in op.operands[:4])
        length = tensor_type(op.data).get_shape()
        known = not is_stored_length(length)
        for name, pointer in (("FIRST", starts), ("LAST", ends)):
            place = f"{pointer}[r]"
            _function(binder, name, "r", [_return(place, 0, length[1], known)])
        columns = _columns(op)
        column = _return(f"{indices}[k]", 0, columns - 1, known and columns > 1)
        _function(binder, "COLUMN", "k", [column])
        _function(binder, "ELEMENT", "r, k, c", _element(binder, op, data))
        if isinstance(op, te.CsrMatmulOp):
            binder.binding.names["MATRIX"] = binder.pointer(op.matrix)
            binder.literal("COLUMNS", tensor_type(op.matrix).get_shape()[1])
        elif isinstance(op, te.CsrDenseOp):
            binder.binding.names["INITIAL"] = _initial(op)
            binder.literal("COLUMNS", op.columns.value.data)
        else:
            binder.binding.names["INITIAL"] = _initial(op)
            combine = COMBINE[{"sum": "add"}.get(op.kind.data, op.kind.data)]
            binder.binding.function("COMBINE", "acc, term", [f"return {combine}"])
        binder.store("r, c, acc", lambda p: binder.index("r", "c", p), binder.accumulated)


def _initial(op: te.CsrDenseOp | te.CsrReduceOp) -> str:
    value = op.initial.value.data
    text = repr(value) if math.isfinite(value) else f"math.{value}".replace("math.-", "-math.")
    return f"{numba_type(tensor_type(op.y).element_type)}({text})"


def _function(binder: Binder, name: str, arguments: str, lines: list[str]) -> None:
    binder.binding.function(name, f"{binder.binding.operands}, {arguments}", lines)


def _return(text: str, low: int, high: int, known: bool) -> str:
    """What the host has not looked at is kept inside."""
    return f"return min(max({text}, {low}), {high})" if known else f"return {text}"


def _columns(op: Csr) -> int:
    """How many columns the rows have; 1 where nothing says so."""
    if isinstance(op, te.CsrMatmulOp):
        return tensor_type(op.matrix).get_shape()[0]
    if isinstance(op, te.CsrDenseOp):
        return op.columns.value.data
    vectors = [tensor_type(v).get_shape() for v in op.beside]
    return max((shape[0] for shape in vectors if len(shape) == 1), default=1)


def _element(binder: Binder, op: Csr, data: str) -> list[str]:
    """The steps, statement by statement."""
    names: dict[Value, str] = {("x", 0): "x"}
    lines = [f"x = {data}[k]"]
    beside = op.beside
    for number, value in enumerate(beside):
        names["a", number] = f"a{number}"
        lines.append(f"a{number} = {_beside(binder, value)}")
    last = "x"
    kinds = {"f32": "float32", "f64": "float64"}
    for number, (name, values) in enumerate(parsed(op.step_texts, len(beside))):
        text = STEPS[name].text.format(*(names[v] for v in values), t=kinds.get(name[:3], ""))
        last = names["s", number] = f"s{number}"
        lines.append(f"{last} = {text}")
    return [*lines, f"return {last}"]


def _beside(binder: Binder, value: SSAValue) -> str:
    """An operand of the steps where an element of row r and column c is."""
    t = tensor_type(value)
    at = "r" if t.get_num_dims() == 2 else "0" if t.get_shape()[0] == 1 else "c"
    text = f"{binder.pointer(value)}[{at}]"
    return f"{text} != 0" if t.element_type == i1 else text
