"""Products whose epilogues make elements of several sums, the gates of a unit: emulated, against float64."""

from __future__ import annotations

from typing import Any

import cuda_emulator
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import StringAttr

from irkit import training_step
from irkit.context import IrkitContext
from irkit.dialects.precision import PRECISION
from irkit.dialects.roperator_body import GATES, find_root
from irkit.dialects.task import LaunchOp, ROperatorOp
from irkit.dialects.types import int_array, tensor_type
from irkit.driver.files.parsing import parse_module
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.module import ImportedModel
from irkit.interp import run_module
from irkit.rkernels import families, registry
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.cuda import product_mma
from irkit.rkernels.templates import specialise, template_source
from irkit.training import losses, optimizers
from irkit.training.traced import TracedProgram

# Four warps.
TILES = {
    "gate_product.mma32x32": {"BM": 32, "BN": 32, "BK": 16, "WM": 16, "WN": 16, "STAGES": 3},
    "gate_product.sliced16x16": {"BM": 16, "BN": 16, "BK": 64, "WM": 16, "WN": 16, "STAGES": 3},
    "gate_product.sliced16x32": {"BM": 16, "BN": 32, "BK": 64, "WM": 16, "WN": 32, "STAGES": 3},
}
THREADS = 128


def planned(text: str, device: str = "h200") -> Any:
    ctx = IrkitContext()
    register_dialects(ctx)
    module: Any = parse_module(ctx, text, "gates")
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(ctx, module, level, device)
    return module


def text_of(rows: int, terms: int, units: int, gates: int, turned: bool) -> str:
    """A product by gates: each of these negated, and the sum of their tanh."""
    wide, one = f"tensor<{rows}x{gates * units}xf32>", f"tensor<{rows}x{units}xf32>"
    x = f"tensor<{rows}x{terms}xf32>"
    w = f"tensor<{gates * units}x{terms}xf32>" if turned else f"tensor<{terms}x{gates * units}xf32>"
    kind = (
        f"{{trans_a = false, trans_b = {str(turned).lower()}, alpha = 1.0 : f64, beta = 0.0 : f64}}"
    )
    lines = [f"%p = graph.gemm %x, %w {kind} : ({x}, {w}) -> {wide}"]
    lines.append(f"%s = graph.add %b, %p : ({wide}, {wide}) -> {wide}")
    total, results = "", list[str]()
    for n in range(gates):
        where = f"offsets = array<i64: 0, {n * units}>, sizes = array<i64: {rows}, {units}>"
        lines += [
            f"%g{n} = graph.slice %s {{{where}, strides = array<i64: 1, 1>}} : ({wide}) -> {one}",
            f"%t{n} = graph.tanh %g{n} : ({one}) -> {one}",
            f"%n{n} = graph.neg %g{n} : ({one}) -> {one}",
        ]
        if n:
            lines.append(f"%a{n} = graph.add {total}, %t{n} : ({one}, {one}) -> {one}")
        total = f"%a{n}" if n else "%t0"
        results.append(f"%n{n}")
    results.append(total)
    kinds = ", ".join([one] * len(results))
    given = f"%x: {x}, %w: {w}, %b: {wide}"
    body = "\n".join(lines)
    return f"func.func @main({given}) -> ({kinds}) {{\n{body}\nreturn {', '.join(results)} : {kinds}\n}}"


def gates_of(text: str) -> ROperatorOp:
    """The one rOperator that multiplies, which makes everything of its sums."""
    ops = [op for op in planned(text).ops if isinstance(op, ROperatorOp)]
    (op,) = (o for o in ops if find_root(o.body.block).chain)
    assert find_root(op.body.block).family == GATES
    return op


