"""DAGs of kernels: one stream, streams and events by hand, a CUDA graph by hand, and irkit, launches as they
come and replayed, on the same kernels.

    python -m benchmarks.dags                       # on a GPU; writes results/dags.json
    python -m benchmarks.dags --device mock --tiny  # checks all modes without one

Two clocks: "e2e" has copies of pinned host arrays in and out inside, "dev" has all arrays on the
device. Serial waits for the device after each kernel, as the reference does. The first run of a mode is timed
apart, and so is what a replay takes the host. Every answer is compared
with float64 NumPy.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import dag_kernels as k
from benchmarks.dag_programs import WORKLOADS, Arrays, Launch, Workload
from benchmarks.harness import on_a_gpu, timed, write
from irkit.dags.kernels import NumbaLaunch
from irkit.dags.located import Located, steps_of

MODES = ("serial", "streams", "graph", "eager", "irkit")
BARS = {"serial": 1.24, "streams": 0.98, "graph": 1.0}
"""What a replay must reach over a mode, as the geometric mean of all programs."""
TINY = {"VEC": 200, "B&S": 30, "ML": 12, "HITS": 20, "IMG": 12, "DL": 40}


class Bench:
    """A workload of a size on a device, in all modes. `grid` is blocks and threads of a launch."""

    def __init__(self, work: Workload, n: int, device: Any, grid: tuple[int, int]) -> None:
        self.work, self._device, self._grid = work, device, grid
        self.start = work.make(n, np.random.default_rng(0))
        self.host: Arrays = {name: a.copy() for name, a in self.start.items()}
        self._at: dict[str, int] = {}
        self.there: dict[str, Any] = {}
        self._pinned: list[int] = []
        self._plans: list[Any] = []
        self._eager: Any = None
        setup = device.new_stream()
        for name, array in self.host.items():
            first = array.ctypes.data
            device.pin(first, first + array.nbytes)
            self._pinned.append(first)
            self._at[name] = device.allocate(array.nbytes)
            self.there[name] = self._view(name, array.shape)
            device.copy(self._at[name], first, array.nbytes, setup)
        device.synchronize(device.record(setup))
        self._streams = [
            device.new_stream() for _ in range(1 + max(x.stream for x in work.launches))
        ]

    def close(self) -> None:
        """Give memory back."""
        for plan in self._plans:
            plan.close()
        for first in self._pinned:
            self._device.unpin(first)
        for address in self._at.values():
            self._device.free(address)

    def _view(self, name: str, shape: tuple[int, ...]) -> Any:
        array, address = self.host[name], self._at[name]
        root = (address, address + array.nbytes)
        strides = steps_of(shape, array.itemsize)
        return self._device.view(
            Located("device", address, shape, strides, array.dtype, False, root)
        )

    def reset(self) -> None:
        """Inputs as they were, on both sides."""
        for name in self.work.inputs:
            self.host[name][...] = self.start[name]
            self._copy(name, self._streams[0], True)
        self._wait_all()

    def check(self, e2e: bool) -> float:
        """The largest error of the outputs, relative to the largest element. Raises where it is too
        large."""
        if not e2e:
            for name in self.work.outputs:
                self._copy(name, self._streams[0], False)
            self._wait_all()
        worst = 0.0
        for name, right in self.work.oracle(self.start).items():
            error = np.abs(self.host[name] - right).max() / np.abs(right).max()
            worst = max(worst, float(error))
        if not worst <= self.work.tolerance:
            raise AssertionError(f"{self.work.name}: an error of {worst:.2e}")
        return worst

    # -- modes

    def modes(self, e2e: bool) -> dict[str, Callable[[], None]]:
        """A function for each mode that runs the program once, to its end."""
        plan = self._irkit(e2e)
        graph: list[Any] = []

        def replay() -> None:
            if not graph:
                self._streamed(e2e)
                self._wait_all()
                graph.append(self._device.graph(lambda: self._forked(e2e), self._streams[0]))
                self.reset()
            self._device.replay(graph[0], self._streams[0])
            self._wait(self._streams[0])

        def streamed() -> None:
            self._streamed(e2e)
            self._wait_all()

        return {
            "serial": lambda: self._serial(e2e),
            "streams": streamed,
            "graph": replay,
            "eager": lambda: self._as_they_come(e2e),
            "irkit": plan.run,
        }

    @contextmanager
    def opened(self, mode: str) -> Generator[None]:
        """What a mode needs around its runs: the DAG that stays open takes all launches of this thread,
        and is opened for its own mode alone."""
        if mode != "eager":
            yield
            return
        with irkit.dag(self._device, eager=True) as self._eager:
            yield

    def _as_they_come(self, e2e: bool) -> None:
        """Each launch is analysed and started when it comes, in a DAG that stays open."""
        for name in self.work.inputs if e2e else ():
            self._eager.copy(self.there[name], self.host[name])
        for launch in self.work.launches:
            grid, block = self._dimensions(launch)
            self._eager.launch(launch.kernel[grid, block], *self._arguments(launch))
        for name in self.work.outputs if e2e else ():
            self._eager.copy(self.host[name], self.there[name])
        self._eager.wait()

    def _serial(self, e2e: bool) -> None:
        stream = self._streams[0]
        for name in self.work.inputs if e2e else ():
            self._copy(name, stream, True)
        for launch in self.work.launches:
            self._launch(launch, stream)
            self._wait(stream)
        for name in self.work.outputs if e2e else ():
            self._copy(name, stream, False)
        self._wait(stream)

    def _streamed(self, e2e: bool) -> None:
        """Each input is copied in the stream of its first use; others wait for it."""
        copied: dict[str, tuple[int, Any]] = {}
        events: list[Any] = []
        last: dict[str, int] = {}
        for launch in self.work.launches:
            stream = self._streams[launch.stream]
            for name in (a.split(":")[0] for a in launch.arguments):
                if e2e and name in self.work.inputs and name not in copied:
                    self._copy(name, stream, True)
                    copied[name] = launch.stream, self._device.record(stream)
                elif name in copied and copied[name][0] != launch.stream:
                    self._device.wait(stream, copied[name][1])
                last[name] = launch.stream
            for wait in launch.waits:
                self._device.wait(stream, events[wait])
            self._launch(launch, stream)
            events.append(self._device.record(stream))
        for name in self.work.outputs if e2e else ():
            self._copy(name, self._streams[last[name]], False)

    def _forked(self, e2e: bool) -> None:
        first = self._streams[0]
        fork = self._device.record(first)
        for stream in self._streams[1:]:
            self._device.wait(stream, fork)
        self._streamed(e2e)
        for stream in self._streams[1:]:
            self._device.wait(first, self._device.record(stream))

    def _irkit(self, e2e: bool) -> Any:
        moved = {*self.work.inputs, *self.work.outputs} if e2e else set[str]()

        def argument(name: str) -> Any:
            name, _, flat = name.partition(":")
            array = self.host[name] if name in moved else self.there[name]
            return array.reshape(-1) if flat else array

        with irkit.dag(self._device) as d:
            for launch in self.work.launches:
                grid, block = self._dimensions(launch)
                launch.kernel[grid, block](*map(argument, launch.arguments))
        self._plans.append(d.plan())
        return self._plans[-1]

    # -- the device

    def _dimensions(self, launch: Launch) -> tuple[Any, Any]:
        blocks, threads = self._grid
        side = max(blocks // 2, 1)
        return ((side, side), (8, 8)) if launch.plane else (blocks, threads)

    def _arguments(self, launch: Launch) -> tuple[Any, ...]:
        return tuple(
            self.there[name].reshape(-1) if flat else self.there[name]
            for name, _, flat in (a.partition(":") for a in launch.arguments)
        )

    def _launch(self, launch: Launch, stream: Any) -> None:
        grid, block = self._dimensions(launch)
        arguments = self._arguments(launch)
        sizes = (grid, block) if launch.plane else ((grid,), (block,))
        self._device.start(NumbaLaunch(arguments, launch.kernel, *sizes), stream)

    def _copy(self, name: str, stream: Any, inward: bool) -> None:
        ends = self._at[name], self.host[name].ctypes.data
        target, source = ends if inward else ends[::-1]
        self._device.copy(target, source, self.host[name].nbytes, stream)

    def _wait(self, stream: Any) -> None:
        self._device.synchronize(self._device.record(stream))

    def _wait_all(self) -> None:
        for stream in self._streams:
            self._wait(stream)


def measure(bench: Bench, e2e: bool, runs: int) -> dict[str, Any]:
    """Times of all modes, each checked first."""
    found: dict[str, Any] = {}
    for mode, run in bench.modes(e2e).items():
        with bench.opened(mode):
            found[mode] = _measured(bench, mode, run, e2e, runs)
    return found


def _measured(
    bench: Bench, mode: str, run: Callable[[], None], e2e: bool, runs: int
) -> dict[str, Any]:
    bench.reset()
    start = time.perf_counter()
    run()
    first = time.perf_counter() - start
    # Kernels are compiled in the first mode's run, and graphs made in the second of theirs.
    try:
        found: dict[str, Any] = {"error": bench.check(e2e), "first_s": first}
    except AssertionError as error:
        raise AssertionError(f"{mode}, {'end to end' if e2e else 'resident'}: {error}") from error
    if runs:
        # The second run makes irkit's graph; what it does to inputs is undone outside of the clock.
        found |= timed(run, runs=runs, warm=3)
    return found


def row(work: Workload, n: int, clock: str, times: dict[str, Any]) -> str:
    """A line of the table: serial in ms, others as speed-ups over it."""
    if "median_us" not in times["serial"]:
        worst = max(t["error"] for t in times.values())
        return f"{work.name:5} {n:>10} {clock:3} all modes right, largest error {worst:.1e}"
    serial = times["serial"]["median_us"]
    shares = "  ".join(f"{m} {serial / times[m]['median_us']:.2f}" for m in MODES[1:])
    return f"{work.name:5} {n:>10} {clock:3} serial {serial / 1e3:9.3f} ms   {shares}"


def verdicts(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each clock and grid, the geometric mean of irkit's speed over each mode, and the least."""
    lines: list[str] = []
    groups = sorted({(r["clock"], r["blocks"]) for r in results})
    for (clock, blocks), mode in itertools.product(groups, BARS):
        ratios = {
            f"{r['work']} {r['n']}": r["times"][mode]["median_us"]
            / r["times"]["irkit"]["median_us"]
            for r in results
            if (r["clock"], r["blocks"]) == (clock, blocks)
        }
        mean, worst = (
            float(np.exp(np.mean(np.log([*ratios.values()])))),
            min(ratios, key=ratios.__getitem__),
        )
        word = "reached" if mean >= BARS[mode] else "NOT reached"
        lines.append(
            f"{clock} {blocks:5} blocks: {mean:.3f} x {mode} ({BARS[mode]} {word}), "
            f"least {worst} {ratios[worst]:.3f}"
        )
    return lines


