"""Layer and root mean square normalisation on all sizes, against float64 and ONNX Runtime; recognised where
it is written out, one rOperator with what stands before and behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import irkit


def normalised(x: Any, epsilon: float, centred: bool) -> Any:
    """The meaning in long floats."""
    wide = x.astype(np.longdouble)
    d = wide - wide.mean(-1, keepdims=True) if centred else wide
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + np.longdouble(epsilon))


def program(shape: list[int | str], element: str, epsilon: float, centred: bool) -> Any:
    """A module of one normalisation."""
    t = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    props = f"{{epsilon = {epsilon!r} : f64, centred = {str(centred).lower()}}}"
    return irkit.parse(f"""func.func @main(%x: {t}) -> {t} {{
      %y = graph.layer_norm %x {props} : ({t}) -> {t}
      func.return %y : {t}
    }}""")


@pytest.mark.parametrize("seed", range(10))
def test_random_sizes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype, centred = np.float64 if seed % 5 == 4 else np.float32, seed % 3 != 2
    shape = [int(n) for n in rng.integers(1, 12, seed % 3)]
    columns = int(rng.integers(1, 600)) if seed else 1
    x = (rng.standard_normal((*shape, columns)) * 10.0 ** rng.integers(-3, 4)).astype(dtype)
    x += rng.standard_normal()
    element = "f64" if dtype == np.float64 else "f32"
    opened: list[int | str] = (
        ["?", *shape[1:], columns] if shape and seed % 2 else [*shape, columns]
    )
    device = "cpu2" if seed % 2 else "cpu1"
    compiled = irkit.compile(program(opened, element, 0.25, centred), device=device)
    assert "layer_norm.buffered" in compiled.ir("schedule")
    want = normalised(x, 0.25, centred)
    # What the mean is wrong by, in units of what is left.
    size = np.abs(x).max() if centred else 0
    bound = np.finfo(dtype).eps * (8 + 4 * size / 0.5)
    np.testing.assert_allclose(compiled(x), want, rtol=float(np.finfo(dtype).eps) * 8, atol=bound)


def test_rows_that_are_large_far_from_zero_or_no_numbers() -> None:
    x = np.random.default_rng(0).standard_normal((6, 100)).astype(np.float32)
    x[1] += 1000
    x[2] *= 1e-12
    x[3, 7], x[4, 8] = np.nan, np.inf
    x[5] = 3
    got = irkit.compile(program([6, 100], "f32", 0.0, True), "cpu")(x)
    np.testing.assert_allclose(got[:3], normalised(x[:3], 0.0, True), rtol=0, atol=2e-3)
    np.testing.assert_allclose(got[[0, 2]], normalised(x[[0, 2]], 0.0, True), rtol=0, atol=2e-6)
    assert np.isnan(got[3:]).all()


# As exporters write it


def model(nodes: list[Any], shape: list[Any], constants: dict[str, Any], opset: int = 18) -> Any:
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "r")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=domains, ir_version=10)


def n(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


COLUMNS = 48
_RNG = np.random.default_rng(3)
CONSTANTS = {
    "g": _RNG.standard_normal(COLUMNS).astype(np.float32),
    "b": _RNG.standard_normal(COLUMNS).astype(np.float32),
    "e": np.float32(1e-5),
    "two": np.float32(2),
    "wide": np.int64(2),
    "one": np.float32(1),
}
_SUM = n("Add", "x r", "s")
_SCALED = [n("Mul", "q g", "h"), n("Add", "h b", "y")]


def _statistics(power: str, axes: dict[str, Any]) -> list[Any]:
    return [
        n("ReduceMean", "s", "m", **axes),
        n("Sub", "s m", "d"),
        n("Pow", f"d {power}", "p"),
        n("ReduceMean", "p", "v", **axes),
        n("Add", "v e", "w"),
        n("Sqrt", "w", "t"),
    ]


_INVERSE = [n("Reciprocal", "t", "i"), n("Mul", "d i", "q")]
_QUOTIENT = [n("Div", "d t", "q")]
FORMS: dict[str, tuple[list[Any], int, bool]] = {
    "PyTorch": ([_SUM, *_statistics("two", {"axes": [-1]}), *_QUOTIENT, *_SCALED], 17, True),
    "whole exponent": ([_SUM, *_statistics("wide", {"axes": [2]}), *_QUOTIENT, *_SCALED], 13, True),
    "reciprocal": ([_SUM, *_statistics("two", {"axes": [-1]}), *_INVERSE, *_SCALED], 17, True),
    "RMS": (
        [
            _SUM, n("Pow", "s two", "p"), n("ReduceMean", "p", "v", axes=[-1]), n("Add", "v e", "w"),
            n("Sqrt", "w", "t"), n("Div", "one t", "i"), n("Mul", "s i", "q"), n("Mul", "g q", "y"),
        ],
        17,
        False,
    ),
    "LayerNormalization": ([_SUM, n("LayerNormalization", "s g b", "y", epsilon=1e-5)], 17, True),
}  # fmt: skip


def worst(got: Any, want: Any) -> float:
    return float(np.abs(got - want).max())


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("rows", [3, "n"])
def test_a_written_out_norm_is_one_roperator(name: str, rows: Any) -> None:
    """With the residual before it, and scale and bias behind; as right as ONNX Runtime."""
    nodes, opset, centred = FORMS[name]
    onnx_model = model(nodes, [rows, 5, COLUMNS], CONSTANTS, opset)
    compiled = irkit.compile(onnx_model, "cpu")
    assert compiled.ir("graph").count("graph.layer_norm") == 1
    assert compiled.ir("task").count("task.launch") == 1
    x, r = (np.random.default_rng(s).standard_normal((3, 5, COLUMNS)).astype("f") for s in (1, 2))
    x[1] += 30
    got = compiled(x, r)
    (theirs,) = onnxruntime.InferenceSession(onnx_model.SerializeToString()).run(
        None, {"x": x, "r": r}
    )
    want = normalised(x + r, 1e-5, centred) * CONSTANTS["g"] + (CONSTANTS["b"] if centred else 0)
    assert worst(got, want) <= max(worst(theirs, want), 2e-6)
