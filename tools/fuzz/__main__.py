"""Fuzz irkit.

    python -m tools.fuzz mlir|onnx|networks|sklearn|functions|graphs|programs|effects|schedules
                         [--seconds 60] [--most N] [--seed 0] [--keep FOLDER]

mlir: broken text through irkit-opt. onnx: broken models through the importer, and those that are whole
against ONNX Runtime. networks: random networks of many operators, some compiled, against ONNX Runtime.
sklearn: random models of scikit-learn, asked rows in many forms, some compiled, against the library.
functions: random functions of NumPy's arrays as irkit.jit takes them, some compiled, against NumPy.
graphs: float programs through every level against the interpreter, some compiled.
programs: random programs of all ops, element types and ranks, with batches anywhere, state and other
functions, on the standard pipeline and on one in another order, with other grids, on several vDevices, some
for one batch size; some compiled. They are exact or refused by name: the reasons are counted at the end.
effects: programs of arrays, of views, overlapping slices and loops, by the interpreter and as values
against NumPy.
schedules: mutants of proved schedules, of which those that are proved still must run right in every mode of
the proof.

Each finding is shown, a program as the small module that irkit-reduce makes of it, and written to FOLDER;
the exit code is 1 if there are any. A run is repeated by its seed; for hours, give each process a seed of
its own: `python -m tools.fuzz programs --seconds 36000 --seed 1 --keep findings`. What was found becomes a
test in tests/filecheck/regress.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.fuzz.finding import Finding  # noqa: E402

KINDS = (
    "mlir", "onnx", "networks", "sklearn", "functions", "graphs", "programs", "effects", "schedules",
)  # fmt: skip


def attempts(kind: str) -> Callable[[random.Random], Finding | None]:
    """The fuzzer called `kind`."""
    if kind == "mlir":
        from tools.fuzz import mlir

        known = mlir.seeds(ROOT)
        return lambda rng: mlir.attempt(rng, known)
    if kind == "onnx":
        from tools.fuzz import onnx_models

        return onnx_models.attempt
    if kind == "schedules":
        from tools.fuzz import schedules

        return schedules.attempt
    if kind == "networks":
        from tools.fuzz.networks import attempt as networks

        return networks.attempt
    if kind == "sklearn":
        from tools.fuzz.estimators import attempt as estimators

        return estimators.attempt
    if kind == "functions":
        from tools.fuzz.functions import attempt as functions

        return functions.attempt
    if kind == "effects":
        from tools.fuzz.effects import attempt

        return attempt.attempt
    if kind == "programs":
        from tools.fuzz import random_programs

        return random_programs.attempt
    from tools.fuzz import graphs

    return graphs.attempt


def fuzz(
    kind: str, seconds: float, seed: int, most: int = sys.maxsize
) -> tuple[int, list[Finding]]:
    """How many inputs were tried in `seconds`, `most` at most, and the findings, one of each kind."""
    attempt, until, found = attempts(kind), time.monotonic() + seconds, dict[str, Finding]()
    tried = 0
    while tried < most and time.monotonic() < until:
        finding = attempt(random.Random(f"{seed}/{tried}"))
        tried += 1
        if finding is not None:
            found.setdefault(finding.what[-200:], finding)
    return tried, list(found.values())


def _show_refusals() -> None:
    from tools.fuzz.random_programs import REFUSED

    for reason, count in REFUSED.most_common():
        print(f"refused {count} times: {reason}")


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        "python -m tools.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--most", type=int, default=sys.maxsize, help="inputs to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for findings")
    options = parser.parse_args()
    tried, findings = fuzz(options.kind, options.seconds, options.seed, options.most)
    for number, finding in enumerate(findings):
        print(f"-- finding {number}: {finding.what}", file=sys.stderr)
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            file = options.keep / f"{options.kind}-{options.seed}-{number}{finding.suffix}"
            file.write_bytes(finding.data)
            print(f"   {file}", file=sys.stderr)
    if options.kind == "programs":
        _show_refusals()
    print(f"{tried} inputs, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
