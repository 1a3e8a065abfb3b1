"""Random ONNX models of one operator: element types, ranks 0 to 5, sizes 1, broadcasts, odd attributes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

FLOATS = ("float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
NUMBERS = FLOATS + SIGNED + UNSIGNED
SHIFTS = ("uint8", "uint16", "uint32", "uint64")
MOST_ELEMENTS = 400


@dataclass
class Case:
    """One node: arrays that are fed, arrays that are weights (in the order of the node's inputs)."""

    op: str
    inputs: list[Any]
    fixed: set[int] = field(default_factory=set[int])
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1
    opset: int = 20

    def model(self) -> ModelProto:
        """The case as a model of its own."""
        return together([self])

    def feeds(self, number: int = 0) -> dict[str, Any]:
        """What is fed to the case, by name; `number`: its place in a model of several."""
        return {
            f"i{number}_{n}": a
            for n, a in enumerate(self.inputs)
            if a is not None and n not in self.fixed
        }


def together(cases: Sequence[Case]) -> ModelProto:
    """The cases side by side in one model; all of one operator set."""
    nodes, weights = [], []
    for number, case in enumerate(cases):
        names = ["" if a is None else f"i{number}_{n}" for n, a in enumerate(case.inputs)]
        outputs = [f"o{number}_{n}" for n in range(case.outputs)]
        nodes.append(helper.make_node(case.op, names, outputs, **case.attributes))
        weights += [
            numpy_helper.from_array(case.inputs[n], f"i{number}_{n}") for n in sorted(case.fixed)
        ]
    feeds = {k: v for number, case in enumerate(cases) for k, v in case.feeds(number).items()}
    inputs = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for k, v in feeds.items()
    ]
    results = [helper.make_empty_tensor_value_info(n) for node in nodes for n in node.output]
    graph = helper.make_graph(nodes, "random", inputs, results, weights)
    operators = [helper.make_opsetid("", cases[0].opset)]
    return helper.make_model(graph, opset_imports=operators, ir_version=9)


def shape_of(rng: random.Random, least: int = 0, most: int = 5) -> tuple[int, ...]:
    while True:
        shape = tuple(rng.choice((1, 1, 2, 3, 4, 5)) for _ in range(rng.randint(least, most)))
        if np.prod(shape) <= MOST_ELEMENTS:
            return shape


def array_of(rng: random.Random, dtype: str, shape: Sequence[int], small: bool = False) -> Any:
    """Random elements; `small`: integers of one digit, and floats that are finite."""
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return numbers.integers(0, 2, shape).astype(kind)
    if kind.kind == "f":
        values = np.asarray(numbers.normal(size=shape) * rng.choice((1.0, 4.0))).astype(kind)
        if not small and rng.random() < 0.2:
            special = numbers.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1e30], shape)
            values = np.where(numbers.random(shape) < 0.2, special, values).astype(kind)
        return np.asarray(values)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    if small or rng.random() < 0.7:
        low, high = max(low, -9), 9
    return np.asarray(numbers.integers(low, high, shape, endpoint=True, dtype=kind))


