"""Single layers of many kinds and sizes on a GPU, beside PyTorch's in a CUDA graph.

    python -m benchmarks.gpu_layers [NAME ...] [--workers 8] [--out FOLDER]

Each is an ONNX model of one node or few, float32, with seeded random weights; NAME is part of a name. Answers
are held against PyTorch's in float64 on the CPU first. A time is that of a run among many that are queued one
behind another, from CUDA events: of irkit that of one launch in its fastest mode, of PyTorch that of many
that a CUDA graph holds. PyTorch computes in strict float32 too (TF32 off, cuDNN's search on).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

from benchmarks import harness
from benchmarks.models.onnx_model import OnnxModel

Torch = Any
Function = Callable[[Torch, Any, dict[str, Any]], Any]
"""PyTorch's answer of the module, the input and the weights by name."""
RUNS = 20
"""Runs that are queued and timed together."""
WORST = 1e-4
"""The largest error in the 2-norm, relative, that counts as right."""


@dataclass(frozen=True)
class Layer:
    """A model of an input x of that shape, and the same in PyTorch."""

    name: str
    shape: tuple[int, ...]
    model: ModelProto
    function: Function


def _made(m: OnnxModel, shape: tuple[int, ...], y: str) -> ModelProto:
    return m.finish({"x": list(shape)}, {y: None})


def _conv(
    shape: tuple[int, ...], outputs: int, kernel: int, stride: int = 1, group: int = 1,
    dilation: int = 1,
) -> Layer:  # fmt: skip
    rank, pad = len(shape) - 2, dilation * (kernel // 2)
    m = OnnxModel("conv", 0)
    w = m.weight("w", outputs, shape[1] // group, *[kernel] * rank)
    how = {"strides": [stride] * rank, "dilations": [dilation] * rank, "pads": [pad] * 2 * rank}
    m.node("Conv", ["x", w, m.weight("b", outputs, scale=0.1)], "y", group=group, **how)

    def function(torch: Torch, x: Any, w: dict[str, Any]) -> Any:
        f = getattr(torch.nn.functional, f"conv{rank}d")
        return f(x, w["w"], w["b"], stride, pad, dilation, group)

    size = "x".join(map(str, shape))
    name = f"conv {size} to {outputs}, kernel {kernel}, stride {stride}, group {group}"
    name += f", dilation {dilation}" if dilation > 1 else ""
    return Layer(name, shape, _made(m, shape, "y"), function)


def _transposed(
    shape: tuple[int, ...], outputs: int, kernel: int, stride: int, pad: int, longer: int = 0
) -> Layer:
    rank = len(shape) - 2
    m = OnnxModel("conv_transpose", 0)
    w = m.weight("w", shape[1], outputs, *[kernel] * rank, scale=shape[1] ** -0.5)
    how = {"strides": [stride] * rank, "pads": [pad] * 2 * rank, "output_padding": [longer] * rank}
    m.node("ConvTranspose", ["x", w, m.weight("b", outputs, scale=0.1)], "y", **how)

    def function(torch: Torch, x: Any, w: dict[str, Any]) -> Any:
        f = getattr(torch.nn.functional, f"conv_transpose{rank}d")
        return f(x, w["w"], w["b"], stride, pad, longer)

    size = "x".join(map(str, shape))
    name = f"conv_transpose {size} to {outputs}, kernel {kernel}, stride {stride}"
    return Layer(name, shape, _made(m, shape, "y"), function)


def _recurrent(kind: str, units: int, rows: int, steps: int = 20) -> Layer:
    """One layer, all hidden states. Gates go from ONNX's order to PyTorch's: i, o, f, c to i, f, c, o, or
    z, r, h to r, z, h."""
    gates = {"LSTM": 4, "GRU": 3}[kind]
    m = OnnxModel(kind, 0)
    scale = units**-0.5
    w = m.weight("w", 1, gates * units, units, scale=scale)
    r = m.weight("r", 1, gates * units, units, scale=scale)
    b = m.weight("b", 1, 2 * gates * units, scale=0.1)
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    m.node(kind, ["x", w, r, b], ["y"], hidden_size=units, **more)
    order = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2]}[kind]

    def function(torch: Torch, x: Any, w: dict[str, Any]) -> Any:
        layer = getattr(torch.nn, kind)(units, units).to(x)
        parts = {"weight_ih_l0": w["w"][0], "weight_hh_l0": w["r"][0]}
        parts["bias_ih_l0"], parts["bias_hh_l0"] = w["b"][0].chunk(2)
        for name, value in parts.items():
            turned = value.reshape(gates, units, *value.shape[1:])[order].reshape(value.shape)
            getattr(layer, name).data.copy_(turned)
        layer.flatten_parameters()

        def run() -> Any:
            return layer(x)[0][:, None]

        return run

    shape = (steps, rows, units)
    return Layer(f"{kind} {units} units, {rows} rows", shape, _made(m, shape, "y"), function)


