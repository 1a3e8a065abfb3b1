"""Networks in 8 bits against ONNX Runtime in 8 bits, on one thread and on all.

    python -m benchmarks.quantised [light_resnet50] [light_squeezenet] [--target cpu|cuda] [--out FOLDER]

ONNX Runtime's own quantiser makes each model (QDQ, unsigned activations, a scale per output channel) of one
of the onnx package's networks with random weights, from inputs drawn at random. Answers are those of the
same integers, but for what is rounded in between: the error is by the largest output, and beside it stands
how far the network is from itself in float32. On a GPU the peer is irkit's program of the float32 network.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from benchmarks.light import folder, with_random_weights

MODELS = ("light_resnet50", "light_squeezenet")
_CALIBRATED_ON = 4


def float_model(name: str) -> tuple[Any, str, list[int]]:
    """A network with random weights, of an operator set that has scales per channel; its input."""
    onnx = harness.peer("onnx")
    model = with_random_weights(onnx.load(folder() / f"{name}.onnx"))
    known = {t.name for t in model.graph.initializer}
    (declared,) = (v for v in model.graph.input if v.name not in known)
    for value in [v for v in model.graph.input if v.name in known]:
        model.graph.input.remove(value)
    shape = [d.dim_value for d in declared.type.tensor_type.shape.dim]
    converted = harness.peer("onnx.version_converter").convert_version(model, 17)
    return converted, declared.name, shape


def quantised(model: Any, x: str, shape: list[int]) -> Any:
    """The network as ONNX Runtime's quantiser writes it."""
    onnx, made = harness.peer("onnx"), harness.peer("onnxruntime.quantization")
    rng = np.random.default_rng(2)
    left = [{x: rng.standard_normal(shape, dtype=np.float32)} for _ in range(_CALIBRATED_ON)]

    class Inputs(made.CalibrationDataReader):
        def get_next(self) -> Any:
            return left.pop() if left else None

    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        onnx.save(model, path / "float.onnx")
        prepare = harness.peer("onnxruntime.quantization.shape_inference").quant_pre_process
        # Batch normalisation goes into the filters.
        prepare(path / "float.onnx", path / "ready.onnx", skip_symbolic_shape=True)
        made.quantize_static(
            path / "ready.onnx", path / "bytes.onnx", Inputs(), per_channel=True,
            quant_format=made.QuantFormat.QDQ, activation_type=made.QuantType.QUInt8,
            weight_type=made.QuantType.QInt8,
        )  # fmt: skip
        return onnx.load(path / "bytes.onnx")


def session(model: Any, threads: int) -> Any:
    """ONNX Runtime on so many threads."""
    runtime = harness.peer("onnxruntime")
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 3
    return runtime.InferenceSession(
        model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )


def on_cpu(name: str) -> dict[str, Any]:
    """One network, on one thread and on all that there are."""
    model, x, shape = float_model(name)
    proto = quantised(model, x, shape)
    value = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    exact = session(model, 1).run(None, {x: value})[0]
    found: dict[str, Any] = {}
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        program = irkit.compile(proto, device=f"cpu{threads}")
        for _ in range(12):  # `auto` tries its modes on the first calls
            got = program(value)
        peer = session(proto, threads)
        want = peer.run(None, {x: value})[0]
        size = max(float(np.abs(want).max()), 1e-30)
        off = harness.largest_error(got, want) / size
        runs = {
            "irkit": lambda p=program: p(value),
            "ONNX Runtime": lambda p=peer: p.run(None, {x: value}),
        }
        # A few elements of a layer round the other way, and what hangs on them.
        row = harness.gated(off, 0.05, lambda r=runs: harness.in_blocks(r))
        row["from float32"] = harness.largest_error(got, exact) / max(
            float(np.abs(exact).max()), 1e-30
        )
        found[f"{threads} threads"] = row
    return found


def on_gpu(name: str) -> dict[str, Any]:
    """One network on a GPU, beside itself in float32."""
    model, x, shape = float_model(name)
    proto = quantised(model, x, shape)
    value = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    want = session(proto, 1).run(None, {x: value})[0]
    programs = {
        "irkit": irkit.compile(proto, target="cuda"),
        "irkit float32": irkit.compile(model, target="cuda"),
    }
    for program in programs.values():
        for _ in range(12):
            program(value)
    off = harness.largest_error(programs["irkit"](value), want) / max(
        float(np.abs(want).max()), 1e-30
    )
    runs = {k: (lambda p=p: p(value)) for k, p in programs.items()}
    return harness.gated(off, 0.05, lambda: harness.in_blocks(runs))


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        "irkit-bench quantised", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)}; the first by default")
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu", help="where (cpu)")
    parser.add_argument("--out", type=Path, default=None, help="folder for quantised.json")
    options = parser.parse_args(arguments)
    unknown = [m for m in options.models if m not in MODELS]
    if unknown:
        message = f"unknown model '{unknown[0]}': expected {', '.join(MODELS)}"
        parser.exit(1, f"irkit-bench: error: {message}\n")
    suites: dict[str, Any] = {}
    for name in options.models or MODELS[:1]:
        suites[name] = on_cpu(name) if options.target == "cpu" else on_gpu(name)
        harness.show(name, suites[name])
    print(harness.write("quantised", {"suites": suites}, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
