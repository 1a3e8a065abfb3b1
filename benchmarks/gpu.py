"""All GPU suites in one call: W6, the forest, the small networks. Correctness in the same run as speed.

    python -m benchmarks.gpu [--out FOLDER] [w6] [forest] [networks]

Needs PyTorch (a peer) and irkit's `cuda` and `onnx` extras; LightGBM and Hummingbird where there are.
Times are CUDA events around device-to-device calls, after warm-up: median, 10th, 90th percentile.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx import ModelProto, numpy_helper

import irkit
from benchmarks import harness
from benchmarks.forest_data import forest_model
from benchmarks.models import lstm_stack, mlp, small_cnn

MODES = ("persistent", "per-wave", "per-op")
# Rows that Hummingbird takes at once: its intermediates grow with them.
CHUNK = 100_000


def device_time(f: Callable[[], Any], runs: int = 60) -> dict[str, float]:
    """CUDA-event times of `f`."""
    for _ in range(8):
        f()
    torch.cuda.synchronize()
    seconds: list[float] = []
    for _ in range(runs):
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        f()
        end.record()
        end.synchronize()
        seconds.append(start.elapsed_time(end) / 1000)
    return harness.spread(seconds)


def graphed(f: Callable[[], Any]) -> Callable[[], Any]:
    """`f` captured in a CUDA graph; it gives the same array in every call."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            f()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = f()

    def replay() -> Any:
        graph.replay()
        return result

    return replay


def error(got: Any, want: Any) -> float:
    """Relative error in the 2-norm against a float64 reference."""
    got = np.asarray(got, np.float64).reshape(np.shape(want))
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def modes_of(model: Any, inputs: list[Any], want: Any, output: int) -> dict[str, Any]:
    """Every mode of one model: error and time; a wrong answer is recorded instead of its time."""
    program = irkit.compile(model, target="cuda")
    executor = program._first.executor
    found: dict[str, Any] = {}
    for mode in MODES:
        executor.mode = mode
        off = error(program.run(inputs)[output].cpu().numpy(), want)
        if not off <= 1e-4:
            found[mode] = {"wrong": off}
            continue
        found[mode] = {"error": off, **device_time(lambda: program.run(inputs))}
    found["report"] = {k: v for k, v in program.report().items() if k != "roperators"}
    return found


# W6: ten LSTM layers


def lstm_reference(model: ModelProto, x: Any) -> Any:
    """All hidden states of the last layer, in float64."""
    weights = {i.name: numpy_helper.to_array(i).astype(np.float64) for i in model.graph.initializer}
    y = x.astype(np.float64)
    for node in (n for n in model.graph.node if n.op_type == "LSTM"):
        w, r, b = (weights[name][0] for name in node.input[1:4])
        hidden = r.shape[1]
        h, c, out = np.zeros((1, hidden)), np.zeros((1, hidden)), []
        for step in y:
            gates = step @ w.T + h @ r.T + b[: 4 * hidden] + b[4 * hidden :]
            i, o, f, g = np.split(gates, 4, axis=1)
            c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
            out.append(h)
        y = np.stack(out)
    return y


def torch_lstm(model: ModelProto, hidden: int, layers: int) -> Any:
    """The same weights in cuDNN's LSTM: ONNX orders gates i, o, f, g, PyTorch i, f, g, o."""
    lstm = torch.nn.LSTM(hidden, hidden, layers).cuda().eval()
    weights = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}

    def order(a: Any) -> Any:
        i, o, f, g = np.split(a, 4)
        return torch.from_numpy(np.concatenate([i, f, g, o])).cuda()

    for layer, node in enumerate(n for n in model.graph.node if n.op_type == "LSTM"):
        w, r, b = (weights[name][0] for name in node.input[1:4])
        parts = {
            "weight_ih": w,
            "weight_hh": r,
            "bias_ih": b[: 4 * hidden],
            "bias_hh": b[4 * hidden :],
        }
        for name, value in parts.items():
            getattr(lstm, f"{name}_l{layer}").data.copy_(order(value))
    return lstm


def w6() -> dict[str, Any]:
    """LSTM-TC: 10 layers, 256 units, 100 steps, batch 1, fp32, imported from ONNX."""
    model = lstm_stack(10, 256, 256, 100)
    x = np.random.default_rng().standard_normal((100, 1, 256)).astype(np.float32)
    want, on_device = lstm_reference(model, x), torch.from_numpy(x).cuda()
    found = modes_of(model, [on_device], want, 0)
    lstm = torch_lstm(model, 256, 10)
    found["cuDNN eager"] = {
        "error": error(lstm(on_device)[0].cpu().numpy(), want),
        **device_time(lambda: lstm(on_device)),
    }
    found["cuDNN in a CUDA graph"] = device_time(graphed(lambda: lstm(on_device)))
    times = [found[m]["median_us"] for m in MODES if "median_us" in found[m]]
    if times:
        graph = found["cuDNN in a CUDA graph"]["median_us"]
        found["ratio to cuDNN in a CUDA graph"] = min(times) / graph
    return found


# The forest


