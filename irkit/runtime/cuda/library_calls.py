"""Library calls of a program in mode `per-op`: where the library is there and takes the operands, it is
called in place of an rOperator's own kernel; else that runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from irkit.errors import DeviceError
from irkit.runtime.cuda.cublaslt import ALIGNMENT, cublaslt
from irkit.runtime.cuda.driver import call as driver_call
from irkit.runtime.cuda.driver import device
from irkit.runtime.cuda.memory import DeviceBuffer, Pool
from irkit.runtime.cuda.queued import queued_ns
from irkit.schedule.library_call import LibraryCall
from irkit.schedule.tables import Appended


class Planned(Protocol):
    """A call that can be queued."""

    @property
    def workspace_bytes(self) -> int:
        """Memory that a launch needs to itself."""
        ...

    def launch(self, addresses: Sequence[int], workspace: int, stream: int) -> None:
        """Queue the call over operands at these addresses. Raises DeviceError."""
        ...


class Library(Protocol):
    """Where calls are planned."""

    def plan(self, call: LibraryCall) -> Planned:
        """Raises DeviceError for what it cannot compute."""
        ...


OPEN: Mapping[str, Callable[[], Library]] = {"cublaslt": cublaslt}
"""How to open a library; raises DeviceError where it is not installed, or does not load."""


class LibraryCalls:
    """The calls of one program, by the number of the rOperator.

    `remarks`: why calls are computed by irkit's own kernels all the same.
    """

    def __init__(
        self,
        calls: Mapping[int, LibraryCall],
        pool: Pool,
        libraries: Mapping[str, Callable[[], Library]] = OPEN,
    ) -> None:
        self._pool, self._libraries = pool, libraries
        self._calls = calls
        self._plans: dict[int, Planned] | None = None
        self._bases: tuple[int, ...] | None = None
        self._workspaces: dict[int, DeviceBuffer] = {}
        self.remarks: list[str] = []

    @property
    def plans(self) -> Mapping[int, Planned]:
        """What can be called, planned and run once: outside of a capture, where the library may load code."""
        if self._plans is None:
            self._plans = {}
            for number, call in self._calls.items():
                self._plan(self._plans, number, call)
        return self._plans

    def _plan(self, plans: dict[int, Planned], number: int, call: LibraryCall) -> None:
        try:
            opened = self._libraries.get(call.library)
            if opened is None:
                raise DeviceError(f"library '{call.library}' is not known")
            plan = opened().plan(call)
            rehearse(plan, call, self._pool)
        except DeviceError as reason:
            if str(reason) not in self.remarks:
                self.remarks.append(str(reason))
            return
        plans[number] = plan

    def bases(self, appends: Sequence[Appended]) -> tuple[int, ...]:
        """The bases that addresses of calls hang on: where one moves, a recording is not of it any more."""
        if self._bases is None:
            self._bases = self._touched(appends)
        return self._bases

    def _touched(self, appends: Sequence[Appended]) -> tuple[int, ...]:
        touched = {
            append.operands[n].base
            for append in appends
            if append.kernel in self.plans
            for n in self._calls[append.kernel].operands()
        }
        return tuple(sorted(touched))

    def launch(
        self, number: int, append: Appended, bases: Sequence[int], rows: int, stream: Any
    ) -> bool:
        """Queue append `number` by its library, and say whether that was done. `rows`: padded."""
        plan = self.plans.get(append.kernel)
        if plan is None:
            return False
        addresses = [int(bases[o.base]) + o.offset + o.per_row * rows for o in append.operands]
        if any(addresses[n] % ALIGNMENT for n in self._calls[append.kernel].operands()):
            return False
        # Launches may run side by side: each has a workspace of its own.
        workspace = self._workspaces.get(number)
        if workspace is None:
            workspace = self._workspaces[number] = self._pool.take(plan.workspace_bytes)
        plan.launch(addresses, workspace.address, int(stream))
        return True


def rehearse(plan: Planned, call: LibraryCall, pool: Pool) -> None:
    """Run a call once on memory of nobody, to its end."""
    buffers = operands_for(call, pool)
    workspace = pool.take(plan.workspace_bytes)
    addresses = [buffer.address for buffer in buffers]
    plan.launch(addresses, workspace.address, int(pool.stream.handle))
    driver_call("cuStreamSynchronize", pool.stream.handle)


def call_ns(call: LibraryCall) -> float:
    """Nanoseconds of a call on the GPU at hand, less an empty kernel's. Raises DeviceError."""
    opened = OPEN[call.library]()
    on = device()
    on.activate()
    pool = Pool(on)
    plan, buffers = opened.plan(call), operands_for(call, pool)
    rehearse(plan, call, pool)
    for number in call.operands():
        # Bytes of small numbers, whatever is made of them: zeros take less power, and so less time.
        values = np.random.default_rng(number).integers(0x38, 0x3F, call.nbytes(number))
        buffers[number].upload(values.astype(np.uint8), pool.stream.handle)
    workspace, addresses = pool.take(plan.workspace_bytes), [b.address for b in buffers]
    driver_call("cuStreamSynchronize", pool.stream.handle)
    return queued_ns(
        lambda stream: plan.launch(addresses, workspace.address, int(stream)),
        on,
        pool.stream.handle,
    )


def operands_for(call: LibraryCall, pool: Pool) -> list[DeviceBuffer]:
    """Memory for the operands of a call, by number, all zeros."""
    used = call.operands()
    found = [pool.take(call.nbytes(n) if n in used else 1) for n in range(max(used) + 1)]
    for buffer in found:
        buffer.clear(pool.stream.handle)
    return found
