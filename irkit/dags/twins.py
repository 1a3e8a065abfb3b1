"""A function of somebody's on arrays of the device, as a task of a stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from irkit.dags.located import contiguous, locate
from irkit.dags.works import ArrayUse, Launch
from irkit.errors import UnsupportedError
from irkit.runtime.cuda.driver import call
from irkit.schedule.host.model import Kind

Twin = Callable[[Sequence[Any], Any], list[tuple[Any, Any]]]
"""Called with arrays of the device and a stream; gives arrays that it made, each with the one of the
arguments that it belongs in."""


@dataclass(frozen=True)
class TwinLaunch(Launch):
    """A call of a twin; `arguments` are its arrays, `told` what errors and pictures call it."""

    twin: Twin
    told: str

    @property
    def name(self) -> str:
        return self.told

    @property
    def kind(self) -> Kind:
        return "kernel"

    def uses(self, check: bool) -> list[ArrayUse]:
        # In a plan of a program, which says what calls read and write.
        raise UnsupportedError(f"'{self.told}' is called by plans of compiled functions alone")

    def start(self, stream: Any) -> None:
        with _current(stream):
            for made, target in self.twin(self.arguments, stream):
                _copy(made, target, stream, self.told)


@contextmanager
def _current(stream: Any) -> Generator[None]:
    """While it lasts, what CuPy and PyTorch start goes to a stream, where the process has them."""
    with ExitStack() as stack:
        cupy, torch = (cast(Any, sys.modules.get(name)) for name in ("cupy", "torch"))
        if stream is not None and cupy is not None:
            stack.enter_context(cupy.cuda.ExternalStream(stream))
        if stream is not None and torch is not None and torch.cuda.is_available():
            stack.enter_context(torch.cuda.stream(torch.cuda.ExternalStream(stream)))
        yield


def _copy(made: Any, target: Any, stream: Any, told: str) -> None:
    """What was made goes to where the plan has it, in the stream; here and now without one."""
    if stream is None:
        np.copyto(target, made)
        return
    source, to = locate(made), locate(target)
    if source is None or source.space != "device" or not contiguous(source) or to is None:
        raise UnsupportedError(
            f"the device twin of '{told}' returned {type(made).__name__}: a C-contiguous array on the device "
            "is expected"
        )
    if source.itemsize and 0 not in source.shape:
        low, high = source.region().hull
        call("cuMemcpyAsync", to.address, source.address, high - low, stream)
