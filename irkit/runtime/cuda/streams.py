"""The stream that calls run in: the executor's own, or another library's, each run behind the last."""

from __future__ import annotations

from typing import Any

from irkit.runtime.cuda.driver import api, order


class RunStream:
    """Whose stream the last run was queued on; `current` is the executor's `own` at first."""

    def __init__(self, own: Any) -> None:
        self._own, self.current = own, own
        self._foreign: tuple[int, Any] | None = None

    def at(self, handle: int | None) -> Any:
        """The executor's own without a handle, else another library's: the same object while none other
        is asked for."""
        if handle is None:
            return self._own
        if self._foreign is None or self._foreign[0] != handle:
            self._foreign = handle, api().CUstream(handle)
        return self._foreign[1]

    def is_at(self, handle: int) -> bool:
        """Whether the last run was queued on another library's stream of this handle."""
        foreign = self._foreign
        return foreign is not None and foreign[0] == handle and foreign[1] is self.current

    def follow(self, stream: Any) -> None:
        """Order what comes next on `stream` after the last run, which may have been on another."""
        if stream is self.current or int(stream) == int(self.current):
            return
        order(self.current, stream)
        self.current = stream
