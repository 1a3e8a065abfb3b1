"""The device that Numba is told: each thread's own, and the one at hand again behind it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from threading import Barrier

import pytest

from irkit.runtime.cuda.numba_device import capability_of, compiling_for

ARCHES = ("sm_80", "sm_90a") * 8


@pytest.mark.skipif(find_spec("numba_cuda") is None, reason="needs numba-cuda")
def test_threads_are_each_told_their_own_device() -> None:
    dispatcher = import_module("numba.cuda.dispatcher")
    asked = dispatcher.get_current_device
    together = Barrier(len(ARCHES))

    def told(arch: str) -> set[object]:
        together.wait()
        with compiling_for(capability_of(arch)):
            return {dispatcher.get_current_device().compute_capability for _ in range(20_000)}

    with ThreadPoolExecutor(len(ARCHES)) as threads:
        found = list(threads.map(told, ARCHES))
    assert found == [{capability_of(arch)} for arch in ARCHES]
    assert dispatcher.get_current_device is asked
