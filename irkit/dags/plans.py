"""A recorded DAG, planned once: buffers, streams and waits, proved, and replayed as often as it is
wanted."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from typing import Any

from irkit.dags.capture import launching
from irkit.dags.device import DagDevice, put
from irkit.dags.located import locate
from irkit.dags.steps import HOST_BUFFER, Step
from irkit.errors import DeviceError, InvalidInputError, UnsupportedError
from irkit.schedule.host.model import HOST, HostBuffer, HostPlan, HostTask, Place, Use
from irkit.schedule.host.overlap import conflict
from irkit.schedule.host.planning import assign_streams
from irkit.schedule.host.verifier import verify
from irkit.viewing.chrome import chrome_trace
from irkit.viewing.host_plans import planned
from irkit.viewing.svg import schedule_svg
from irkit.viewing.timeline import Timeline

Span = tuple[int, int]


def plan_of(steps: Sequence[Step], streams: int) -> HostPlan:
    """The plan of recorded steps, proved. Raises ScheduleError where it is wrong, which irkit is at
    fault for."""
    buffers, tasks = with_buffers([step.task for step in steps])
    plan = assign_streams(buffers, tasks, streams)
    verify(plan)
    return plan


def with_buffers(tasks: Sequence[HostTask]) -> tuple[list[HostBuffer], list[HostTask]]:
    """Tasks whose regions are counted from the start of buffers: all that overlaps lies in one."""
    spaces: dict[int, list[Span]] = {}
    for task in tasks:
        for use in task.uses:
            spaces.setdefault(use.region.buffer, []).append(use.region.hull)
    buffers: list[HostBuffer] = []
    starts: dict[int, list[tuple[Span, int]]] = {}
    for space, spans in sorted(spaces.items()):
        for span in _joined(spans):
            starts.setdefault(space, []).append((span, len(buffers)))
            name = "host" if space == HOST_BUFFER else "device"
            where = "host" if space == HOST_BUFFER else "device"
            buffers.append(HostBuffer(f"{name}{len(buffers)}", where, span[1] - span[0]))

    def moved(use: Use) -> Use:
        region = use.region
        low, high = region.hull
        span, number = next(
            (s, n) for s, n in starts[region.buffer] if s[0] <= low and high <= s[1]
        )
        return replace(use, region=replace(region, buffer=number, offset=region.offset - span[0]))

    return buffers, [replace(task, uses=tuple(map(moved, task.uses))) for task in tasks]


def _joined(spans: Sequence[Span]) -> list[Span]:
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low < found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        elif not found or (low, high) != found[-1]:
            found.append((low, high))
    return found


class Plan:
    """A DAG that can be run again and again: `run` does all of it, on the arrays that were recorded.

    Those arrays are kept. What is in host arrays when a run starts is what the run sees, and when it
    ends they have its results.
    """

    def __init__(self, device: DagDevice, steps: Sequence[Step], streams: int) -> None:
        self._device, self._steps = device, list(steps)
        self.plan = plan_of(self._steps, streams)
        self._streams: list[Any] = []
        self._awaited = {wait for place in self.plan.places for wait in place.waits}
        self._arrays = _distinct(self._steps)
        self._graph: Any = None
        self._ran = False

    def run(self, mode: str = "auto") -> None:
        """Run it to its end.

        In mode "streams" it is put into streams task by task. In mode "graph" that is done once, and
        what was put there is one graph, which is replayed; no function of the host may be in between.
        "auto" takes streams the first time, when kernels are compiled, and then the graph where there
        may be one. Raises InvalidInputError where an array is no longer where it was recorded,
        UnsupportedError for a mode that cannot be, DeviceError where the device fails.
        """
        graph = self._graph_mode(mode)
        self._check()
        with launching():
            self._run(graph)
        self._ran = True

    def _run(self, graph: bool) -> None:
        self._open_streams()
        begin = self._device.begin()
        if not graph:
            for stream in self._streams[1:]:
                self._device.wait(stream, begin)
            for event in self._issue():
                self._finish(event)
        elif len(self._streams) > 1:
            first = self._streams[1]
            if self._graph is None:
                self._graph = self._device.graph(self._forked, first)
            self._device.wait(first, begin)
            self._device.replay(self._graph, first)
            self._finish(self._device.record(first))

    def _graph_mode(self, mode: str) -> bool:
        if mode not in ("auto", "streams", "graph"):
            raise UnsupportedError(f"mode '{mode}': a plan runs in 'auto', 'streams' or 'graph'")
        host = next((s for s in self._steps if s.task.on_host), None)
        if mode == "graph" and host is not None:
            raise UnsupportedError(
                f"mode 'graph': '{host.task.name}' ({host.task.origin}) is the host's to do"
            )
        return mode == "graph" or (mode == "auto" and self._ran and host is None)

    def _open_streams(self) -> None:
        while len(self._streams) < self.plan.queues:
            self._streams.append(self._device.new_stream() if self._streams else None)

    def _forked(self) -> None:
        """Everything, in streams that leave the first one and come back to it."""
        first = self._streams[1]
        fork = self._device.record(first)
        for stream in self._streams[2:]:
            self._device.wait(stream, fork)
        for event in self._issue():
            self._device.wait(first, event)

    def _issue(self) -> list[Any]:
        """Put all tasks where they belong; an event behind each stream."""
        events: dict[int, Any] = {}
        for number, (step, place) in enumerate(zip(self._steps, self.plan.places, strict=True)):
            with self._named(step):
                self._issue_one(number, step, place, events)
        return [self._device.record(stream) for stream in self._streams[1:]]

    def _issue_one(self, number: int, step: Step, place: Place, events: dict[int, Any]) -> None:
        # What the host does it has done before it goes on.
        before = [events[wait] for wait in place.waits if wait in events]
        if place.queue == HOST:
            for event in before:
                self._device.synchronize(event)
            step.work.start(step.arguments, None)
            return
        stream = self._streams[place.queue]
        for event in before:
            self._device.wait(stream, event)
        put(self._device, step.work, step.arguments, stream)
        if number in self._awaited:
            events[number] = self._device.record(stream)

    @contextmanager
    def _named(self, step: Step) -> Generator[None]:
        try:
            yield
        except DeviceError as error:
            raise DeviceError(
                f"'{step.task.name}' ({step.task.origin}): {error}{self._begun()}"
            ) from error

    def _finish(self, event: Any) -> None:
        try:
            self._device.synchronize(event)
        except DeviceError as error:
            names = ", ".join(sorted({f"'{s.task.name}'" for s in self._steps}))
            raise DeviceError(f"a run of {names}: {error}{self._begun()}") from error

    def _begun(self) -> str:
        """What may have happened to arrays before the device failed."""
        written = {
            f"{use.name} of '{step.task.name}' ({step.task.origin})"
            for step in self._steps
            for use in step.used
            if use.writes
        }
        return (
            f"; these arrays may be written in part: {', '.join(sorted(written))}"
            if written
            else ""
        )

    def _check(self) -> None:
        for array, recorded, step, name in self._arrays:
            found = locate(array)
            if found != recorded:
                raise InvalidInputError(
                    f"'{step.task.name}' ({step.task.origin}), {name}: the array was freed or resized "
                    "since it was recorded"
                )

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

    def picture(self, title: str = "DAG") -> str:
        """The plan as an SVG picture."""
        return schedule_svg([self.timeline()], title)

    def trace(self) -> str:
        """The plan as a trace for Perfetto or chrome://tracing, JSON text."""
        return chrome_trace([self.timeline()], {})

    def report(self) -> list[dict[str, Any]]:
        """For each task what it is, where it came from, its arrays, its stream, and what it waits for
        and why."""
        return [
            {
                "task": number,
                "name": task.name,
                "kind": task.kind,
                "line": task.origin,
                "arrays": {use.name or str(n): use.access for n, use in enumerate(task.uses)},
                "stream": place.queue if place.queue != HOST else "host",
                "waits": [
                    {"task": wait, "why": reason(self.plan, wait, number)} for wait in place.waits
                ],
            }
            for number, (task, place) in enumerate(
                zip(self.plan.tasks, self.plan.places, strict=True)
            )
        ]


def reason(plan: HostPlan, first: int, second: int) -> str:
    """Why a task comes after another: "reads device0, which 'square' writes"."""
    for b in plan.tasks[second].uses:
        for a in plan.tasks[first].uses:
            if conflict(a, b):
                name = plan.buffers[a.region.buffer].name
                return f"{b.access} {name}, which '{plan.tasks[first].name}' {a.access}"
    return "by order alone"


def _distinct(steps: Sequence[Step]) -> list[tuple[Any, Any, Step, str]]:
    """Each array once, with where it was and the first step that uses it."""
    found: dict[int, tuple[Any, Any, Step, str]] = {}
    for step in steps:
        for use in step.used:
            found.setdefault(id(use.array), (use.array, use.located, step, use.name))
    return list(found.values())