def forest(rows: int = 1_000_000) -> dict[str, Any]:
    """LightGBM 500 trees depth 8, 28 features, 1 M rows, device to device, probabilities."""
    model, rng = forest_model()
    x = rng.standard_normal((rows, 28), dtype=np.float32)
    on_device = torch.from_numpy(x).cuda()
    program = irkit.compile(model, target="cuda", dtype="float32")
    executor, check = program._first.executor, 10_000
    want = model.predict_proba(x[:check])
    names = [p.name for p in program._first.outputs]
    number = names.index("probabilities")
    found: dict[str, Any] = {"rows": rows, "rkernels": program.report()["roperators"]}
    for mode in MODES:
        executor.mode = mode
        got = program.run([on_device])[number]
        off = harness.largest_error(got[:check].cpu().numpy(), want)
        if off > 1e-5:
            found[mode] = {"wrong": off}
            continue
        times = device_time(lambda: program.run([on_device]), 30)
        found[mode] = {"max error": off, **times, "M rows/s": rows / times["median_us"]}
    executor.mode = "auto"
    for count in (1, 1_000, 10_000, 100_000):
        part = on_device[:count].contiguous()
        for _ in range(12):
            program.run([part])
        found[f"auto, {count} rows"] = device_time(lambda p=part: program.run([p]), 30)
    found["Hummingbird"] = hummingbird(model, on_device, want, check)
    return found


def hummingbird(model: Any, x: Any, want: Any, check: int) -> dict[str, Any]:
    """Hummingbird on torch CUDA, its best strategy, in chunks that fit."""
    try:
        from hummingbird.ml import convert
    except ImportError:
        return {"absent": "hummingbird-ml is not installed"}
    found: dict[str, Any] = {}
    for strategy in ("perf_tree_trav", "tree_trav"):
        try:
            made = convert(model, "torch", extra_config={"tree_implementation": strategy})
            network = made.model.to("cuda").eval()
            with torch.no_grad():
                first = network(x[:check])
                off = harness.largest_error(first[1].cpu().numpy(), want)

                def run(network: Any = network) -> None:
                    for start in range(0, len(x), CHUNK):
                        network(x[start : start + CHUNK])

                times = device_time(run, 5)
            found[strategy] = {"max error": off, **times, "M rows/s": len(x) / times["median_us"]}
        except (RuntimeError, TypeError, AttributeError, ValueError) as problem:
            found[strategy] = {"failed": str(problem)[:300]}
    return found


# Small networks


def torch_network(model: ModelProto, dtype: Any = torch.float32) -> Callable[[Any], Any]:
    """An ONNX graph of a few ops as PyTorch calls on the GPU."""
    weights = {
        i.name: torch.from_numpy(numpy_helper.to_array(i).copy()).to("cuda", dtype)
        for i in model.graph.initializer
    }
    functional = torch.nn.functional

    def run(x: Any) -> Any:
        env = {**weights, model.graph.input[0].name: x}
        for node in model.graph.node:
            a = [env[name] for name in node.input if name]
            attributes = {k.name: list(k.ints) or k.i or k.f for k in node.attribute}
            env[node.output[0]] = _OPS[node.op_type](functional, a, attributes)
        return env[model.graph.output[0].name]

    return run


def _pads(attributes: dict[str, Any]) -> int:
    pads = attributes.get("pads", [0, 0, 0, 0])
    return int(pads[0])


_OPS: dict[str, Callable[[Any, list[Any], dict[str, Any]], Any]] = {
    "Add": lambda f, a, k: a[0] + a[1],
    "BatchNormalization": lambda f, a, k: f.batch_norm(
        a[0], a[3], a[4], a[1], a[2], False, 0, k["epsilon"]
    ),
    "Concat": lambda f, a, k: torch.cat(a, k["axis"]),
    "Conv": lambda f, a, k: f.conv2d(
        a[0], a[1], a[2] if len(a) > 2 else None, k.get("strides", 1), _pads(k)
    ),
    "Flatten": lambda f, a, k: a[0].flatten(1),
    "Gemm": lambda f, a, k: f.linear(a[0], a[1] if k.get("transB") else a[1].T, a[2]),
    "GlobalAveragePool": lambda f, a, k: a[0].mean((2, 3), keepdim=True),
    "MaxPool": lambda f, a, k: f.max_pool2d(a[0], k["kernel_shape"], k["strides"], _pads(k)),
    "MatMul": lambda f, a, k: a[0] @ a[1],
    "Relu": lambda f, a, k: f.relu(a[0]),
    "Softmax": lambda f, a, k: f.softmax(a[0], -1),
}


def network(model: ModelProto, rows: int) -> dict[str, Any]:
    """One network in every mode against eager PyTorch and a CUDA graph."""
    dims = [d.dim_value or rows for d in model.graph.input[0].type.tensor_type.shape.dim]
    x, run = torch.randn(*dims, device="cuda"), torch_network(model)
    want = torch_network(model, torch.float64)(x.double()).cpu().numpy()
    found = {"input": dims, **modes_of(model, [x], want, 0)}
    found["torch eager"] = device_time(lambda: run(x))
    found["torch CUDA graph"] = device_time(graphed(lambda: run(x)))
    return found


def networks() -> dict[str, Any]:
    """The CNN and the MLP."""
    return {"cnn": network(small_cnn(), 1), "mlp": network(mlp(), 64)}


SUITES: dict[str, Callable[[], dict[str, Any]]] = {"w6": w6, "forest": forest, "networks": networks}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suites", nargs="*", help="of w6, forest, networks; all by default")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.set_grad_enabled(False)
    results: dict[str, Any] = {"device": torch.cuda.get_device_name(), "suites": {}}
    for name in options.suites or SUITES:
        start = time.perf_counter()
        try:
            results["suites"][name] = SUITES[name]()
        except (irkit.IrkitError, RuntimeError, ImportError) as problem:
            traceback.print_exc()
            results["suites"][name] = {"failed": str(problem)}
        harness.show(name, results["suites"][name])
        print(f"  ({time.perf_counter() - start:.0f} s)", flush=True)
    harness.write("gpu", results, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
