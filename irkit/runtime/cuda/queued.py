"""How long what is queued on a stream takes, many times in one graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irkit.runtime.cuda.driver import Device, Event, Graph, Module

GRAPH_LAUNCHES = 50
"""How often a graph queues the same."""
EMPTY = b""".version 7.8
.target sm_80
.address_size 64
.visible .entry empty() { ret; }
\0"""
"""PTX of a kernel that does nothing."""


def queued_ns(queue: Callable[[Any], None], on: Device, stream: Any, runs: int = 15) -> float:
    """Nanoseconds of what `queue` puts on a stream, many times in one graph, less an empty kernel's; the
    median of `runs`. Raises DeviceError."""
    empty = Module(EMPTY, on)
    nothing = empty.kernel("empty", 0, 32)

    def many(into: Any) -> None:
        for _ in range(GRAPH_LAUNCHES):
            queue(into)

    def idle(into: Any) -> None:
        for _ in range(GRAPH_LAUNCHES):
            nothing.launch(1, (), into)

    took, none = (replayed(Graph(record, stream), stream, runs) for record in (many, idle))
    return max(took - none, 1.0)


def replayed(graph: Any, stream: Any, runs: int) -> float:
    """Nanoseconds of one launch of a graph of launches."""
    times: list[float] = []
    for _ in range(runs + 1):
        start, end = Event(), Event()
        start.record(stream)
        graph.launch(stream)
        end.record(stream)
        times.append(end.since(start) * 1e6 / GRAPH_LAUNCHES)
    return float(np.median(times[1:]))