def run(
    op: ROperatorOp, variant: str, tasks: int, x: Any, w: Any, b: Any, kind: str = "float32"
) -> list[Any]:
    """What an rKernel with a small tile makes; `w` is gates×units×terms."""
    root = find_root(op.body.block)
    assert root.op is not None
    root.op.attributes[PRECISION] = StringAttr(kind)
    rkernel = registry.find("cuda", variant)
    assert rkernel.legal(root)
    assert rkernel.grid is not None
    op.grid = int_array(rkernel.grid(root, tasks))
    binder = Binder(op, root, "cuda")
    families.find(GATES).bind(binder)
    binding, tile = binder.binding, {**TILES[variant], "VECTOR": 1, "THREADS": THREADS}
    names = {
        **binding.names,
        **{k: str(v) for k, v in product_mma.parameters_of(tile, root).items()},
    }
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    text = "\n".join([*binding.functions, *binding.parts.values(), body])
    shapes = {tuple(tensor_type(a).get_shape()): n for n, a in enumerate(op.body.block.args)}
    given: dict[int, Any] = {shapes[x.shape]: x, shapes[w.shape]: w}
    rows, units = x.shape[0], w.shape[1]
    by_gate = [n for n in range(len(op.body.block.args)) if n not in given]
    # What is added comes whole, or by parts that have been cut of it.
    for n in by_gate:
        whole = tuple(tensor_type(op.body.block.args[n]).get_shape()) == b.shape
        assert whole
        given[n] = b
    results = [np.full((rows, units), np.nan, np.float32) for _ in op.terminator.values]
    arrays = [*(given[n] for n in range(len(op.body.block.args))), *results]
    cuda_emulator.run_text(text, "kernel", arrays, op.tasks, 1, THREADS)
    return results


def drawn(random: Any, rows: int, terms: int, units: int, gates: int) -> tuple[Any, Any, Any]:
    x = random.standard_normal((rows, terms)).astype(np.float32)
    w = random.standard_normal((gates, units, terms)).astype(np.float32)
    b = random.standard_normal((rows, gates * units)).astype(np.float32)
    return x, w, b


def exact(x: Any, w: Any, b: Any) -> Any:
    """rows×gates×units in float64."""
    gates, units, _ = w.shape
    sums = np.einsum("mk,gnk->mgn", x.astype(np.float64), w.astype(np.float64))
    return sums + b.astype(np.float64).reshape(len(x), gates, units)


def compared(got: list[Any], want: Any, tolerance: float) -> None:
    """Gates, negated or, where so many results are not joined, as they are, and the sum of their tanh."""
    gates = [want[:, n] for n in range(want.shape[1])]
    for right in gates:
        errors = [min(abs(array - right).max(), abs(array + right).max()) for array in got]
        assert min(errors) <= tolerance * max(1.0, abs(right).max())
    if len(got) > len(gates):
        right = sum(np.tanh(gate) for gate in gates)
        assert min(abs(array - right).max() for array in got) <= tolerance * len(gates)


@pytest.mark.parametrize("variant", TILES)
@pytest.mark.parametrize("gates", [2, 4, 8])
@pytest.mark.parametrize("seed", range(2))
def test_units_of_random_sizes(seed: int, gates: int, variant: str) -> None:
    random = np.random.default_rng([seed, gates])
    rows, terms, units = (int(random.integers(*ends)) for ends in ((16, 40), (5, 150), (5, 21)))
    op = gates_of(text_of(rows, terms, units, gates, bool(seed)))
    x, w, b = drawn(random, rows, terms, units, gates)
    for tasks in (1, 7):
        compared(run(op, variant, tasks, x, w, b), exact(x, w, b), 2e-6 * terms**0.5)


@pytest.mark.parametrize(("kind", "tolerance"), [("tf32", 2e-3), ("bf16", 2e-2), ("f16", 2e-3)])
@pytest.mark.parametrize("variant", TILES)
def test_factors_of_fewer_bits(variant: str, kind: str, tolerance: float) -> None:
    op = gates_of(text_of(18, 40, 9, 4, True))
    x, w, b = drawn(np.random.default_rng(0), 18, 40, 9, 4)
    compared(run(op, variant, 3, x, w, b, kind), exact(x, w, b), tolerance)


@pytest.mark.parametrize("variant", TILES)
def test_errors_are_those_of_plain_sums(variant: str) -> None:
    """Against float64, those of float32 added up term by term."""
    op = gates_of(text_of(32, 128, 8, 4, True))
    x, w, b = drawn(np.random.default_rng(5), 32, 128, 8, 4)
    want = exact(x, w, b).astype(np.float64)
    plain = np.zeros((32, 4, 8), np.float32)
    for k in range(128):
        plain += x[:, k, None, None] * w[None, :, :, k]
    plain += b.reshape(32, 4, 8)
    got = run(op, variant, 4, x, w, b)
    for n in range(4):
        error = min(abs(array + want[:, n]).mean() for array in got)
        assert error <= 1.1 * abs(plain[:, n] - want[:, n]).mean()