def _node(
    op: str, shape: tuple[int, ...], function: Function, more: str = "",
    build: Callable[[OnnxModel], list[str]] = lambda m: [], opset: int = 17, **attributes: Any,
) -> Layer:  # fmt: skip
    m = OnnxModel(op, 0, opset)
    # The second result of those that have one is not looked at.
    m.node(op, ["x", *build(m)], ["y", "at"] if op == "TopK" else "y", **attributes)
    m.types["y"] = TensorProto.INT64 if op == "ArgMax" else TensorProto.FLOAT
    name = f"{op} {'x'.join(map(str, shape))}{more}"
    return Layer(name, shape, _made(m, shape, "y"), function)


def _dense(rows: int, terms: int, units: int) -> Layer:
    m = OnnxModel("dense", 0)
    m.node("Gemm", ["x", m.weight("w", units, terms), m.weight("b", units)], "y", transB=1)
    return Layer(
        f"dense {rows}x{terms} to {units}", (rows, terms), _made(m, (rows, terms), "y"),
        lambda torch, x, w: torch.nn.functional.linear(x, w["w"], w["b"]),
    )  # fmt: skip


def _normalised(kind: str, shape: tuple[int, ...]) -> Layer:
    """Layer, instance and batch normalisation."""
    width = shape[-1] if kind == "LayerNormalization" else shape[1]
    m = OnnxModel(kind, 0)
    given = [m.weight("s", width, scale=1.0), m.weight("b", width, scale=0.1)]
    if kind == "BatchNormalization":
        m.array("v", m.random.uniform(0.5, 2, width).astype(np.float32))
        given += [m.weight("m", width, scale=0.1), "v"]
    m.node(kind, ["x", *given], "y")

    def function(torch: Torch, x: Any, w: dict[str, Any]) -> Any:
        f = torch.nn.functional
        if kind == "LayerNormalization":
            return f.layer_norm(x, (width,), w["s"], w["b"])
        if kind == "BatchNormalization":
            return f.batch_norm(x, w["m"], w["v"], w["s"], w["b"])
        return f.instance_norm(x, weight=w["s"], bias=w["b"])

    return Layer(f"{kind} {'x'.join(map(str, shape))}", shape, _made(m, shape, "y"), function)


def _convolutions() -> Iterator[Layer]:
    yield _conv((1, 64, 56, 56), 64, 3)
    yield _conv((8, 96, 28, 28), 160, 3)
    yield _conv((1, 3, 224, 224), 32, 7, 2)
    yield _conv((16, 40, 33, 33), 72, 5, 2)
    yield _conv((1, 128, 56, 56), 128, 3, group=128)
    yield _conv((16, 96, 40, 40), 96, 5, group=96)
    yield _conv((4, 120, 30, 30), 120, 3, 1, 4)
    yield _conv((2, 64, 48, 48), 64, 3, dilation=4)
    yield _conv((8, 64, 1000), 64, 9)
    yield _conv((1, 32, 16000), 64, 25, 4)
    yield _conv((2, 16, 16, 16, 16), 32, 3)
    yield _transposed((1, 128, 16, 16), 64, 4, 2, 1)
    yield _transposed((1, 128, 16, 16), 64, 3, 2, 1, 1)
    yield _transposed((4, 64, 32, 32), 32, 5, 2, 2)
    yield _transposed((4, 64, 64, 64), 3, 4, 2, 1)
    yield _transposed((8, 256, 14, 14), 128, 3, 3, 1)
    yield _transposed((2, 64, 500), 32, 16, 8, 4)
    yield _transposed((1, 256, 28, 28), 128, 2, 2, 0)


