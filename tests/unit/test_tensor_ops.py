"""Models of tensor-level ops: every op has one, whole, and all that it says of an op agrees."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

import irkit
from irkit import extending
from irkit.context import IrkitContext
from irkit.dialects import te
from irkit.dialects.access_boxes import operand_boxes
from irkit.dialects.levels import LEVELS, SLICES
from irkit.dialects.task import ROperatorOp
from irkit.dialects.tensor_ops import registry
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.interp.tensor import evaluate_op
from irkit.passes.task.form_roperators import FormROperators
from irkit.rkernels.binding.elements import ElementPrinter
from irkit.weights import Array, WeightStore

MODELS: dict[type[Operation], TensorOpModel[Any]] = registry._MODELS  # pyright: ignore[reportPrivateUsage]
# Of modules from elsewhere: they are interpreted, and stand at no level.
INTERPRETED = {tensor.CastOp, tensor.SplatOp}


def admitted(level: str, parent: str) -> set[str]:
    """Names of the ops that may stand in `parent`, each op of a dialect by itself."""
    names = LEVELS[level].inside[parent]
    all_of_te = {op.name for op in te.Te.operations} if "te.*" in names else set[str]()
    return {n for n in names if "*" not in n} | all_of_te


# Calls in loops, and the places that hang on these, compute nothing.
CALLS = admitted("tensor", "scf.for") - SLICES - {"arith.constant"} | {"scf.for"}
BODIES = {*admitted("tensor", "func.func") - CALLS, *admitted("verified", "task.roperator")}


@pytest.mark.parametrize(
    "name", sorted(BODIES - {"func.return", "task.yield", "te.row_reduce", "te.yield"})
)
def test_every_admitted_op_has_a_whole_model(name: str):
    (model,) = (type(m) for op, m in MODELS.items() if op.name == name)
    assert model.operand_boxes is not TensorOpModel[Any].operand_boxes
    assert not registry.is_partial(model())
    if model.family == "":
        assert model.element is not TensorOpModel[Any].element


def test_no_op_is_known_that_stands_nowhere():
    assert {op for op in MODELS if op.name not in BODIES} == INTERPRETED


# One op each, on static shapes: operands are the function's arguments, unless they are written out.

OPS = {
    "elementwise": """
      func.func @main(%a: tensor<3x4xf32>, %b: tensor<4xf32>, %e: tensor<4x3xf32>) {
        %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
            affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]}
            ins(%a, %b : tensor<3x4xf32>, tensor<4xf32>) outs(%e : tensor<4x3xf32>) {
          ^bb0(%p: f32, %q: f32, %o: f32):
            %s = arith.subf %p, %q : f32
            linalg.yield %s : f32
        } -> tensor<4x3xf32>
        func.return }""",
    "windows": """
      func.func @main(%a: tensor<9xf32>, %e: tensor<3x2xf32>) {
        %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i * 3 + j + 1)>,
            affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
            ins(%a : tensor<9xf32>) outs(%e : tensor<3x2xf32>) {
          ^bb0(%p: f32, %o: f32):
            linalg.yield %p : f32
        } -> tensor<3x2xf32>
        func.return }""",
    "row sums": """
      func.func @main(%a: tensor<4x5xf32>, %e: tensor<4xf32>) {
        %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
            iterator_types = ["parallel", "reduction"]}
            ins(%a : tensor<4x5xf32>) outs(%e : tensor<4xf32>) {
          ^bb0(%p: f32, %o: f32):
            %s = arith.addf %o, %p : f32
            linalg.yield %s : f32
        } -> tensor<4xf32>
        func.return }""",
    "constant": """
      func.func @main() {
        %0 = arith.constant dense<2.5> : tensor<2x3xf32>
        func.return }""",
    "fill": """
      func.func @main(%e: tensor<2x3xi64>) {
        %c = arith.constant 7 : i64
        %0 = linalg.fill ins(%c : i64) outs(%e : tensor<2x3xi64>) -> tensor<2x3xi64>
        func.return }""",
    "pad": """
      func.func @main(%a: tensor<3x4xf32>) {
        %0 = tensor.pad %a low[1, 0] high[2, 1] {
          ^bb0(%i: index, %j: index):
            %c = arith.constant 9.0 : f32
            tensor.yield %c : f32
        } : tensor<3x4xf32> to tensor<6x5xf32>
        func.return }""",
    "negative pad": """
      func.func @main(%a: tensor<7xf32>) {
        %0 = tensor.pad %a low[-2] high[1] {
          ^bb0(%i: index):
            %c = arith.constant 9.0 : f32
            tensor.yield %c : f32
        } : tensor<7xf32> to tensor<6xf32>
        func.return }""",
    "slice": """
      func.func @main(%a: tensor<5x9xf32>) {
        %0 = tensor.extract_slice %a[1, 2] [3, 3] [1, 3] : tensor<5x9xf32> to tensor<3x3xf32>
        func.return }""",
    "backward slice": """
      func.func @main(%a: tensor<6xf32>) {
        %0 = tensor.extract_slice %a[5] [3] [-2] : tensor<6xf32> to tensor<3xf32>
        func.return }""",
    "collapse": """
      func.func @main(%a: tensor<2x3x4xf32>) {
        %0 = tensor.collapse_shape %a [[0], [1, 2]] : tensor<2x3x4xf32> into tensor<2x12xf32>
        func.return }""",
    "collapse all": """
      func.func @main(%a: tensor<2x3xf32>) {
        %0 = tensor.collapse_shape %a [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
        func.return }""",
    "expand": """
      func.func @main(%a: tensor<2x12xf32>) {
        %0 = tensor.expand_shape %a [[0], [1, 2]] output_shape [2, 3, 4]
          : tensor<2x12xf32> into tensor<2x3x4xf32>
        func.return }""",
    "concat": """
      func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x1xf32>, %c: tensor<2x2xf32>) {
        %0 = tensor.concat dim(1) %a, %b, %c
          : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x6xf32>
        func.return }""",
    "gather": """
      func.func @main(%a: tensor<2x5x3xf32>, %i: tensor<4x2xi64>) {
        %0 = te.gather %a, %i {axis = 1 : i64}
          : (tensor<2x5x3xf32>, tensor<4x2xi64>) -> tensor<2x4x2x3xf32>
        func.return }""",
    "gather elements": """
      func.func @main(%a: tensor<2x5xf32>, %i: tensor<2x3xi64>) {
        %0 = te.gather_elements %a, %i {axis = 1 : i64}
          : (tensor<2x5xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
        func.return }""",
    "softmax": """
      func.func @main(%a: tensor<3x4xf32>) {
        %0 = te.softmax %a : (tensor<3x4xf32>) -> tensor<3x4xf32>
        func.return }""",
    "layer norm": """
      func.func @main(%a: tensor<3x4xf32>) {
        %0 = te.layer_norm %a {epsilon = 1.0e-5 : f64, centred = true} : (tensor<3x4xf32>) -> tensor<3x4xf32>
        func.return }""",
    "rows": """
      func.func @main(%a: tensor<3x4xf32>, %b: tensor<4x3xf32>, %c: tensor<3x1xf32>) {
        %0 = te.rowwise %a, %b, %c [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>,
            affine_map<(d0, d1) -> (d0, 0)>] {
        ^bb0(%1: f32, %2: f32, %3: f32):
          %4 = te.row_reduce %2 {kind = "max"} : f32
          %5 = arith.subf %1, %4 : f32
          %6 = te.row_reduce %5 {kind = "add"} : f32
          %7 = arith.addf %6, %3 : f32
          %8 = arith.divf %5, %7 : f32
          te.yield %8 : f32
        } : (tensor<3x4xf32>, tensor<4x3xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
        func.return }""",
    "sums of rows": """
      func.func @main(%a: tensor<2x3x4xf32>) {
        %0 = te.rowwise %a [affine_map<(d0, d1, d2) -> (d0, d1, d2)>] {
        ^bb0(%1: f32):
          %2 = te.row_reduce %1 {kind = "min"} : f32
          %3 = arith.subf %1, %2 : f32
          %4 = te.row_reduce %3 {kind = "add"} : f32
          te.yield %4 : f32
        } : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
        func.return }""",
    "packed terms": """
      func.func @main(%a: tensor<20x35xf32>) {
        %0 = te.pack %a {precision = "float32", terms = 1 : i64, depth = 35 : i64}
          : (tensor<20x35xf32>) -> tensor<2x3x3x8x32xbf16>
        func.return }""",
    "packed terms of columns": """
      func.func @main(%a: tensor<35x2x10xf32>) {
        %0 = te.pack %a {precision = "tf32", terms = 0 : i64, depth = 35 : i64}
          : (tensor<35x2x10xf32>) -> tensor<2x1x3x8x32xf32>
        func.return }""",
    "attention": """
      func.func @main(%q: tensor<2x3x4xf32>, %k: tensor<1x5x4xf32>, %v: tensor<2x5x2xf32>,
          %m: tensor<3x1xf32>) {
        %0 = te.attention %q, %k, %v, %m
            {scale = 0.5 : f64, causal = 0 : i64, permutation = array<i64: 1, 0, 2>}
          : (tensor<2x3x4xf32>, tensor<1x5x4xf32>, tensor<2x5x2xf32>, tensor<3x1xf32>) -> tensor<3x2x2xf32>
        func.return }""",
    "attention query gradient": """
      func.func @main(%q: tensor<2x3x4xf32>, %k: tensor<1x5x4xf32>, %v: tensor<2x5x2xf32>,
          %c: tensor<2x3x2xf32>, %m: tensor<3x1xf32>) {
        %0 = te.attention_query_gradient %q, %k, %v, %c, %m {scale = 0.5 : f64, causal = 0 : i64}
          : (tensor<2x3x4xf32>, tensor<1x5x4xf32>, tensor<2x5x2xf32>, tensor<2x3x2xf32>, tensor<3x1xf32>)
            -> tensor<2x3x6xf32>
        func.return }""",
    "attention key gradient": """
      func.func @main(%q: tensor<2x3x4xf32>, %k: tensor<1x5x4xf32>, %v: tensor<2x5x2xf32>,
          %c: tensor<2x3x2xf32>, %s: tensor<2x3x6xf32>, %m: tensor<5xf32>) {
        %0 = te.attention_key_gradient %q, %k, %v, %c, %s, %m {scale = 0.5 : f64}
          : (tensor<2x3x4xf32>, tensor<1x5x4xf32>, tensor<2x5x2xf32>, tensor<2x3x2xf32>, tensor<2x3x6xf32>,
             tensor<5xf32>) -> tensor<2x5x6xf32>
        func.return }""",
    "argmax": """
      func.func @main(%a: tensor<3x4xf32>) {
        %0 = te.argmax %a : (tensor<3x4xf32>) -> tensor<3xi64>
        func.return }""",
    "gemvt": """
      func.func @main(%a: tensor<7x3xf64>, %x: tensor<3xf64>, %r: tensor<7xf64>) {
        %0 = te.gemvt %a, %x, %r {parts = 3 : i64}
          : (tensor<7x3xf64>, tensor<3xf64>, tensor<7xf64>) -> tensor<3x6xf64>
        func.return }""",
    "gemvt of itself": """
      func.func @main(%a: tensor<4x3xf32>, %x: tensor<3xf32>) {
        %0 = te.gemvt %a, %x {parts = 2 : i64} : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<2x5xf32>
        func.return }""",
    "nibbles": """
      func.func @main(%x: tensor<3x4xf32>, %q: tensor<2x2x64xui8>, %s: tensor<2x2x64xf32>) {
        %0 = te.nibble_matmul %x, %q, %s {block = 2 : i64, columns = 70 : i64}
          : (tensor<3x4xf32>, tensor<2x2x64xui8>, tensor<2x2x64xf32>) -> tensor<3x70xf32>
        func.return }""",
    "top k": """
      func.func @main(%a: tensor<3x6xf32>) {
        %0 = te.top_k %a {k = 2 : i64, largest = true} : (tensor<3x6xf32>) -> tensor<3x2xi64>
        func.return }""",
    "scatter add": """
      func.func @main(%a: tensor<5x3xf32>, %i: tensor<7xi64>, %u: tensor<7x3xf32>) {
        %0 = te.scatter_add %a, %i, %u
          : (tensor<5x3xf32>, tensor<7xi64>, tensor<7x3xf32>) -> tensor<5x3xf32>
        func.return }""",
    "csr dense": """
      func.func @main(%d: tensor<1x9xf32>, %i: tensor<1x9xi32>, %s: tensor<5xi64>, %e: tensor<5xi64>) {
        %0 = te.csr_dense %d, %i, %s, %e {columns = 4 : i64, initial = 0.5 : f64}
          : (tensor<1x9xf32>, tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>) -> tensor<5x4xf32>
        func.return }""",
    "csr product": """
      func.func @main(%d: tensor<1x9xf32>, %i: tensor<1x9xi32>, %s: tensor<5xi64>, %e: tensor<5xi64>,
          %w: tensor<4x3xf32>, %c: tensor<4xf32>, %r: tensor<5x1xf32>) {
        %0 = te.csr_matmul %d, %i, %s, %e, %w, %c, %r {steps = ["mul x a0", "div s0 a1"]}
          : (tensor<1x9xf32>, tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>, tensor<4x3xf32>, tensor<4xf32>,
             tensor<5x1xf32>) -> tensor<5x3xf32>
        func.return }""",
    "csr sums": """
      func.func @main(%d: tensor<1x9xf32>, %i: tensor<1x9xi32>, %s: tensor<5xi64>, %e: tensor<5xi64>,
          %r: tensor<5x1xf32>) {
        %0 = te.csr_reduce %d, %i, %s, %e, %r {kind = "sum", initial = 0.0 : f64, steps = ["mul x a0"]}
          : (tensor<1x9xf32>, tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>, tensor<5x1xf32>)
            -> tensor<5x1xf32>
        func.return }""",
    "perfect forest": """
      func.func @main(%x: tensor<5x4xf32>, %f: tensor<2x3xi32>, %t: tensor<2x3xf32>, %n: tensor<2x3xi1>,
          %v: tensor<2x4x1xf64>, %o: tensor<2xi32>, %b: tensor<3xf64>) {
        %0 = te.perfect_forest %x, %f, %t, %n, %v, %o, %b {comparison = "le", depth = 2 : i64}
          : (tensor<5x4xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xi1>, tensor<2x4x1xf64>,
             tensor<2xi32>, tensor<3xf64>) -> tensor<5x3xf64>
        func.return }""",
}
LIGHT = {
    name
    for name in OPS
    if name
    not in (
        "row sums",
        "softmax",
        "layer norm",
        "rows",
        "sums of rows",
        "argmax",
        "top k",
        "perfect forest",
    )
    and not name.startswith(("attention", "gemvt", "nibbles", "packed terms", "csr", "scatter"))
}
RNG = np.random.default_rng(3)


def parsed(name: str) -> Operation:
    """The op of a case, the last before the end of its function."""
    module = irkit.parse(OPS[name], name)
    op = list(module.body.block.first_op.regions[0].block.ops)[-2]  # pyright: ignore
    _KEPT.append(module)
    return op


_KEPT: list[Any] = []


def operands_of(op: Operation) -> list[Array]:
    """Random arrays; indices and features are small and not negative."""
    found: list[Array] = []
    for value in op.operands:
        if isinstance(value.owner, Operation):
            found.extend(evaluate_op(value.owner, [], WeightStore()))
            continue
        t = tensor_type(value)
        dtype = numpy_dtype(t.element_type)
        array = (
            RNG.integers(0, 3, t.get_shape()) if dtype.kind != "f" else RNG.random(t.get_shape())
        )
        found.append(array.astype(dtype))
    return found


def random_box(shape: Sequence[int]) -> Box:
    """A box that is not empty."""
    ends = [sorted(RNG.choice(n + 1, 2, replace=False)) for n in shape]
    return tuple((int(a), int(b)) for a, b in ends)


def at(box: Box) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in box)


@pytest.mark.parametrize("name", OPS)
def test_what_lies_outside_the_boxes_does_not_matter(name: str):
    op = parsed(name)
    model = registry.model_of(op)
    assert model is not None
    shape = tensor_type(op.results[0]).get_shape()
    for _ in range(20):
        arrays, needed = operands_of(op), random_box(shape)
        boxes = model.operand_boxes(op, [needed], Extents(1))
        scrambled = operands_of(op)
        for mine, true, box in zip(scrambled, arrays, boxes, strict=True):
            if box is not None and all(a < b for a, b in box):
                assert all(a >= 0 and b <= n for (a, b), n in zip(box, true.shape, strict=True))
                mine[at(box)] = true[at(box)]
        (want,), (got,) = (evaluate_op(op, a, WeightStore()) for a in (arrays, scrambled))
        assert np.array_equal(got[at(needed)], want[at(needed)])


def test_boxes_of_one_rtask_are_not_those_of_another():
    """What was found of an op for the first stays, but for where it lies."""
    for shares in (1, 3):
        extents, ops = Extents(shares), [parsed(name) for name in OPS]
        for _ in range(3):
            for op in ops:
                model = registry.model_of(op)
                assert model is not None
                needed = [random_box(tensor_type(op.results[0]).get_shape())]
                fresh = model.operand_boxes(op, needed, Extents(shares))
                assert model.operand_boxes(op, needed, extents) == fresh


@pytest.mark.parametrize("name", sorted(LIGHT))
def test_elements_as_text_are_those_of_the_meaning(name: str):
    op = parsed(name)
    arrays = operands_of(op)
    (want,) = evaluate_op(op, arrays, WeightStore())
    printer = ElementPrinter()
    index = tuple(f"i{d}" for d in range(want.ndim))
    text = "\n".join([*printer.lines, f"value = {printer.element(op.results[0], index)}"])
    code = compile("\n".join([*printer.lines, text]), name, "exec")
    space = {"math": math, "float32": np.float32, "int64": np.int64}
    space |= {f"p{n}": a.ravel() for n, a in enumerate(_arguments(op, arrays))}
    for where in itertools.product(*(range(n) for n in want.shape)):
        values = space | dict(zip(index, where, strict=True))
        exec(code, values)
        assert values["value"] == want[where]


def _arguments(op: Operation, arrays: Sequence[Array]) -> list[Array]:
    """Arrays of the values that come from outside."""
    pairs = zip(op.operands, arrays, strict=True)
    return [array for value, array in pairs if not isinstance(value.owner, Operation)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("elementwise", Kind.LIGHT),
        ("row sums", Kind.HEAVY),
        ("softmax", Kind.HEAVY),
        ("layer norm", Kind.HEAVY),
        ("attention", Kind.HEAVY),
        ("attention key gradient", Kind.HEAVY),
        ("constant", Kind.FREE),
        ("fill", Kind.FREE),
        ("pad", Kind.LIGHT),
        ("slice", Kind.LIGHT),
        ("backward slice", Kind.LIGHT),
        ("collapse", Kind.VIEW),
        ("concat", Kind.LIGHT),
        ("gather", Kind.LIGHT),
    ],
)
def test_kinds(name: str, kind: Kind):
    assert registry.kind_of(parsed(name)) is kind


def test_what_is_forwarded_is_what_is_computed():
    """An elementwise op behind a root is computed of the root's part, moved as it is read and written."""
    op = parsed("elementwise")
    model = registry.model_of(op)
    assert model is not None
    known = [((1, 2), (0, 4)), None, None]
    assert model.result_boxes(op, known, Extents(1)) == [((0, 4), (1, 2))]
    assert model.result_boxes(op, [None, None, ((0, 1), (0, 1))], Extents(1)) == [None]


def test_ops_that_may_be_no_result_behind_a_root():
    """A softmax behind a sum says nothing of its boxes: such a body is refused, not guessed."""
    text = """
      task.roperator @both(%a: tensor<4x5xf32>) -> (tensor<4xf32>) {
        %c = arith.constant 0.0 : f32
        %e = tensor.empty() : tensor<4xf32>
        %f = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
        %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
            iterator_types = ["parallel", "reduction"]}
            ins(%a : tensor<4x5xf32>) outs(%f : tensor<4xf32>) {
          ^bb0(%p: f32, %o: f32):
            %s = arith.addf %o, %p : f32
            linalg.yield %s : f32
        } -> tensor<4xf32>
        %i = arith.constant dense<0> : tensor<4xi64>
        %1 = te.gather %0, %i {axis = 0 : i64} : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
        task.yield %1 : tensor<4xf32>
      }"""
    module = irkit.parse(text, "both")
    (op,) = (op for op in module.ops if isinstance(op, ROperatorOp))
    with pytest.raises(UnsupportedError, match="no elementwise function of the root"):
        operand_boxes(op)


# From outside


class Nothing(TensorOpModel[Operation]):
    """Neither light nor heavy."""

    def kind(self, op: Operation) -> Kind:
        return Kind.LIGHT

    def evaluate(
        self, op: Operation, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return operands


class OtherOp(te.SoftmaxOp):
    """An op of a dialect of its own."""

    name = "others.softmax"


class CalledView(Nothing):
    """A model that is none of the views that schedules know."""

    def kind(self, op: Operation) -> Kind:
        return Kind.VIEW


def test_views_are_those_of_tensor(monkeypatch: pytest.MonkeyPatch):
    text = """
      func.func @main(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
        %0 = te.softmax %a : (tensor<3x4xf32>) -> tensor<3x4xf32>
        func.return %0 : tensor<3x4xf32>
      }"""
    monkeypatch.setitem(MODELS, te.SoftmaxOp, CalledView())
    with pytest.raises(UnsupportedError, match="as a view: schedules know those of"):
        FormROperators().apply(IrkitContext(), irkit.parse(text))


def test_models_that_are_refused():
    with pytest.raises(irkit.UnsupportedError, match="prints no element and is no root"):
        extending.add_tensor_op(OtherOp, Nothing())
    with pytest.raises(irkit.UnsupportedError, match="there is a dialect 'te' of other ops"):
        extending.add_tensor_op(te.SoftmaxOp, MODELS[te.SoftmaxOp])
    assert registry.is_partial(Nothing())
    assert not registry.is_partial(MODELS[linalg.GenericOp])
    assert not registry.is_partial(MODELS[arith.ConstantOp])
