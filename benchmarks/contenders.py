"""Contenders: processes that are prepared side by side, since compiling takes most of the time, and
measured one after another, each alone on the GPU."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Figures = dict[str, Any]
Ready = dict[str, Callable[[], Figures]]
"""What can be measured once a contender is prepared, by what it is called."""


@dataclass(frozen=True)
class Job:
    """One contender in one case. `prepare` and what it is made of must pass to another process."""

    case: str
    contender: str
    prepare: Callable[[], Ready]
    seconds: float = 90.0
    """How long all its measurements may take."""


def _process(job: Job, pipe: Connection, log: str) -> None:
    """Prepare, say so, wait to be called, measure; tell each figure as it is found."""
    from irkit.errors import UnsupportedError

    with open(log, "w") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    warnings.simplefilter("ignore")
    try:
        ready = job.prepare()
        pipe.send("ready")
        pipe.recv()
        for label, measure in ready.items():
            pipe.send((label, measure()))
    except UnsupportedError as refusal:
        pipe.send((job.contender, {"refused": str(refusal)}))
    pipe.send(None)


class Contender:
    """The process of a job."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job = job
        self.pipe, other = multiprocessing.Pipe()
        name = "".join(c if c.isalnum() else "-" for c in f"{job.case} {job.contender}")
        self.log = folder / f"{name}.log"
        self.process = multiprocessing.Process(
            target=_process, args=(job, other, str(self.log)), daemon=True
        )
        self.process.start()
        other.close()

    def prepared(self, until: float) -> Figures | None:
        """None once it is ready, or what became of it instead."""
        said = self._next(until)
        if said == "ready":
            return None
        if said == "late":
            return {self.job.contender: {"absent": "not ready in the time given"}}
        return dict([said]) if said else self._ended()

    def measure(self) -> Figures:
        """Its figures, and what became of it if it did not come to an end."""
        until = time.perf_counter() + self.job.seconds
        self.pipe.send("go")
        found: Figures = {}
        while said := self._next(until):
            if said == "late":
                limit = f"no end in {self.job.seconds:.0f} s"
                return {**found, self.job.contender: {"failed": limit}}
            found |= dict([said])
        self.process.join(5)
        return found if self.process.exitcode == 0 else {**found, **self._ended()}

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join()

    def _next(self, until: float) -> Any:
        """What the process says next: None if it has no more to say, "late" if it says nothing."""
        if not self.pipe.poll(max(0.0, until - time.perf_counter())):
            self.stop()
            return "late"
        try:
            return self.pipe.recv()
        except EOFError:
            return None

    def _ended(self) -> Figures:
        """Why the process ended: the last line that it wrote."""
        self.process.join(5)
        lines = self.log.read_text(errors="replace").strip().splitlines()
        reason = lines[-1][:300] if lines else f"exit code {self.process.exitcode}"
        return {self.job.contender: {"failed": reason}}


def contend(jobs: Iterable[Job], seconds: float) -> dict[str, Figures]:
    """Every job: prepared together within so many seconds, then measured one by one. By case."""
    until = time.perf_counter() + seconds
    with tempfile.TemporaryDirectory() as folder:
        all_of_them = [Contender(job, Path(folder)) for job in jobs]
        results: dict[str, Figures] = {c.job.case: {} for c in all_of_them}
        ready: list[Contender] = []
        for c in all_of_them:
            instead = c.prepared(until)
            if instead is None:
                ready.append(c)
            else:
                results[c.job.case] |= instead
        print(f"{len(ready)} of {len(all_of_them)} ready", flush=True)
        for c in sorted(ready, key=lambda c: list(results).index(c.job.case)):
            results[c.job.case] |= c.measure()
        for c in all_of_them:
            c.stop()
    return results
