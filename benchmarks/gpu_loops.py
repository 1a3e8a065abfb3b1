"""Check and time programs with loops on a GPU: stencils of npbench's shapes, in every mode, beside CuPy.

    python -m benchmarks.gpu_loops                      on a GPU: all programs, preset L
    python -m benchmarks.gpu_loops --preset paper jacobi_2d
    python -m benchmarks.gpu_loops --build h200         anywhere: compiles, runs nothing

Whole arrays are compared with float64 NumPy. Two clocks: `host`, wall time of a call on NumPy arrays with its
copies, and `device`, between two events around a call on arrays that lie on the device. CuPy's functions are
the same text on its arrays; where CuPy is not installed its columns are empty. A figure is the median of
several runs, in milliseconds. The table is printed, and written as JSON to the folder that `--out` names.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from irkit.dialects.program.builder import BuiltProgram
from irkit.driver.programs.jitted import JittedFunction
from irkit.driver.programs.lowering import Lowered
from irkit.model_info import ModelInfo
from irkit.runtime.artifact import Artifact
from irkit.runtime.cuda.driver import Event
from irkit.runtime.cuda.executor import CudaExecutor
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.mode_choice import MODES

Array = Any
Rounds = Callable[..., Any]


def jacobi_1d(rounds: Rounds, steps: int, a: Array, b: Array) -> None:
    """A mean of three neighbours, from a to b and back."""
    for _ in rounds(1, steps):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


def jacobi_2d(rounds: Rounds, steps: int, a: Array, b: Array) -> None:
    """A mean of five neighbours."""
    for _ in rounds(1, steps):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )


def _heat(x: Array) -> Array:
    centre = x[1:-1, 1:-1, 1:-1]
    return (
        0.125 * (x[2:, 1:-1, 1:-1] - 2.0 * centre + x[:-2, 1:-1, 1:-1])
        + 0.125 * (x[1:-1, 2:, 1:-1] - 2.0 * centre + x[1:-1, :-2, 1:-1])
        + 0.125 * (x[1:-1, 1:-1, 2:] - 2.0 * centre + x[1:-1, 1:-1, :-2])
        + centre
    )


def heat_3d(rounds: Rounds, steps: int, a: Array, b: Array) -> None:
    """Heat that spreads in three dimensions."""
    for _ in rounds(1, steps):
        b[1:-1, 1:-1, 1:-1] = _heat(a)
        a[1:-1, 1:-1, 1:-1] = _heat(b)


PROGRAMS: dict[str, tuple[Callable[..., None], int]] = {
    "jacobi_1d": (jacobi_1d, 1),
    "jacobi_2d": (jacobi_2d, 2),
    "heat_3d": (heat_3d, 3),
}
"""The function, and how many dimensions its arrays have."""

PRESETS = {
    "tiny": {"jacobi_1d": (6, 200), "jacobi_2d": (5, 14), "heat_3d": (5, 6)},
    "S": {"jacobi_1d": (800, 3200), "jacobi_2d": (50, 150), "heat_3d": (25, 25)},
    "M": {"jacobi_1d": (3000, 12000), "jacobi_2d": (80, 350), "heat_3d": (50, 40)},
    "L": {"jacobi_1d": (8500, 34000), "jacobi_2d": (200, 700), "heat_3d": (100, 70)},
    "paper": {"jacobi_1d": (4000, 32000), "jacobi_2d": (1000, 2800), "heat_3d": (500, 120)},
}
"""Steps, and elements of each dimension, as npbench has them."""


class Compiled(Lowered):
    """A compiled program whose artifact can be had."""

    @property
    def artifact(self) -> Artifact:
        """What was compiled."""
        return self._variant.artifact


def compiled(name: str, preset: str, device: str | None) -> Artifact:
    """The artifact of a program for a GPU."""
    function, rank = PROGRAMS[name]
    steps, size = PRESETS[preset][name]

    def program(a: Array, b: Array) -> None:
        function(irkit.range, steps, a, b)

    options = {
        "target": "cuda",
        "device": device,
        "mode": "auto",
        "fastmath": ("afn",),
        "cache": True,
    }
    made: list[Compiled] = []

    def lower(built: BuiltProgram) -> Compiled:
        made.append(Compiled(built, options))
        return made[-1]

    x = np.zeros((size,) * rank)
    JittedFunction(program, lower).compile(x, x.copy())
    return made[-1].artifact


def inputs(name: str, preset: str) -> list[Array]:
    """Random arrays of a program."""
    _, rank = PROGRAMS[name]
    rng = np.random.default_rng(42)
    shape = (PRESETS[preset][name][1],) * rank
    return [rng.normal(size=shape) for _ in range(2)]


def milliseconds(run: Callable[[], Any], repeats: int) -> float:
    """The median wall time of a call, after one that is not counted."""
    run()
    found: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        found.append(1e3 * (time.perf_counter() - start))
    return median(found)


def on_device(executor: CudaExecutor, mode: Any, repeats: int) -> float:
    """The median time between events around a call over the arrays bound last."""
    found: list[float] = []
    for _ in range(repeats + 1):
        start, end = Event(), Event()
        start.record(executor.stream)
        executor.launch(mode, 1, executor.stream)
        end.record(executor.stream)
        found.append(end.since(start))
    return median(found[1:])


def of_irkit(
    artifact: Artifact, given: Sequence[Array], wanted: Sequence[Array], repeats: int
) -> Any:
    """Each mode's times and largest error, or why it does not run."""
    found: dict[str, Any] = {}
    for mode in MODES["cuda"]:
        try:
            executor = CudaExecutor.from_artifact(
                artifact, ModelInfo.from_json(artifact.info), mode
            )
            # Twice: the second call must not know of the first.
            for _ in range(2):
                results = executor.run(list(given))
        except irkit.IrkitError as error:
            found[str(mode)] = {"refused": str(error)}
            continue
        by_name = dict(zip((p.name for p in executor.program.outputs), results, strict=True))
        pairs = [(by_name[n], w) for n, w in zip("ab", wanted, strict=True)]
        found[str(mode)] = {
            "error": max(float(np.abs(x - y).max()) for x, y in pairs),
            "host_ms": milliseconds(lambda run=executor.run: run(list(given)), repeats),
            "device_ms": on_device(executor, mode, repeats),
        }
    return found