def replay_costs(device: Any, sizes: Sequence[int], runs: int) -> list[dict[str, Any]]:
    """What the host does for a replay, in us, until it goes on: chains of kernels of one element, and eight
    side by side between two."""
    clear: Any = k.clear
    found: list[dict[str, Any]] = []
    for shape, tasks in itertools.product(("chain", "fork"), sizes):
        with irkit.dag(device) as d:
            ones = [d.empty(1, "f4") for _ in range(9)]
            for n in range(tasks):
                ends = (0, 0) if shape == "chain" or n % 10 in (0, 9) else (1 + n % 8, 0)
                clear[1, 32](ones[ends[0]])
        with d.plan() as plan:
            for _ in range(3):
                plan.start()
                plan.wait()
            times: list[float] = []
            for _ in range(runs):
                start = time.perf_counter()
                plan.start()
                times.append(1e6 * (time.perf_counter() - start))
                plan.wait()
        median = float(np.median(times))
        found.append({"shape": shape, "tasks": tasks, "host_us": median, "bar_us": 15 + tasks})
    return found


def open_device(name: str) -> Any:
    """The GPU, or a mock of one."""
    if name == "mock":
        from irkit.dags.mock import MockDevice

        return MockDevice()
    from irkit.dags.gpu import GpuDevice

    return GpuDevice()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite. Returns an exit code."""
    parser = argparse.ArgumentParser(description="DAGs of kernels in four modes")
    parser.add_argument("--device", default="cuda", choices=("cuda", "mock"))
    parser.add_argument("--only", nargs="*", default=[w.name for w in WORKLOADS])
    parser.add_argument("--tiny", action="store_true", help="small sizes, answers alone")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--sizes", type=int, help="as many sizes of each program, from the least")
    parser.add_argument("--out", type=Path, help="folder for dags.json")
    parser.add_argument("--blocks", type=int, nargs="*", default=[448, 2048])
    parser.add_argument("--threads", type=int, default=256)
    options = parser.parse_args(arguments)
    device = open_device(options.device)
    results: list[dict[str, Any]] = []
    for work in (w for w in WORKLOADS if w.name in options.only):
        sizes = [TINY[work.name]] if options.tiny else work.sizes[: options.sizes]
        for n, blocks in ((n, b) for n in sizes for b in ([2] if options.tiny else options.blocks)):
            bench = Bench(work, n, device, (blocks, 32 if options.tiny else options.threads))
            for clock in ("e2e", "dev"):
                times = measure(bench, clock == "e2e", 0 if options.tiny else options.runs)
                results.append(
                    {"work": work.name, "n": n, "blocks": blocks, "clock": clock, "times": times}
                )
                print(row(work, n, clock, times), flush=True)
            bench.close()
    sizes, runs = ((8,), 2) if options.tiny else ((8, 32, 128, 256), 10 * options.runs)
    costs = replay_costs(device, sizes, runs)
    if not options.tiny:
        line = "replay of {tasks:4} tasks ({shape}): {host_us:7.1f} us on the host, bar {bar_us}"
        print(*(line.format(**one) for one in costs), *verdicts(results), sep="\n")
        programs = {
            f"{r['work']} {r['n']}, {r['blocks']} blocks, {r['clock']}": r["times"] for r in results
        }
        replays = {f"{c['tasks']} tasks, {c['shape']}": c["host_us"] for c in costs}
        suites = {"programs": programs, "host us of a replay": replays}
        write(
            "dags",
            on_a_gpu(suites, None if options.device == "cuda" else options.device),
            options.out,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
