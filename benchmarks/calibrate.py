"""Find the rates of the machine at hand, from which costs of rKernels are computed, and keep them.

    python -m benchmarks.calibrate [--device cpu|cuda|NAME] [--out FILE] [--samples FILE] [--refit FILE]

Small programs of one op each are compiled by every rKernel that can compute them, each rTask is timed, and
the rates are fitted to the times (`benchmarks/fitting.py`). They are written to the user's configuration
folder, where `irkit.schedule.devices` finds them from then on; IRKIT_RATES_DIR moves it. `--samples` keeps
what was measured, `--refit` fits such a file again and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import irkit
from benchmarks.fitting import Fit
from benchmarks.micro_programs import micro_programs
from benchmarks.rtask_times import Sample, build_variants, measure
from irkit.driver.compiler.targets import planned_device
from irkit.rkernels.work import Work
from irkit.runtime.artifact import Artifact
from irkit.schedule.devices import device as find_device
from irkit.schedule.devices import device_names, register_device
from irkit.schedule.gpus import CALIBRATED
from irkit.schedule.model import VDevice
from irkit.schedule.rates import default_rates, machine_file, processor, write

Built = tuple[str, list[tuple[Artifact, list[Sample]]], str]


def built(job: tuple[str, str]) -> Built:
    """One micro-program by every rKernel; with a word of what went wrong, or none."""
    name, device = job
    found: list[tuple[Artifact, list[Sample]]] = []
    try:
        micro = next(m for m in micro_programs() if m.name == name)
        found.extend(build_variants(name, micro.make(), device, find_device(device).veus))
    except (irkit.IrkitError, RuntimeError) as problem:
        return name, found, f"{type(problem).__name__}: {problem}"
    return name, found, ""


def know(device: VDevice) -> None:
    """Let this process's registry know a device that another process found."""
    if device.name not in device_names():
        register_device(device.name, device)


def programs(names: Sequence[str], device: VDevice) -> Iterator[Built]:
    """All micro-programs, built; for a GPU side by side on the processor's cores."""
    jobs = [(name, device.name) for name in names]
    if device.kind != "cuda":
        yield from map(built, jobs)
        return
    cores = len(os.sched_getaffinity(0))
    with multiprocessing.get_context("spawn").Pool(cores, know, (device,)) as pool:
        yield from pool.imap_unordered(built, jobs)


def collect(names: Sequence[str], device: VDevice, seconds: float = math.inf) -> list[Sample]:
    """What every rTask of every micro-program took; of as many as were built in `seconds`."""
    samples: list[Sample] = []
    until = time.perf_counter() + seconds
    for number, (name, variants, problem) in enumerate(programs(names, device), 1):
        print(f"{number} of {len(names)} small programs: {name}", file=sys.stderr)
        if time.perf_counter() > until:
            print(f"{name} and what is left: no time", file=sys.stderr)
            break
        for artifact, known in variants:
            samples += measure(artifact, known)
        if problem:
            print(f"{name}: {problem}", file=sys.stderr)
    return samples


def estimated(samples: Iterable[Sample], device: VDevice) -> list[Sample]:
    """The samples with estimates by the device's rates."""
    found = list(samples)
    for sample in found:
        sample.estimate_ns = Work(sample.work).nanoseconds(device)
    return found


def off_by(samples: Iterable[Sample]) -> list[float]:
    """By what factor each estimate is off, at least 1."""
    return [max(s.ratio, 1 / s.ratio) for s in samples]


def table(samples: Iterable[Sample]) -> dict[str, dict[str, float]]:
    """rKernel → how many were measured, and by what factor estimates are off: median and worst."""
    by_rkernel: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_rkernel[sample.rkernel].append(sample)
    return {name: summary(found) for name, found in sorted(by_rkernel.items())}


def summary(samples: Sequence[Sample]) -> dict[str, float]:
    """How many, and by what factor estimates are off: median and worst."""
    off = off_by(samples)
    return {"measured": len(off), "median": float(np.median(off)), "worst": float(max(off))}


def show(title: str, samples: Sequence[Sample]) -> None:
    """A line an rKernel."""
    print(f"== {title}: factor between estimate and measurement")
    for name, found in {**table(samples), "all": summary(samples)}.items():
        print(
            f"  {name:28} {found['measured']:4.0f}  median {found['median']:6.2f}  "
            f"worst {found['worst']:7.2f}"
        )


def machine_name(device: VDevice) -> str:
    """What the machine calls itself."""
    if device.kind != "cuda":
        return processor()
    from irkit.runtime.cuda.driver import device as gpu

    return gpu().name


def fitted(samples: Sequence[Sample], device: VDevice) -> dict[str, float]:
    """The device's rates, those that the samples bear on replaced."""
    return {**device.rates, **Fit(samples, device.rates).run()}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        prog="irkit-bench calibrate", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, or the name of a vDevice")
    parser.add_argument("--out", type=Path, help="file of rates to write, not the user's own")
    parser.add_argument("--samples", type=Path, help="file to keep the measurements in")
    parser.add_argument("--refit", type=Path, help="file of measurements to fit, none being made")
    parser.add_argument("--only", default="", help="micro-programs whose names contain this")
    options = parser.parse_args()
    start = time.perf_counter()
    device = planned_device(device=options.device)
    place(device, options.out)
    if options.refit is not None:
        samples = [Sample(**facts) for facts in json.loads(options.refit.read_text())]
    else:
        names = [m.name for m in micro_programs() if options.only in m.name]
        if not names:
            return failed(f"no small program has '{options.only}' in its name")
        samples = collect(names, device)
    if options.samples is not None:
        options.samples.parent.mkdir(parents=True, exist_ok=True)
        options.samples.write_text(json.dumps([s.to_json() for s in samples]))
    return keep(samples, device, options.out, start)


def place(device: VDevice, out: Path | None) -> Path:
    """The file to write. Raises SystemExit where the user wants none."""
    path = out if out is not None else machine_file(device.name)
    if path is None:
        raise SystemExit(
            failed("IRKIT_RATES_DIR is empty, so rates have no place: give one, or --out FILE")
        )
    return path


def failed(reason: str) -> int:
    """Say why there are no rates; the exit code."""
    print(f"irkit-bench calibrate: error: {reason}", file=sys.stderr)
    return 1


def keep(samples: list[Sample], device: VDevice, out: Path | None, start: float) -> int:
    """Fit, show, and write the rates."""
    path = place(device, out)
    if not samples:
        return failed("nothing was measured")
    show("before", estimated(samples, device))
    rates = fitted(samples, device)
    show("after", estimated(samples, replace(device, rates=rates)))
    known = default_rates(device.name) if device.name in ("cpu", CALIBRATED) else {}
    for name, rate in sorted(rates.items()):
        print(f"  {name:12} {rate:12.5f} ns, by default {known.get(name, float('nan')):12.5f}")
    name = machine_name(device)
    write(path, device.name, name, rates)
    print(f"{path}: rates of {name}, {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
