"""The tensor interpreter on hand-written IR, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.parser import Parser

from irkit.context import IrkitContext
from irkit.driver.registry import register_dialects
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.interp.tensor import run_tensor
from irkit.weights import WeightStore

RNG = np.random.default_rng(5)


def run(text, *inputs):
    """The outputs of a function written in `text` as `(arguments) -> results { body }`."""
    ctx = IrkitContext()
    register_dialects(ctx)
    module = Parser(ctx, f"func.func @main{text}").parse_module()
    module.verify()
    return run_tensor(module, WeightStore(), inputs)


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def generic(maps, iterators, inputs, output, body):
    """One `linalg.generic` on %x0.. of types `inputs` into %out, which is returned."""
    names = ", ".join(f"%x{i}" for i in range(len(inputs)))
    arguments = ", ".join(f"%x{i}: {t}" for i, t in enumerate(inputs))
    scalars = [t.rpartition("x")[2].rstrip(">").removeprefix("tensor<") for t in [*inputs, output]]
    block = ", ".join(f"%a{i}: {s}" for i, s in enumerate(scalars))
    maps = ", ".join(f"affine_map<{m}>" for m in maps)
    kinds = ", ".join(f'"{k}"' for k in iterators)
    return (
        f"({arguments}, %out: {output}) -> {output} {{\n"
        f"%y = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"
        f" ins({names} : {', '.join(inputs)}) outs(%out : {output}) {{\n^bb0({block}):\n{body}\n}}"
        f" -> {output}\nreturn %y : {output} }}"
    )


def test_sums_run_in_index_order():
    x = (floats(400) * 10.0 ** RNG.integers(-4, 4, 400)).astype(np.float32)
    text = generic(
        ["(k) -> (k)", "(k) -> ()"], ["reduction"], ["tensor<400xf32>"], "tensor<f32>",
        "%s = arith.addf %a1, %a0 : f32\nlinalg.yield %s : f32",
    )  # fmt: skip
    expected = np.float32(3)
    for value in x:
        expected = np.float32(expected + value)
    (y,) = run(text, x, np.array(3, np.float32))
    assert y == expected
    assert y != np.float32(3) + x.sum()  # NumPy adds pairwise


def test_several_reduction_loops_run_in_order():
    x = floats(5, 6, 7)
    text = generic(
        ["(i, k, l) -> (k, i, l)", "(i, k, l) -> (i)"], ["parallel", "reduction", "reduction"],
        ["tensor<5x6x7xf32>"], "tensor<6xf32>",
        "%s = arith.addf %a1, %a0 : f32\nlinalg.yield %s : f32",
    )  # fmt: skip
    expected = np.zeros(6, np.float32)
    for k in range(5):
        for m in range(7):
            expected += x[k, :, m]
    (y,) = run(text, x, np.zeros(6, np.float32))
    np.testing.assert_array_equal(y, expected)


def test_windows_and_dilation():
    x, w = floats(11), floats(3)
    text = generic(
        ["(i, k) -> (i * 2 + k * 3)", "(i, k) -> (k)", "(i, k) -> (i)"], ["parallel", "reduction"],
        ["tensor<11xf32>", "tensor<3xf32>"], "tensor<3xf32>",
        "%m = arith.mulf %a0, %a1 : f32\n%s = arith.addf %a2, %m : f32\nlinalg.yield %s : f32",
    )  # fmt: skip
    expected = [sum(x[i * 2 + k * 3] * w[k] for k in range(3)) for i in range(3)]
    np.testing.assert_allclose(run(text, x, w, np.zeros(3, np.float32))[0], expected, rtol=1e-6)


def test_permuted_output():
    text = generic(
        ["(i, j) -> (i, j)", "(i, j) -> (j, i)"], ["parallel", "parallel"], ["tensor<2x3xf32>"],
        "tensor<3x2xf32>", "linalg.yield %a0 : f32",
    )  # fmt: skip
    x = floats(2, 3)
    np.testing.assert_array_equal(run(text, x, np.zeros((3, 2), np.float32))[0], x.T)


def test_index_and_inputs_stay():
    text = generic(
        ["(i, j) -> (i, j)"], ["parallel", "parallel"], [], "tensor<2x3xi64>",
        "%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n"
        "%a = arith.index_cast %i : index to i64\n%b = arith.index_cast %j : index to i64\n"
        "%t = arith.constant 10 : i64\n%c = arith.muli %a, %t : i64\n%d = arith.addi %c, %b : i64\n"
        "linalg.yield %d : i64",
    ).replace("(, %out", "(%out").replace(" ins( : )", "")  # fmt: skip
    out = np.zeros((2, 3), np.int64)
    np.testing.assert_array_equal(run(text, out)[0], [[0, 1, 2], [10, 11, 12]])
    assert not out.any()


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [("oeq", "1000"), ("ogt", "0010"), ("oge", "1010"), ("olt", "0100"), ("ole", "1100"),
     ("one", "0110"), ("ord", "1110"), ("ueq", "1001"), ("ugt", "0011"), ("uge", "1011"),
     ("ult", "0101"), ("ule", "1101"), ("une", "0111"), ("uno", "0001"), ("true", "1111"),
     ("false", "0000")],
)  # fmt: skip
def test_float_predicates(predicate, expected):
    text = generic(
        ["(i) -> (i)"] * 3, ["parallel"], ["tensor<4xf32>"] * 2, "tensor<4xi1>",
        f"%c = arith.cmpf {predicate}, %a0, %a1 : f32\nlinalg.yield %c : i1",
    )  # fmt: skip
    x, y = np.array([1, 1, 2, 1], np.float32), np.array([1, 2, 1, np.nan], np.float32)
    (z,) = run(text, x, y, np.zeros(4, bool))
    assert "".join(str(int(v)) for v in z) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [("eq", "100"), ("ne", "011"), ("slt", "001"), ("sle", "101"), ("sgt", "010"), ("sge", "110"),
     ("ult", "010"), ("ule", "110"), ("ugt", "001"), ("uge", "101")],
)  # fmt: skip
def test_integer_predicates(predicate, expected):
    text = generic(
        ["(i) -> (i)"] * 3, ["parallel"], ["tensor<3xi32>"] * 2, "tensor<3xi1>",
        f"%c = arith.cmpi {predicate}, %a0, %a1 : i32\nlinalg.yield %c : i1",
    )  # fmt: skip
    x, y = np.array([1, 1, -1], np.int32), np.array([1, -1, 1], np.int32)
    (z,) = run(text, x, y, np.zeros(3, bool))
    assert "".join(str(int(v)) for v in z) == expected


def test_integer_division_truncates():
    text = generic(
        ["(i) -> (i)"] * 3, ["parallel"], ["tensor<4xi32>"] * 2, "tensor<4xi32>",
        "%c = arith.divsi %a0, %a1 : i32\nlinalg.yield %c : i32",
    )  # fmt: skip
    x, y = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    np.testing.assert_array_equal(run(text, x, y, y)[0], [3, -3, -3, 3])


def test_float32_stays_float32():
    text = generic(
        ["(i) -> (i)"] * 2, ["parallel"], ["tensor<3xf32>"], "tensor<3xf32>",
        "%c = arith.constant 0.1 : f32\n%d = arith.addf %a0, %c : f32\nlinalg.yield %d : f32",
    )  # fmt: skip
    x = floats(3)
    np.testing.assert_array_equal(run(text, x, x)[0], x + np.float32(0.1))


def test_empty_is_poison():
    (y,) = run(
        "() -> tensor<2xf32> { %e = tensor.empty() : tensor<2xf32>\nreturn %e : tensor<2xf32> }"
    )
    assert np.isnan(y).all()


def test_fill_splat_and_dim():
    text = """(%x: tensor<?x2xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
        %c0 = arith.constant 0 : index
        %n = tensor.dim %x, %c0 : tensor<?x2xf32>
        %v = arith.constant 2.5 : f32
        %e = tensor.empty(%n) : tensor<?xf32>
        %f = linalg.fill ins(%v : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
        %s = tensor.splat %v[%n] : tensor<?xf32>
        return %f, %s : tensor<?xf32>, tensor<?xf32> }"""
    for y in run(text, floats(3, 2)):
        np.testing.assert_array_equal(y, np.full(3, 2.5, np.float32))


def test_slices():
    text = """(%x: tensor<4x8xf32>, %y: tensor<2x3xf32>)
        -> (tensor<2x3xf32>, tensor<3xf32>, tensor<4x8xf32>) {
        %a = tensor.extract_slice %x[1, 7] [2, 3] [2, -2] : tensor<4x8xf32> to tensor<2x3xf32>
        %b = tensor.extract_slice %x[2, 1] [1, 3] [1, 1] : tensor<4x8xf32> to tensor<3xf32>
        %c = tensor.insert_slice %y into %x[1, 0] [2, 3] [2, 1] : tensor<2x3xf32> into tensor<4x8xf32>
        return %a, %b, %c : tensor<2x3xf32>, tensor<3xf32>, tensor<4x8xf32> }"""
    x, y = floats(4, 8), floats(2, 3)
    a, b, c = run(text, x, y)
    np.testing.assert_array_equal(a, x[1:4:2, 7:2:-2])
    np.testing.assert_array_equal(b, x[2, 1:4])
    expected = x.copy()
    expected[1:4:2, :3] = y
    np.testing.assert_array_equal(c, expected)


def test_slice_that_runs_back_to_the_start():
    text = """(%x: tensor<3xf32>) -> tensor<3xf32> {
        %a = tensor.extract_slice %x[2] [3] [-1] : tensor<3xf32> to tensor<3xf32>
        return %a : tensor<3xf32> }"""
    x = floats(3)
    np.testing.assert_array_equal(run(text, x)[0], x[::-1])


def test_pad_concat_and_reshape():
    text = """(%x: tensor<2x3xf32>) -> (tensor<3x5xf32>, tensor<4x3xf32>, tensor<6xf32>, tensor<2x1x3xf32>) {
        %p = tensor.pad %x low[1, 0] high[0, 2] {
        ^bb0(%i: index, %j: index):
          %v = arith.constant 7.0 : f32
          tensor.yield %v : f32
        } : tensor<2x3xf32> to tensor<3x5xf32>
        %c = tensor.concat dim(0) %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
        %f = tensor.collapse_shape %x [[0 : i64, 1 : i64]] : tensor<2x3xf32> into tensor<6xf32>
        %e = tensor.expand_shape %x [[0 : i64, 1 : i64], [2 : i64]] output_shape [2, 1, 3]
          : tensor<2x3xf32> into tensor<2x1x3xf32>
        return %p, %c, %f, %e : tensor<3x5xf32>, tensor<4x3xf32>, tensor<6xf32>, tensor<2x1x3xf32> }"""
    x = floats(2, 3)
    p, c, f, e = run(text, x)
    np.testing.assert_array_equal(p, np.pad(x, ((1, 0), (0, 2)), constant_values=7))
    np.testing.assert_array_equal(c, np.concatenate([x, x]))
    np.testing.assert_array_equal(f, x.ravel())
    np.testing.assert_array_equal(e, x[:, None])


def test_softmax_and_argmax():
    text = """(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?xi64>) {
        %a = te.softmax %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
        %b = te.argmax %x : (tensor<?x4xf32>) -> tensor<?xi64>
        return %a, %b : tensor<?x4xf32>, tensor<?xi64> }"""
    x = floats(5, 4)
    x[0] = [1, 3, 3, 2]
    softmax, argmax = run(text, x)
    power = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(softmax, power / power.sum(axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(argmax, x.argmax(axis=1))
    assert argmax[0] == 1


def test_graph_ops_may_stand_beside():
    text = """(%x: tensor<3xf32>) -> tensor<3xf32> {
        %a = graph.relu %x : (tensor<3xf32>) -> tensor<3xf32>
        return %a : tensor<3xf32> }"""
    x = floats(3)
    np.testing.assert_array_equal(run(text, x)[0], np.maximum(x, 0))


IDENTITY = "(%x: tensor<?x3xf32>) -> tensor<?x3xf32> { return %x : tensor<?x3xf32> }"


@pytest.mark.parametrize(
    "inputs", [(), (floats(2, 4),), (floats(3),), (floats(2, 3, dtype=float),)]
)
def test_wrong_inputs(inputs):
    with pytest.raises(InvalidInputError, match="expected"):
        run(IDENTITY, *inputs)


def test_missing_weights():
    text = """() -> tensor<2xf32> {
        %w = arith.constant dense_resource<lost> : tensor<2xf32>
        return %w : tensor<2xf32> }"""
    with pytest.raises(InvalidModelError, match="lost"):
        run(text)


def test_unknown_op_is_named():
    text = """(%x: tensor<2xf32>) -> tensor<2xf32> {
        %y = math.rsqrt %x : tensor<2xf32>
        return %y : tensor<2xf32> }"""
    with pytest.raises(UnsupportedError, match=r"math\.rsqrt"):
        run(text, floats(2))


def test_result_indexed_by_a_reduction_is_refused():
    text = generic(
        ["(i) -> (i)", "(i) -> (i)"], ["reduction"], ["tensor<3xf32>"], "tensor<3xf32>",
        "linalg.yield %a0 : f32",
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="reduction loop"):
        run(text, floats(3), floats(3))
