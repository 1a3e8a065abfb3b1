"""A recorded DAG, planned once: buffers, streams and waits, proved, and replayed as often as it is
wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

from irkit.dags.capture import Launching
from irkit.dags.clocks import Clocks
from irkit.dags.device import DagDevice, do_here, put
from irkit.dags.failures import drain, failed, in_part
from irkit.dags.memory import Memory
from irkit.dags.planning import plan_of, report_of
from irkit.dags.steps import Step
from irkit.dags.watch import Watch
from irkit.dags.works import Launch
from irkit.errors import DeviceError, UnsupportedError
from irkit.schedule.host.model import HOST, Place
from irkit.viewing.chrome import chrome_trace
from irkit.viewing.host_plans import measured, planned
from irkit.viewing.svg import schedule_svg
from irkit.viewing.timeline import Timeline


def _unwatched(number: int, stream: Any) -> None:
    """Nobody looks at the clock."""


class _Guarded:
    """What is told of an error of a `with` statement, which goes on. A replay takes a few µs: one that a
    generator makes would be a part of them."""

    __slots__ = ("_failed",)

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        self._failed = failed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._failed(error)


class Plan:
    """A DAG that can be run again and again: `run` does all of it, on the arrays that were recorded.

    Those arrays are kept. What is in host arrays when a run starts is what the run sees, and when it
    ends they have its results. `close`, the end of a `with` statement, or the end of the last reference
    gives back what it has of the device, and what its DAG has.
    """

    def __init__(
        self,
        device: DagDevice,
        steps: Sequence[Step],
        streams: int,
        memory: Memory | None = None,
    ) -> None:
        self._device, self._steps = device, list(steps)
        self._memory = memory if memory is not None else Memory(device)
        self.plan = plan_of(self._steps, streams)
        self._watch = Watch(self._steps, self._memory)
        self._host = next((step for step in self._steps if step.task.on_host), None)
        self._streams: list[Any] = []
        self._awaited = {wait for place in self.plan.places for wait in place.waits}
        self._graph: Any = None
        # Of every run: behind what others did before it, and behind itself, where it was only started.
        self._begin: Any = None
        self._end: Any = None
        self._ran = False
        self._doing: Step | None = None
        self._begun: list[Step] = []
        self._one = threading.RLock()
        """Threads that run it do so one after the other: its memory is one."""

    # -- running

    def run(self, mode: str = "auto") -> None:
        """Run it to its end.

        In mode "streams" it is put into streams task by task. In mode "graph" that is done once, and
        what was put there is one graph, which is replayed; no function of the host may be in between.
        "auto" takes streams the first time, when kernels are compiled, and then the graph where there
        may be one. Raises InvalidInputError where an array is no longer where it was recorded, or the
        plan was closed, UnsupportedError for a mode that cannot be, DeviceError where the device fails.
        """
        with self._one:
            self._run(mode)

    def _run(self, mode: str) -> None:
        graph = self._graph_mode(mode)
        self._watch.check()
        with self._guarded():
            if graph and self._graph is not None:
                self._replay()
                self._device.finish(self._streams[1])
                return
            with Launching():
                self._open()
                if not graph:
                    self._stream()
                elif len(self._streams) > 1:
                    self._record()
                    self._replay()
                    self._device.finish(self._streams[1])
        self._ran = True

    def start(self) -> None:
        """Put a run on the device as a graph, and go on: `wait` waits for it, and the next one comes after
        it. Raises as `run` does in mode "graph". The run that makes the graph is waited for."""
        if self._graph is None:
            self.run("graph" if self._ran else "streams")
        else:
            self._watch.check()
            with self._guarded():
                self._replay()
                self._end = self._device.record(self._streams[1], self._end)

    def wait(self) -> None:
        """Wait for what was started. Raises DeviceError where the device fails."""
        if self._end is not None:
            with self._guarded():
                self._begun = self._steps
                self._device.synchronize(self._end)

    def _graph_mode(self, mode: str) -> bool:
        if mode not in ("auto", "streams", "graph"):
            raise UnsupportedError(f"mode '{mode}': a plan runs in 'auto', 'streams' or 'graph'")
        if mode == "graph" and self._host is not None:
            task = self._host.task
            raise UnsupportedError(
                f"mode 'graph': '{task.name}' ({task.origin}) is the host's to do"
            )
        return mode == "graph" or (mode == "auto" and self._ran and self._host is None)

    def _open(self) -> None:
        """Streams, and what launches need beforehand."""
        if self._streams:
            return
        made = [self._device.new_stream() for _ in range(self.plan.queues - 1)]
        for step in self._steps:
            if isinstance(step.work, Launch):
                self._doing = step
                step.work.prepare()
        self._doing = None
        self._streams = [None, *made]

    def _stream(self) -> None:
        begin = self._device.begin()
        for stream in self._streams[1:]:
            self._device.wait(stream, begin)
        for event in self._issue():
            self._device.synchronize(event)

    def _record(self) -> None:
        self._graph = self._device.graph(self._forked, self._streams[1])
        # Until it is replayed nothing is done.
        self._begun = []

    def _replay(self) -> None:
        """The graph, behind what others put on the device."""
        first = self._streams[1]
        self._begin = self._device.begin(self._begin)
        self._device.wait(first, self._begin)
        self._begun = self._steps
        self._device.replay(self._graph, first)

    def _forked(self) -> None:
        """Everything, in streams that leave the first one and come back to it."""
        first = self._streams[1]
        fork = self._device.record(first)
        for stream in self._streams[2:]:
            self._device.wait(stream, fork)
        for event in self._issue():
            self._device.wait(first, event)

    def _issue(self, watched: Callable[[int, Any], None] = _unwatched) -> list[Any]:
        """Put all tasks where they belong; an event behind each stream. `watched` is told of each task, and
        its stream, before it is put there and after."""
        events: dict[int, Any] = {}
        for number, (step, place) in enumerate(zip(self._steps, self.plan.places, strict=True)):
            self._doing = step
            before = [events[wait] for wait in place.waits if wait in events]
            self._wait(place, before)
            watched(number, self._streams[place.queue])
            self._begun.append(step)
            self._issue_one(number, step, place, events)
            watched(number, self._streams[place.queue])
        self._doing = None
        return [self._device.record(stream) for stream in self._streams[1:]]

    def _wait(self, place: Place, before: Sequence[Any]) -> None:
        for event in before:
            if place.queue == HOST:
                self._device.synchronize(event)
            else:
                self._device.wait(self._streams[place.queue], event)

    def _issue_one(self, number: int, step: Step, place: Place, events: dict[int, Any]) -> None:
        # What the host does it has done before it goes on.
        if place.queue == HOST:
            do_here(step.work)
            return
        stream = self._streams[place.queue]
        put(self._device, step.work, stream)
        if number in self._awaited:
            events[number] = self._device.record(stream)

    def _guarded(self) -> _Guarded:
        """Errors say where they came from and what may be written, and nothing of a run that failed goes on:
        the next one starts anew."""
        self._doing, self._begun = None, []
        return _Guarded(self._failed)

    def _failed(self, error: BaseException) -> None:
        drain(self._device, self._streams[1:])
        self._graph = self._begin = self._end = None
        self._streams = []
        doing, begun = self._doing, list(self._begun)
        if isinstance(error, DeviceError):
            raise failed(error, doing, self._steps, begun) from error
        if doing is not None:
            error.add_note(f"'{doing.task.name}' ({doing.task.origin}); {in_part(begun)}")

    # -- what it has of the device

    def close(self) -> None:
        """Give back streams, events, the graph, and the memory that its DAG has on the device; views of
        `d.empty` are no arrays from then on. A closed plan cannot be run; it can still be looked at."""
        # Graphs name streams and events.
        self._graph = self._begin = self._end = None
        self._streams = []
        self._steps = []
        self._watch.close()
        self._memory.close()

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- looking at it

    def ir(self) -> str:
        """The plan as a module of the `host` dialect, for irkit-opt."""
        from xdsl.printer import Printer

        from irkit.passes.host.program_text import program_of

        text = StringIO()
        Printer(text).print_op(program_of(self.plan, verified=True))
        return text.getvalue() + "\n"

    def timeline(self) -> Timeline:
        """What the plan expects: row 0 is the host, the others are streams."""
        return planned(self.plan)

    def measured(self) -> Timeline:
        """One run, task by task, with a clock around each: events in its stream, or the host's. Raises as
        `run` does."""
        self._watch.check()
        with self._guarded(), Launching():
            self._open()
            clocks = Clocks(self._device)
            for stream in self._streams[1:]:
                self._device.wait(stream, clocks.begin)
            for event in self._issue(clocks.note):
                self._device.synchronize(event)
        return measured(self.plan, clocks.spans())

    def picture(self, title: str = "DAG") -> str:
        """The plan as an SVG picture."""
        return schedule_svg([self.timeline()], title)

    def trace(self, measure: bool = False) -> str:
        """The plan as a trace for Perfetto or chrome://tracing, JSON text; with `measure`, beside it a run as
        it was measured."""
        lines = [self.timeline(), self.measured()] if measure else [self.timeline()]
        return chrome_trace(lines, {})

    def report(self) -> list[dict[str, Any]]:
        """For each task what it is, where it came from, its arrays, its stream, and what it waits for
        and why."""
        return report_of(self.plan)
