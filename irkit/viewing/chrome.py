"""A timeline in the Chrome trace format, which Perfetto and chrome://tracing open.

The format: "Trace Event Format", Google, 2016. Complete events (`ph` "X") have their start and length
in microseconds; `M` events name processes and threads; `s` and `f` are the ends of an arrow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from irkit.viewing.timeline import Timeline

Event = dict[str, Any]
# Arrows are drawn up to this many waits: more would hide what they should show.
ARROWS = 2000


def chrome_trace(timelines: list[Timeline], stages: Mapping[str, float]) -> str:
    """JSON text. Each timeline is a process with a thread per vEU; `stages` are seconds of compilation."""
    events = _stages(stages)
    for number, one in enumerate(timelines, 1):
        events += _process(one, number)
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, separators=(",", ":"))


def _named(kind: str, name: str, pid: int, tid: int = 0) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _stages(stages: Mapping[str, float]) -> list[Event]:
    if not stages:
        return []
    events, at = [_named("process_name", "compilation", 0), _named("thread_name", "stages", 0)], 0.0
    for name, seconds in stages.items():
        length = seconds * 1e6
        events.append(
            {"ph": "X", "name": name, "cat": "compile", "pid": 0, "tid": 0, "ts": at, "dur": length}
        )
        at += length
    return events


def _process(one: Timeline, pid: int) -> list[Event]:
    rows = "streams" if one.queues else "vEUs"
    events = [_named("process_name", f"{one.title}: {one.bars} on {rows}", pid)]
    events += [_named("thread_name", one.row_name(v), pid, v) for v in range(one.veus)]
    kernels, appends = one.numbers(one.kernel), one.numbers(one.append)
    places = zip(appends, one.numbers(one.task), one.numbers(one.veu), strict=True)
    for row, (append, task, veu) in enumerate(places):
        arrived, start, end = (float(t[row]) / 1e3 for t in (one.arrived, one.start, one.end))
        place = {"pid": pid, "tid": veu}
        if start > arrived and one.steps[append].waits:
            waits = list(one.steps[append].waits)
            events.append(
                {"ph": "X", "name": "wait", "cat": "wait", **place, "ts": arrived,
                 "dur": start - arrived, "args": {"for appends": waits}}
            )  # fmt: skip
        kernel = one.kernels[kernels[row]]
        facts = {"rTask": task, "append": append, "wave": one.steps[append].wave,
                 "rKernel": kernel.rkernel, "from": kernel.sources}  # fmt: skip
        events.append(
            {"ph": "X", "name": kernel.symbol, "cat": "rtask", **place, "ts": start,
             "dur": end - start, "args": facts}
        )  # fmt: skip
    return events + _arrows(one, pid)


def _arrows(one: Timeline, pid: int) -> list[Event]:
    """From the last rTask of an append to the first that waited for it."""
    last: dict[int, int] = {}
    first: dict[int, int] = {}
    for row, append in enumerate(one.numbers(one.append)):
        if append not in last or one.end[row] > one.end[last[append]]:
            last[append] = row
        if append not in first or one.start[row] < one.start[first[append]]:
            first[append] = row
    pairs = [(s, t) for t, step in enumerate(one.steps) for s in step.waits]
    events: list[Event] = []
    for number, (source, target) in enumerate(pairs[:ARROWS]):
        if source not in last or target not in first:
            continue
        a, b = last[source], first[target]
        common = {"cat": "wait", "name": "wait", "id": pid * 1_000_000 + number, "pid": pid}
        events.append({"ph": "s", **common, "tid": int(one.veu[a]), "ts": float(one.end[a]) / 1e3})
        events.append(
            {
                "ph": "f",
                "bp": "e",
                **common,
                "tid": int(one.veu[b]),
                "ts": float(one.start[b]) / 1e3,
            }
        )
    return events