def of_cupy(name: str, preset: str, given: Sequence[Array], repeats: int) -> dict[str, float]:
    """CuPy's times; none where it is not installed."""
    if importlib.util.find_spec("cupy") is None:
        return {}
    cupy: Any = importlib.import_module("cupy")
    function, _ = PROGRAMS[name]
    steps, _ = PRESETS[preset][name]

    def host() -> None:
        arrays = [cupy.asarray(x) for x in given]
        function(range, steps, *arrays)
        for x in arrays:
            cupy.asnumpy(x)

    kept = [cupy.asarray(x) for x in given]

    def resident() -> None:
        function(range, steps, *kept)
        cupy.cuda.runtime.deviceSynchronize()

    return {"host_ms": milliseconds(host, repeats), "device_ms": milliseconds(resident, repeats)}


def measured(name: str, preset: str, device: str | None, repeats: int) -> dict[str, Any]:
    """All of one program."""
    given = inputs(name, preset)
    wanted = [x.copy() for x in given]
    function, _ = PROGRAMS[name]
    steps, _ = PRESETS[preset][name]
    start = time.perf_counter()
    function(range, steps, *wanted)
    numpy_ms = 1e3 * (time.perf_counter() - start)
    irkit_found = of_irkit(compiled(name, preset, device), given, wanted, repeats)
    return {
        "program": name,
        "preset": preset,
        "numpy_ms": numpy_ms,
        "irkit": irkit_found,
        "cupy": of_cupy(name, preset, given, repeats),
    }


def lines(record: dict[str, Any]) -> list[str]:
    """A program's figures as rows of a table."""
    title, cupy = f"{record['program']} {record['preset']}", record["cupy"]
    rows = [f"{title:20} {'numpy':12} host {record['numpy_ms']:10.3f} ms"]
    if cupy:
        device, host = cupy["device_ms"], cupy["host_ms"]
        rows.append(f"{title:20} {'cupy':12} host {host:10.3f} ms  device {device:10.3f} ms")
    for mode, of in record["irkit"].items():
        said = of.get("refused") or (
            f"host {of['host_ms']:10.3f} ms  device {of['device_ms']:10.3f} ms  error {of['error']:.1e}"
        )
        rows.append(f"{title:20} {mode:12} {said}")
    return rows


def built(name: str, preset: str, device: str) -> str:
    """What compiling a program for a GPU that is not here gives."""
    artifact = compiled(name, preset, device)
    program, facts = read_facts(artifact.source)
    return (
        f"{name} {preset}: {len(program.appends)} appends in modes {', '.join(program.modes)}; "
        f"{facts.shared_bytes} bytes of shared memory; entries {', '.join(facts.entries)}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 1 where an answer is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS), metavar="PROGRAM")
    parser.add_argument("--preset", choices=sorted(PRESETS), default="L")
    parser.add_argument("--device", help="the GPU at hand, by name")
    parser.add_argument("--build", metavar="GPU", help="only compile, for a GPU by name")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, help="a folder for gpu_loops.json")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.programs) - set(PROGRAMS))
    if unknown:
        parser.error(f"unknown program '{unknown[0]}'; there are {', '.join(PROGRAMS)}")
    if options.build:
        for name in options.programs:
            print(built(name, options.preset, options.build))
        return 0
    records: list[dict[str, Any]] = []
    for name in options.programs:
        records.append(measured(name, options.preset, options.device, options.repeats))
        print("\n".join(lines(records[-1])), flush=True)
    if options.out is not None:
        suites = {f"{r.pop('program')} {r.pop('preset')}": r for r in records}
        harness.write("gpu_loops", harness.on_a_gpu(suites, options.device), options.out)
    errors = [of.get("error", 0.0) for r in records for of in r["irkit"].values()]
    return int(not all(e <= 1e-9 for e in errors))


if __name__ == "__main__":
    sys.exit(main())