def _products() -> Iterator[Layer]:
    for sizes in ((1, 1024, 1024), (7, 500, 300), (32, 1024, 4096), (200, 768, 3072)):
        yield _dense(*sizes)
    yield _dense(1000, 1000, 1000)
    yield _dense(4096, 512, 2048)
    yield _dense(8192, 64, 64)
    for kind in ("LSTM", "GRU"):
        for units, rows in (
            (64, 1),
            (64, 32),
            (128, 8),
            (128, 128),
            (256, 64),
            (512, 16),
            (300, 5),
        ):
            yield _recurrent(kind, units, rows)


def _others() -> Iterator[Layer]:
    def of(name: str, *args: Any, **how: Any) -> Function:
        return lambda torch, x, w: getattr(torch.nn.functional, name)(x, *args, **how)

    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    yield _node("MaxPool", (8, 64, 112, 112), of("max_pool2d", 3, 2, 1), **window)
    yield _node("AveragePool", (8, 64, 56, 56), of("avg_pool2d", 2, 2),
                kernel_shape=[2, 2], strides=[2, 2])  # fmt: skip
    yield _node("GlobalAveragePool", (16, 512, 28, 28), of("adaptive_avg_pool2d", 1))
    for kind in ("InstanceNormalization", "BatchNormalization"):
        yield _normalised(kind, (8, 64, 64, 64))
    for shape in ((4096, 1024), (100, 333), (16, 20000)):
        yield _normalised("LayerNormalization", shape)
    for shape in ((4096, 1000), (32, 50000), (8, 12, 128, 128)):
        yield _node("Softmax", shape, of("softmax", -1), axis=-1)
    yield _node("LogSoftmax", (64, 10000), of("log_softmax", -1), axis=-1)
    big = (4096, 4096)
    yield _node("Gelu", big, of("gelu"), opset=20)
    yield _node("Tanh", (1000, 1000), lambda torch, x, w: torch.tanh(x))
    for axis in (0, 1):
        yield _node("ReduceSum", big, lambda torch, x, w, axis=axis: x.sum(axis, keepdim=True),
                    f", axis {axis}", lambda m, axis=axis: [m.integers(axis)])  # fmt: skip
        yield _node("ReduceMax", (2000, 3000), lambda torch, x, w, axis=axis: x.amax(axis, True),
                    f", axis {axis}", axes=[axis])  # fmt: skip
    yield _node("ReduceMean", (64, 100, 300), lambda torch, x, w: x.mean(1, keepdim=True), axes=[1])
    yield _node("ArgMax", (4096, 1000), lambda torch, x, w: x.argmax(1, True), axis=1)
    yield _node("CumSum", (256, 10000), lambda torch, x, w: x.cumsum(1), "",
                lambda m: [m.array("axis", np.array(1))])  # fmt: skip
    yield _node("TopK", (64, 2000), lambda torch, x, w: x.topk(10, 1)[0], ", k 10",
                lambda m: [m.integers(10)], axis=1)  # fmt: skip
    yield _node("Transpose", big, lambda torch, x, w: x.t().contiguous(), perm=[1, 0])
    yield _node("Transpose", (32, 64, 56, 56),
                lambda torch, x, w: x.permute(0, 2, 3, 1).contiguous(), perm=[0, 2, 3, 1])  # fmt: skip
    yield _node("Gather", (50000, 512), lambda torch, x, w: x[w["ids"]], ", 4096 rows",
                lambda m: [m.array("ids", m.random.integers(0, 50000, 4096))], axis=0)  # fmt: skip
    yield _node("Resize", (4, 64, 64, 64),
                of("interpolate", scale_factor=2.0, mode="bilinear", align_corners=False), "",
                lambda m: ["", m.array("scales", np.array([1, 1, 2, 2], np.float32))],
                mode="linear")  # fmt: skip
    yield _node("Pad", (8, 64, 100, 100), of("pad", (3, 3, 3, 3)), "",
                lambda m: [m.integers(0, 0, 3, 3, 0, 0, 3, 3)])  # fmt: skip


def layers() -> list[Layer]:
    """All of them."""
    return [*_convolutions(), *_products(), *_others()]


