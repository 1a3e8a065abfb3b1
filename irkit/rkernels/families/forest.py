"""`forest`, `heap_forest`, `packed_forest` and `perfect_forest`: tree ensembles, walked."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.scalars import numba_type
from irkit.rkernels.family import Family, cuts_rows, leading_parts, of_floats

_LINKED = (
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
)
_PACKED = ("X", "PACKED", "VALUE", "ROOT", "OUTPUT", "BASE")
_PERFECT = ("X", "FEATURE", "THRESHOLD", "NAN_LEFT", "VALUE", "OUTPUT", "BASE")
_HEAP = ("X", "HEAP", "VALUE", "OUTPUT", "BASE")
_OPERANDS = {
    te.ForestOp: _LINKED,
    te.HeapForestOp: _HEAP,
    te.PackedForestOp: _PACKED,
    te.PerfectForestOp: _PERFECT,
}
_COMPARISONS = {"le": "<=", "lt": "<"}


AnyForest = te.ForestOp | te.HeapForestOp | te.PackedForestOp | te.PerfectForestOp


def walked(root: Root) -> AnyForest:
    """The op of a root of one of these families."""
    op = root.op
    assert isinstance(op, AnyForest)
    return op


def visits(root: Root) -> tuple[int, int]:
    """Nodes that a row visits at most, and values of leaves that it adds up."""
    op = walked(root)
    trees = tensor_type(op.output).get_shape()[0]
    return trees * op.depth.value.data, trees * tensor_type(op.value).get_shape()[-1]


def most_leaves(root: Root) -> int | None:
    """Leaves of the largest tree, of trees that lie in order (`te.forest`)."""
    op = root.op
    return op.leaves.value.data if isinstance(op, te.ForestOp) and op.leaves else None


def inner_nodes(root: Root) -> float:
    """Nodes of all trees that compare something, of trees that are linked."""
    op = root.op
    assert isinstance(op, te.ForestOp)
    return (tensor_type(op.feature).get_shape()[0] - tensor_type(op.root).get_shape()[0]) / 2


def columns(root: Root) -> int:
    """Sums that a row has."""
    return tensor_type(walked(root).base).get_shape()[0]


class Forest(Family):
    """`RANGE` of whole rows, a pointer for each array of the forest, its sizes, `GO_LEFT` and `STORE`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def refuses(self, root: Root) -> str | None:
        """Only `te.<name>`."""
        op = root.op
        if not isinstance(op, AnyForest) or root.family != self.name:
            return f"its root is no te.{self.name}"
        if op.comparison.data not in _COMPARISONS:
            return f"comparison '{op.comparison.data}'"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Rows stay whole."""
        return leading_parts(root, tasks, whole_rows=True)

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """Rows stay whole."""
        return cuts_rows(root, grid)

    def operations(self, root: Root, rows: int) -> float:
        """A comparison a level of every tree, for each output."""
        return super().operations(root, rows) * visits(root)[0]

    def bind(self, binder: Binder) -> None:
        """Arrays are read by pointer."""
        op = binder.root.op
        if not isinstance(op, AnyForest):
            raise UnsupportedError("a forest of another root")
        binder.range()
        order = _OPERANDS[type(op)]
        for name, operand in zip(order, op.operands, strict=True):
            binder.binding.names[name] = binder.pointer(operand)
        shapes = {n: tensor_type(v).get_shape() for n, v in zip(order, op.operands, strict=True)}
        comparison = op.comparison.data
        binder.binding.names |= {
            "FEATURES": str(shapes["X"][1]),
            "TREES": str(shapes["OUTPUT"][0]),
            "COLUMNS": str(shapes["BASE"][0]),
            "WIDTH": str(shapes["VALUE"][-1]),
            "DEPTH": str(op.depth.value.data),
            "INPUT": numba_type(tensor_type(op.x).element_type),
            "INPUTS": f"{numba_type(tensor_type(op.x).element_type)}p",
            "LT": str(int(comparison == "lt")),
            "LEAVES": str(most_leaves(binder.root) or 0),
        }
        if isinstance(op, te.ForestOp | te.PerfectForestOp):
            binder.binding.names["NODES"] = str(shapes["FEATURE"][-1])
        if isinstance(op, te.ForestOp | te.PackedForestOp):
            _node(binder, packed=isinstance(op, te.PackedForestOp))
        else:
            _level_node(binder, op)
        symbol = _COMPARISONS[comparison]
        binder.binding.function(
            "GO_LEFT",
            "x, threshold, nan_left",
            # Bitwise: a branch a node would cost more than the comparison.
            [f"return (x {symbol} threshold) | ((nan_left != 0) & (x != x))"],
        )
        binder.store("r, c, acc", lambda p: binder.index("r", "c", p), binder.accumulated)


def _node(binder: Binder, packed: bool) -> None:
    """`NODE(OPERANDS, n)`: feature, threshold, whether NaN goes left, left and right child of node n."""
    names = binder.binding.names
    if packed:
        lines = [
            f"threshold, word, near = packed_node({names['PACKED']}, n, {names['X']})",
            "return word & int32(0x7FFFFFFF), threshold, word < int32(0), near, int32(near + 1)",
        ]
    else:
        arrays = ("FEATURE", "THRESHOLD", "NAN_LEFT", "LEFT", "RIGHT")
        feature, threshold, nan_left, near, far = (f"{names[a]}[n]" for a in arrays)
        lines = [f"return {feature}, {threshold}, {nan_left} != 0, {near}, {far}"]
    binder.binding.function("NODE", f"{binder.binding.operands}, n", lines)


def _level_node(binder: Binder, op: te.HeapForestOp | te.PerfectForestOp) -> None:
    """`LEVEL_NODE(OPERANDS, n)`: feature, threshold, whether NaN goes left, of node n of all trees, of which
    the first of tree t is `SPAN * t + FIRST`."""
    names, heap = binder.binding.names, isinstance(op, te.HeapForestOp)
    slots = 1 << op.depth.value.data
    names["SPAN"], names["FIRST"] = str(slots if heap else slots - 1), str(int(heap))
    names["NODES"] = str(slots - 1)
    if heap:
        lines = [
            f"word, threshold = heap_node({names['HEAP']}, n, {names['X']})",
            "return int32(word & uint32(0x7FFFFFFF)), threshold, word >> uint32(31)",
        ]
    else:
        arrays = (f"{names[a]}[n]" for a in ("FEATURE", "THRESHOLD", "NAN_LEFT"))
        lines = [f"return {', '.join(arrays)}"]
    binder.binding.function("LEVEL_NODE", f"{binder.binding.operands}, n", lines)
