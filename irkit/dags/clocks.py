"""When the tasks of one run started and ended."""

from __future__ import annotations

import time
from typing import Any

from irkit.dags.device import DagDevice


class Clocks:
    """Marks around tasks: events where a stream does them, the host's clock where the host does. Both count
    from the moment when the device has nothing left to do."""

    def __init__(self, device: DagDevice) -> None:
        self._device = device
        self.begin = device.begin()
        device.synchronize(self.begin)
        self._start = time.perf_counter_ns()
        self._marks: dict[int, list[Any]] = {}

    def note(self, number: int, stream: Any) -> None:
        """A task is about to be done, or has been, in a stream, or by the host."""
        mark = time.perf_counter_ns() if stream is None else self._device.record(stream)
        self._marks.setdefault(number, []).append(mark)

    def spans(self) -> dict[int, tuple[float, float]]:
        """Start and end of each task in ns, once all have ended."""
        return {number: (self._at(a), self._at(b)) for number, (a, b) in self._marks.items()}

    def _at(self, mark: Any) -> float:
        if isinstance(mark, int):
            return float(mark - self._start)
        return self._device.elapsed(self.begin, mark)