@pytest.mark.parametrize("variant", TILES)
def test_what_cannot_be_split_is_summed_plainly(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Infinities, NaN, the largest and the least values are as float32 sums have them, where parts, which the
    emulator does not split, make NaN of everything."""
    monkeypatch.setattr(
        cuda_emulator, "mma_sums", lambda sums, *_: (np.float32(np.nan),) * len(sums)
    )
    op = gates_of(text_of(17, 24, 8, 2, True))
    x, w, b = drawn(np.random.default_rng(0), 17, 24, 8, 2)
    x[3, 5], x[7, 1], x[9, 2], x[11, 3] = np.inf, -np.inf, np.nan, np.finfo(np.float32).max
    x[13], w[1, 5] = 1e-42, 1e30
    b[13, 13] = 0
    got = run(op, variant, 1, x, w, b)
    with np.errstate(all="ignore"):
        want = exact(x, w, b).astype(np.float32)
        for n in range(2):
            near = [np.isclose(a, -want[:, n], 1e-4, 1e-4, equal_nan=True).all() for a in got]
            assert any(near)


def test_a_few_gates_that_others_read_stay_products() -> None:
    """Of three gates nothing is gathered."""
    ops = [o for o in planned(text_of(18, 40, 9, 3, True)).ops if isinstance(o, ROperatorOp)]
    assert GATES not in {find_root(o.body.block).family for o in ops}


def trained(kind: str, rows: int, units: int, steps: int = 3) -> tuple[ImportedModel, list[Any]]:
    """A step of training of an ONNX layer at the graph level, and arrays for it."""
    rng, inputs, gates = np.random.default_rng(units), 7, {"LSTM": 4, "GRU": 3}[kind]
    shapes = {
        "w": (1, gates * units, inputs),
        "r": (1, gates * units, units),
        "b": (1, 2 * gates * units),
        "v": (units, 3),
    }
    start = {n: (rng.standard_normal(s) / 8).astype(np.float32) for n, s in shapes.items()}
    last = ["", "h"] if kind == "GRU" else ["", "h", ""]
    nodes = [
        helper.make_node(kind, ["x", "w", "r", "b"], last, hidden_size=units),
        helper.make_node("Squeeze", ["h", "axes"], ["last"]),
        helper.make_node("MatMul", ["last", "v"], ["z"]),
    ]
    ports = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        for n, s in (("x", (steps, rows, inputs)), ("z", (rows, 3)))
    ]
    held = {**start, "axes": np.array([0])}
    graph = helper.make_graph(
        nodes, "g", ports[:1], ports[1:], [numpy_helper.from_array(a, n) for n, a in held.items()]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    x = rng.standard_normal((steps, rows, inputs)).astype(np.float32)
    y = rng.standard_normal((rows, 3)).astype(np.float32)
    made: Any = training_step(
        model, losses.mean_squared_error, optimizers.SGD(0.1), parameters=start, target="cpu"
    )
    arrays = made._live.arrays()
    program = TracedProgram(made._update.function(), arrays, [x, y], ["x", "y"])
    return program.graph(), [*arrays.values(), x, y]


@pytest.mark.parametrize(("kind", "seed"), [("LSTM", 0), ("LSTM", 1), ("GRU", 2)])
def test_a_step_forward_is_a_launch_of_gates(kind: str, seed: int) -> None:
    """In each step of time one, of a GRU for its first two; what the step computes is what it was."""
    random = np.random.default_rng(seed)
    rows, units = int(random.integers(16, 40)), int(random.integers(64, 80))
    found, given = trained(kind, rows, units)
    want = run_module(found.module, found.weights, given)
    ctx = IrkitContext(weights=found.weights)
    register_dialects(ctx)
    for level in ("graph", "tensor", "task"):
        run_level(ctx, found.module, level, "h200")
    names = [op.callee.string_value() for op in found.module.walk() if isinstance(op, LaunchOp)]
    assert sum(name.startswith(GATES) for name in names) == 3
    for a, b in zip(run_module(found.module, found.weights, given), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", ["a100", "rtx3090", "h200", "b200", "rtx5090"])
@pytest.mark.parametrize(("rows", "units"), [(32, 48), (128, 64), (1024, 128), (16, 256)])
def test_gates_have_an_rkernel_on_every_gpu(rows: int, units: int, device: str) -> None:
    ops = planned(text_of(rows, units, units, 4, True), device).ops
    (op,) = (o for o in ops if isinstance(o, ROperatorOp) and find_root(o.body.block).chain)
    assert op.rkernel is not None
    assert op.rkernel.data.startswith(f"{GATES}.")
