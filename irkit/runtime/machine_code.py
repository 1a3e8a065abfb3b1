"""CPU machine code of rKernels: compiled one by one, kept on disk, shared in memory.

The code of an rKernel has an LLVM engine to itself, which goes with the last program that holds it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportPrivateUsage=false
from __future__ import annotations

import functools
import hashlib
import os
import platform
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from irkit.runtime import intrinsics
from irkit.runtime.intrinsics.engine import new_engine

_loading = threading.Lock()
_loaded: WeakValueDictionary[str, RKernelCode] = WeakValueDictionary()


class RKernelCode:
    """An rKernel in memory; `address` holds while this object lives."""

    def __init__(self, payload: bytes) -> None:
        entry, _, code = payload.partition(b"\0")
        self._engine = new_engine()
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.address: int = self._engine.get_function_address(entry.decode())


def loaded(key: str, payload: bytes) -> RKernelCode:
    """The rKernel of a key in memory, made of what it compiled to unless it is there."""
    with _loading:
        known = _loaded.get(key)
        if known is None:
            known = _loaded[key] = RKernelCode(payload)
        return known


def in_memory(key: str) -> RKernelCode | None:
    """The rKernel of a key if some program holds it."""
    return _loaded.get(key)


def compile_unit(text: str) -> bytes:
    """The name of its entry and the object code of a unit's text, with a zero byte between."""
    names: dict[str, Any] = {
        "__name__": "irkit_rkernel_" + hashlib.sha256(text.encode()).hexdigest()
    }
    exec(compile(text, "<rKernel>", "exec"), names)
    last = [name for name in names if name.startswith("rkernel_")][-1]
    callback = names[last]
    try:
        return callback.native_name.encode() + b"\0" + callback._library._get_compiled_object()
    finally:
        # Compiled functions refer to these names, which refer to them, where no garbage collector looks.
        names.clear()


@functools.cache
def intrinsics_digest() -> str:
    """Of the sources whose functions rKernels call, and which are compiled into them."""
    h = hashlib.sha256()
    for path in sorted(Path(intrinsics.__path__[0]).glob("*.py")):
        h.update(path.name.encode() + b"\0" + path.read_bytes())
    return h.hexdigest()[:16]


@functools.cache
def _host() -> tuple[str, ...]:
    features = llvm.get_host_cpu_features().flatten()
    return platform.python_version(), llvm.get_host_cpu_name(), features


def context() -> bytes:
    """What the machine code of a unit hangs on beside its text: intrinsics, versions, this processor, and
    what Numba is told by the environment."""
    told = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith("NUMBA_"))
    versions = [version(name) for name in ("numba", "llvmlite", "numpy")]
    return repr(("cpu", intrinsics_digest(), *_host(), versions, told)).encode()