def broadcast_of(rng: random.Random, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that broadcasts to `shape`."""
    cut = shape[rng.randint(0, len(shape)) :]
    return tuple(1 if rng.random() < 0.3 else s for s in cut)


def axis_of(rng: random.Random, rank: int) -> int:
    return rng.randint(-rank, rank - 1)


def axes_of(rng: random.Random, rank: int) -> list[int]:
    axes = rng.sample(range(rank), rng.randint(0, rank))
    return [a - rank if rng.random() < 0.3 else a for a in axes]


def whole(*values: int) -> Any:
    return np.array(values, np.int64)


def _unary(dtypes: Sequence[str]) -> Callable[[random.Random, str], Case]:
    def make(rng: random.Random, op: str) -> Case:
        return Case(op, [array_of(rng, rng.choice(dtypes), shape_of(rng))])

    return make


def _binary(dtypes: Sequence[str], **attributes: Any) -> Callable[[random.Random, str], Case]:
    def make(rng: random.Random, op: str) -> Case:
        shape, dtype = shape_of(rng), rng.choice(dtypes)
        shapes = [shape, broadcast_of(rng, shape)]
        rng.shuffle(shapes)
        arrays = [array_of(rng, dtype, s, small=op == "BitShift") for s in shapes]
        if op in ("Div", "Mod") and np.dtype(dtype).kind != "f":
            arrays[1][arrays[1] == 0] = 1
        fixed = {1} if rng.random() < 0.3 else set[int]()
        chosen = {k: rng.choice(v) for k, v in attributes.items()}
        if op == "Mod":
            chosen["fmod"] = 1 if dtype in FLOATS else rng.choice((0, 1))
        return Case(op, arrays, fixed, chosen)

    return make


def _reduce(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng)
    # ONNX Runtime rounds integers its own way where a sum goes through a logarithm or a root.
    whole_too = op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare")
    dtypes = ("float32", "float64", "int32", "int64") if whole_too else FLOATS
    # What it makes of NaN depends on the element type and on where it stands.
    x = array_of(rng, rng.choice(dtypes), shape, small=True)
    chosen: dict[str, Any] = {"keepdims": rng.choice((0, 1))}
    if rng.random() < 0.3:
        return Case(op, [x], attributes=chosen)
    chosen["noop_with_empty_axes"] = rng.choice((0, 1))
    return Case(op, [x, whole(*axes_of(rng, len(shape)))], {1}, chosen)


def _arg(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng, 1)
    x = array_of(rng, rng.choice(("float32", "float64", "int32")), shape, small=True)
    chosen = {
        "axis": axis_of(rng, len(shape)),
        "keepdims": rng.choice((0, 1)),
        "select_last_index": rng.choice((0, 1)),
    }
    return Case(op, [x], attributes=chosen)


def _softmax(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng, 1)
    x = array_of(rng, rng.choice(FLOATS), shape, small=op != "Softmax")
    return Case(op, [x], attributes={"axis": axis_of(rng, len(shape))}, opset=rng.choice((11, 20)))


def _transpose(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng)
    order = rng.sample(range(len(shape)), len(shape))
    chosen = {"perm": order} if rng.random() < 0.8 and order else {}
    return Case(op, [array_of(rng, rng.choice((*NUMBERS, "bool")), shape)], attributes=chosen)


def _slice(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng, 1)
    axes = axes_of(rng, len(shape)) or [0]
    ends = [
        (rng.randint(-6, 6), rng.choice((rng.randint(-6, 6), 1 << 62, -(1 << 62)))) for _ in axes
    ]
    steps = [rng.choice((1, 1, 2, -1, -2, 7)) for _ in axes]
    parts = [
        whole(*(s for s, _ in ends)),
        whole(*(e for _, e in ends)),
        whole(*axes),
        whole(*steps),
    ]
    return Case(op, [array_of(rng, rng.choice(NUMBERS), shape), *parts], {1, 2, 3, 4})


def _gather(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng, 1, 4)
    axis = axis_of(rng, len(shape))
    size = shape[axis]
    indices = shape_of(rng, 0, 2)
    if op == "GatherElements":
        indices = tuple(rng.randint(1, s) for s in shape)
        indices = tuple(
            rng.randint(1, 4) if d == axis % len(shape) else s for d, s in enumerate(indices)
        )
    number = np.random.default_rng(rng.randrange(1 << 30)).integers(-size, size, indices)
    at = np.asarray(number).astype(rng.choice(("int32", "int64")))
    x = array_of(rng, rng.choice(NUMBERS), shape)
    return Case(op, [x, at], {1} if rng.random() < 0.6 else set(), {"axis": axis})


def _concat(rng: random.Random, op: str) -> Case:
    shape, dtype = shape_of(rng, 1), rng.choice(NUMBERS)
    axis = axis_of(rng, len(shape))
    parts = []
    for _ in range(rng.randint(1, 4)):
        sizes = list(shape)
        sizes[axis] = rng.randint(1, 3)
        parts.append(array_of(rng, dtype, sizes))
    return Case(op, parts, {0} if len(parts) > 1 and rng.random() < 0.3 else set(), {"axis": axis})


def _split(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng, 1)
    axis = axis_of(rng, len(shape))
    count = rng.randint(1, shape[axis])
    cuts = sorted(rng.sample(range(1, shape[axis]), count - 1))
    sizes = np.diff([0, *cuts, shape[axis]])
    x = array_of(rng, rng.choice(NUMBERS), shape)
    return Case(op, [x, whole(*sizes)], {1}, {"axis": axis}, outputs=count)


def _pad(rng: random.Random, op: str) -> Case:
    shape, mode = shape_of(rng, 1, 4), rng.choice(("constant", "edge", "reflect"))
    most = 0 if mode == "reflect" and 1 in shape else min(*shape, 3, 3) - (mode == "reflect")
    least = -1 if mode == "constant" and 1 not in shape else 0
    pads = [rng.randint(least, max(most, 0)) for _ in range(2 * len(shape))]
    x = array_of(rng, rng.choice(("float32", "float64", "int32", "int64")), shape)
    parts = [x, whole(*pads)]
    if mode == "constant" and rng.random() < 0.5:
        parts.append(array_of(rng, str(x.dtype), ()))
    return Case(op, parts, set(range(1, len(parts))), {"mode": mode})


def _where(rng: random.Random, op: str) -> Case:
    shape, dtype = shape_of(rng), rng.choice(("float32", "float64", "int32", "int64", "uint8"))
    shapes = [shape, broadcast_of(rng, shape), broadcast_of(rng, shape)]
    rng.shuffle(shapes)
    arrays = [array_of(rng, d, s) for d, s in zip(("bool", dtype, dtype), shapes, strict=True)]
    return Case(op, arrays, {rng.randrange(3)} if rng.random() < 0.3 else set())


def _cast(rng: random.Random, op: str) -> Case:
    source, to = rng.choice((*NUMBERS, "bool")), rng.choice((*NUMBERS, "bool"))
    x = array_of(rng, source, shape_of(rng), small=True)
    # What a float beyond an integer's range becomes, nobody says.
    if np.dtype(source).kind == "f" and np.dtype(to).kind in "iu":
        x = np.asarray(np.clip(np.nan_to_num(x), 0 if np.dtype(to).kind == "u" else -9, 9))
    number = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    return Case(op, [x.astype(source)], attributes={"to": number})


def _clip(rng: random.Random, op: str) -> Case:
    dtype = rng.choice(NUMBERS)
    limits = [array_of(rng, dtype, (), small=True) if rng.random() < 0.8 else None for _ in "lh"]
    fixed = {n + 1 for n, v in enumerate(limits) if v is not None}
    return Case(op, [array_of(rng, dtype, shape_of(rng)), *limits], fixed)


def _cumsum(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng, 1)
    x = array_of(rng, rng.choice(("float32", "float64", "int32", "int64")), shape, small=True)
    axis = np.array(axis_of(rng, len(shape)), np.int64)
    chosen = {"exclusive": rng.choice((0, 1)), "reverse": rng.choice((0, 1))}
    return Case(op, [x, axis], {1}, chosen)


def _topk(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng, 1)
    axis = axis_of(rng, len(shape))
    x = array_of(rng, rng.choice(("float32", "float64", "int32", "int64")), shape, small=True)
    k = whole(rng.randint(1, shape[axis]))
    return Case(op, [x, k], {1}, {"axis": axis, "largest": rng.choice((0, 1))}, outputs=2)


def _matmul(rng: random.Random, op: str) -> Case:
    batch, (m, k, n) = shape_of(rng, 0, 2), (rng.randint(1, 4) for _ in "mkn")
    left = (*broadcast_of(rng, batch), m, k) if rng.random() < 0.8 else (k,)
    right = (*batch, k, n) if rng.random() < 0.8 else (k,)
    dtype = rng.choice(("float32", "float64", "int32", "int64"))
    arrays = [array_of(rng, dtype, s, small=True) for s in (left, right)]
    return Case(op, arrays, {1} if rng.random() < 0.5 else set())


def _gemm(rng: random.Random, op: str) -> Case:
    m, k, n = (rng.randint(1, 5) for _ in "mkn")
    chosen = {"transA": rng.choice((0, 1)), "transB": rng.choice((0, 1)),
              "alpha": rng.choice((1.0, 0.5, -2.0)), "beta": rng.choice((1.0, 0.25))}  # fmt: skip
    dtype = rng.choice(FLOATS)
    a = array_of(rng, dtype, (k, m) if chosen["transA"] else (m, k), small=True)
    b = array_of(rng, dtype, (n, k) if chosen["transB"] else (k, n), small=True)
    arrays = [a, b]
    if rng.random() < 0.7:
        arrays.append(array_of(rng, dtype, broadcast_of(rng, (m, n)), small=True))
    return Case(op, arrays, {1} if rng.random() < 0.5 else set(), chosen)


def _expand(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng)
    x = array_of(rng, rng.choice((*NUMBERS, "bool")), broadcast_of(rng, shape))
    return Case(op, [x, whole(*(1 if rng.random() < 0.2 else s for s in shape))], {1})


def _tile(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng, 1, 4)
    times = whole(*(rng.randint(1, 3) for _ in shape))
    return Case(op, [array_of(rng, rng.choice(NUMBERS), shape), times], {1})


def _reshape(rng: random.Random, op: str) -> Case:
    shape = shape_of(rng)
    x = array_of(rng, rng.choice((*NUMBERS, "bool")), shape)
    if op == "Flatten":
        return Case(op, [x], attributes={"axis": rng.randint(-len(shape), len(shape))})
    if op == "Squeeze":
        ones = [a for a, s in enumerate(shape) if s == 1]
        return Case(op, [x, whole(*ones)], {1}) if rng.random() < 0.7 else Case(op, [x])
    if op == "Unsqueeze":
        axes = rng.sample(range(-len(shape) - 2, 0), 2)
        return Case(op, [x, whole(*axes)], {1})
    to = list(rng.sample(shape, len(shape)))
    if to and rng.random() < 0.5:
        to[rng.randrange(len(to))] = -1
    return Case(op, [x, whole(*(to or [1]))], {1})


_TABLE: tuple[tuple[Callable[[random.Random, str], Case], str], ...] = (
    (_unary(FLOATS), "Ceil Cos Elu Erf Exp Floor HardSigmoid HardSwish LeakyRelu Log Mish Reciprocal"
     " Round Selu Sigmoid Sin Softplus Softsign Sqrt Tan Tanh ThresholdedRelu Atan IsNaN IsInf"),
    (_unary(FLOATS + SIGNED), "Abs Neg Relu Sign Identity"),
    (_unary(SIGNED + UNSIGNED), "BitwiseNot"),
    (_unary(("bool",)), "Not"),
    (_binary(NUMBERS), "Add Sub Mul Div Max Min Equal Less Greater LessOrEqual GreaterOrEqual Mod"),
    (_binary(SIGNED + UNSIGNED), "BitwiseAnd BitwiseOr BitwiseXor"),
    (_binary(("bool",)), "And Or Xor Equal"),
    (_binary(FLOATS), "PRelu"),
    (_binary(SHIFTS, direction=("LEFT", "RIGHT")), "BitShift"),
    (_reduce, "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum"
     " ReduceLogSumExp ReduceSumSquare"),
    (_arg, "ArgMax ArgMin"),
    (_softmax, "Softmax LogSoftmax Hardmax"),
    (_transpose, "Transpose"), (_slice, "Slice"), (_gather, "Gather GatherElements"),
    (_concat, "Concat"), (_split, "Split"), (_pad, "Pad"), (_where, "Where"), (_cast, "Cast"),
    (_clip, "Clip"), (_cumsum, "CumSum"), (_topk, "TopK"), (_matmul, "MatMul"), (_gemm, "Gemm"),
    (_expand, "Expand"), (_tile, "Tile"), (_reshape, "Reshape Flatten Squeeze Unsqueeze"),
)  # fmt: skip
OPS = tuple((make, op) for make, names in _TABLE for op in names.split())


def case_of(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    make, op = rng.choice(OPS)
    return make(rng, op)
