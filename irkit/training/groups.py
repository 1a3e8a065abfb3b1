"""Groups of ranks that train together, for `irkit.training_step(..., data_parallel=group)`.

Every rank is a process that runs the same program: the same calls in the same order.
"""

from __future__ import annotations

from pathlib import Path

from irkit.runtime.dist.engine import Engine
from irkit.runtime.dist.simulated import SimulatedEngine, simulated_group
from irkit.training.data_parallel import DataParallel


def mpi(size: int | None = None) -> Engine:
    """The processes that `mpiexec` started, on CPUs. `size`: how many there must be.

    Raises DeviceError where `mpi4py` or an MPI library is missing, or there are more or fewer.
    """
    from irkit.runtime.dist.mpi import MpiEngine

    return MpiEngine(size)


def nccl(rank: int, size: int, meeting: Path | str, seconds: float = 120.0) -> Engine:
    """Processes with a GPU each, the first that each sees (CUDA_VISIBLE_DEVICES says which that is).

    `meeting`: a path where there is nothing yet, which all ranks see. Raises DeviceError where CuPy or NCCL
    is missing, for a rank that is none, and where the others do not come within so many seconds.
    """
    from irkit.runtime.dist.nccl import NcclEngine

    return NcclEngine(rank, size, meeting, seconds)


def simulated(size: int, seconds: float = 60.0) -> list[SimulatedEngine]:
    """Ranks that are threads of this process: one for each, to try what ranks do."""
    return simulated_group(size, seconds)


__all__ = ["DataParallel", "mpi", "nccl", "simulated"]
