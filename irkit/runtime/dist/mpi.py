"""Groups of processes on a CPU, by MPI (`mpi4py`)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from irkit.errors import DeviceError
from irkit.runtime.dist.engine import HostEngine, no_type
from irkit.weights import Array

NUMBERS = "iufb"


class MpiEngine(HostEngine):
    """The processes that `mpiexec` started, each a rank."""

    name = "MPI"

    def __init__(self, size: int | None = None) -> None:
        """`size`: how many ranks there must be. Raises DeviceError where MPI is not installed, does not let
        threads call it, or has started another number of processes."""
        try:
            mpi: Any = import_module("mpi4py.MPI")
        except (ImportError, RuntimeError) as error:
            raise DeviceError(f"a group by MPI needs mpi4py and an MPI library: {error}") from None
        if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
            raise DeviceError("a group by MPI needs a library that threads may call")
        # Nobody else's messages come in between.
        self._mpi, self._comm = mpi, mpi.COMM_WORLD.Dup()
        self.rank, self.size = int(self._comm.rank), int(self._comm.size)
        if size is not None and size != self.size:
            raise DeviceError(
                f"a group of {size} ranks: MPI has {self.size} (mpiexec -n {size} starts as many)"
            )
        self._kinds = {"sum": mpi.SUM, "max": mpi.MAX, "min": mpi.MIN}

    def check(self, dtype: np.dtype[Any]) -> None:
        """As `Engine` has it."""
        if dtype.kind not in NUMBERS or dtype == np.float16:
            raise no_type(self.name, dtype)

    def all_reduce(self, array: Any, kind: str) -> Any:
        """As `Engine` has it."""
        self._do(self._comm.Allreduce, self._mpi.IN_PLACE, array, self._kinds[kind])
        return array

    def all_gather(self, array: Any) -> Any:
        """As `Engine` has it."""
        found = np.empty((self.size, *array.shape), array.dtype)
        self._do(self._comm.Allgather, array, found)
        return found

    def broadcast(self, array: Any, root: int) -> Any:
        """As `Engine` has it."""
        self._do(self._comm.Bcast, array, root)
        return array

    def exchange(self, words: Array) -> Array:
        """As `Engine` has it."""
        return self.all_gather(np.ascontiguousarray(words, np.int64))

    def _do(self, call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except self._mpi.Exception as error:
            raise DeviceError(f"rank {self.rank} of {self.size}, MPI: {error}") from None