def _compiled(name: str, cache: str) -> str:
    """Fill the cache with a layer's kernels, in a process of its own."""
    os.environ["IRKIT_CACHE_DIR"] = cache
    import irkit

    layer = next(one for one in layers() if one.name == name)
    try:
        irkit.compile(layer.model, target="cuda")
    except irkit.IrkitError as error:
        return f"{name}: {error}"
    return ""


def measured(layer: Layer) -> dict[str, Any]:
    """Errors and times of both."""
    from benchmarks import gpu

    torch = gpu.torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    arrays = {i.name: numpy_helper.to_array(i).copy() for i in layer.model.graph.initializer}
    x = np.random.default_rng().standard_normal(layer.shape).astype(np.float32)

    def given(device: str, dtype: Any) -> tuple[Any, dict[str, Any]]:
        put = {n: torch.from_numpy(a).to(device) for n, a in arrays.items()}
        put = {n: t.to(dtype) if t.is_floating_point() else t for n, t in put.items()}
        return torch.from_numpy(x).to(device, dtype), put

    with torch.no_grad():
        exact = layer.function(torch, *given("cpu", torch.float64))
        exact = (exact() if callable(exact) else exact).numpy()
        on_device, weights = given("cuda", torch.float32)
        made = layer.function(torch, on_device, weights)
        run = made if callable(made) else lambda: layer.function(torch, on_device, weights)
        found = _of_irkit(layer, on_device, exact)
        many = gpu.graphed(lambda: [run() for _ in range(RUNS)][-1])
        found["PyTorch in a CUDA graph"] = _each(gpu.device_time(many, 15), RUNS)
    times = [found[m]["median_us"] for m in gpu.MODES if "median_us" in found[m]]
    if len(times) == len(gpu.MODES):
        found["ratio"] = min(times) / found["PyTorch in a CUDA graph"]["median_us"]
    return found


def _of_irkit(layer: Layer, on_device: Any, exact: Any) -> dict[str, Any]:
    """Every mode: error and time; a wrong answer is recorded instead of its time."""
    import irkit
    from benchmarks import gpu
    from irkit.runtime.cuda.driver import Event
    from irkit.schedule.modes import Mode

    program = irkit.compile(layer.model, target="cuda")
    found: dict[str, Any] = {"waves": program.report()["waves"]}
    executor = program._first.executor
    for name in gpu.MODES:
        executor.mode = name
        off = gpu.error(program.run([on_device])[0].cpu().numpy(), exact)
        if not off <= WORST:
            found[name] = {"wrong": off}
            continue
        seconds, stream = [], executor.runs.current
        for _ in range(16):
            start, end = Event(), Event()
            start.record(stream)
            for _ in range(RUNS):
                executor.launch(Mode(name), 1, stream)
            end.record(stream)
            seconds.append(end.since(start) / 1000 / RUNS)
        found[name] = {"error": off, **harness.spread(seconds[1:])}
    return found


def _each(spread: dict[str, float], runs: int) -> dict[str, float]:
    """Of one of some runs that were timed together."""
    return {name: value / runs if name.endswith("_us") else value for name, value in spread.items()}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Single layers on a GPU beside PyTorch.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of names; all by default")
    parser.add_argument("--workers", type=int, default=8, help="processes that compile (8)")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = options.names
    chosen = [one for one in layers() if not names or any(n in one.name for n in names)]
    cache = os.environ.setdefault("IRKIT_CACHE_DIR", tempfile.mkdtemp())
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for error in pool.map(_compiled, [one.name for one in chosen], [cache] * len(chosen)):
            if error:
                print(error, flush=True)
    suites: dict[str, Any] = {}
    for layer in chosen:
        try:
            suites[layer.name] = measured(layer)
        except Exception as error:
            suites[layer.name] = {"failed": f"{type(error).__name__}: {error}"[:300]}
        found = suites[layer.name]
        modes = [found.get(m, {}).get("median_us", 0) for m in ("persistent", "per-wave", "per-op")]
        peer = found.get("PyTorch in a CUDA graph", {}).get("median_us", 0)
        shown = (
            f"{found.get('ratio', 0):6.2f} {min(modes):8.1f} {peer:8.1f} {found.get('waves', 0):4}"
        )
        print(f"{shown}  {layer.name} {found.get('failed', '')}", flush=True)
    print(harness.write("gpu_layers", {"suites": suites}, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
