"""The networks inside the onnx package on a CPU: against ONNX Runtime, and from file to program.

    python -m benchmarks.light [light_resnet50] [light_squeezenet] [light_bvlc_alexnet] [--out FOLDER]

These files have ResNet-50, SqueezeNet and AlexNet whole, but all weights of a tensor equal. Each is
measured as it is, compared with the output that comes with it, and once more with random weights, where
a wrong answer shows. ONNX Runtime's threads spin for a while after each call, on the cores that irkit
would use: both are timed in blocks, with a pause between.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness

MODELS = ("light_resnet50", "light_squeezenet", "light_bvlc_alexnet")


def folder() -> Path:
    """Where the onnx package keeps them."""
    return Path(harness.peer("onnx").__file__).parent / "backend" / "test" / "data" / "light"


def with_random_weights(model: Any) -> Any:
    """A copy whose constants of one value are drawn at random, scaled as for training."""
    onnx = harness.peer("onnx")
    numpy_helper = harness.peer("onnx.numpy_helper")
    made, rng = onnx.ModelProto(), np.random.default_rng(0)
    made.CopyFrom(model)
    made.ir_version = 8  # before 4, initializers had to be inputs too
    shapes = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    for node in list(made.graph.node):
        if node.op_type != "ConstantOfShape":
            continue
        shape = shapes[node.input[0]].tolist()
        # Positive where it may be a variance; a filter's sum keeps its scale.
        scale = np.sqrt(2 / max(int(np.prod(shape[1:])), 1)) if len(shape) > 1 else 0.5
        values = rng.standard_normal(shape) if len(shape) > 1 else rng.random(shape) + 0.5
        array = (values * scale).astype(np.float32)
        made.graph.node.remove(node)
        made.graph.initializer.append(numpy_helper.from_array(array, node.output[0]))
    return made


def measured(model: Any, x: Any) -> dict[str, Any]:
    """irkit and ONNX Runtime on one input of one model."""
    program = irkit.compile(model, target="cpu")
    for _ in range(12):  # `auto` tries its modes on the first calls
        got = program(x)
    runtime = harness.peer("onnxruntime")
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = len(os.sched_getaffinity(0))
    settings.log_severity_level = 3
    session = runtime.InferenceSession(model.SerializeToString(), settings)
    name = session.get_inputs()[0].name
    want = session.run(None, {name: x})[0]
    off = harness.largest_error(got, want) / max(float(np.abs(want).max()), 1e-30)
    runs = {"irkit": lambda: program(x), "ONNX Runtime": lambda: session.run(None, {name: x})}
    return harness.gated(off, 1e-4, lambda: harness.in_blocks(runs))


_COMPILE = """
import sys, time
import numpy as np
start = time.perf_counter()
import irkit
program = irkit.compile(sys.argv[1], target="cpu")
ready = time.perf_counter()
program(np.zeros([int(n) for n in sys.argv[2].split(",")], np.float32))
print(ready - start, time.perf_counter() - ready)
"""


def compile_time(path: Path, shape: list[int]) -> dict[str, Any]:
    """From the file to a runnable program in new processes: empty cache, then a filled one."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "IRKIT_CACHE_DIR": cache}
        for name in ("cold", "warm"):
            command = [sys.executable, "-W", "ignore", "-c", _COMPILE, str(path)]
            command.append(",".join(map(str, shape)))
            run = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True
            )
            ready, first = (float(s) for s in run.stdout.split())
            found[name] = {"file to program, s": ready, "first call, s": first}
    return found


def network(name: str) -> dict[str, Any]:
    """Everything about one model."""
    onnx, numpy_helper = harness.peer("onnx"), harness.peer("onnx.numpy_helper")
    path = folder() / f"{name}.onnx"
    model = onnx.load(path)
    known = {t.name for t in model.graph.initializer}
    (declared,) = (v for v in model.graph.input if v.name not in known)
    shape = [d.dim_value for d in declared.type.tensor_type.shape.dim]
    found = {"compile": compile_time(path, shape)}
    expected = onnx.TensorProto.FromString((folder() / f"{name}_output_0.pb").read_bytes())
    # The onnx package's own runner makes the input this way.
    x = (np.arange(np.prod(shape)) / np.prod(shape)).reshape(shape).astype(np.float32)
    got = irkit.compile(model, target="cpu")(x)
    found["output that comes with it"] = {
        "max error": harness.largest_error(got, numpy_helper.to_array(expected))
    }
    drawn = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    found["as it is"] = measured(model, drawn)
    found["random weights"] = measured(with_random_weights(model), drawn)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        "irkit-bench light", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)}; all by default")
    parser.add_argument("--out", type=Path, default=None, help="folder for light.json")
    options = parser.parse_args(arguments)
    unknown = [m for m in options.models if m not in MODELS]
    if unknown:
        message = f"unknown model '{unknown[0]}': expected {', '.join(MODELS)}"
        parser.exit(1, f"irkit-bench: error: {message}\n")
    suites: dict[str, Any] = {}
    for name in options.models or MODELS:
        suites[name] = network(name)
        harness.show(name, suites[name])
    print(harness.write("light", {"suites": suites}, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
