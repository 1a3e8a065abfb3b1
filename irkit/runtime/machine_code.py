"""CPU machine code of rKernels: compiled one by one, kept on disk, shared in memory.

The code of an rKernel has an LLVM engine to itself, which goes with the last program that holds it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportPrivateUsage=false
from __future__ import annotations

import functools
import hashlib
import platform
import threading
import zlib
from importlib.metadata import version
from pathlib import Path
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from irkit.runtime import intrinsics
from irkit.runtime.form_functions import functions_of_form
from irkit.runtime.interrupts import interrupts_held
from irkit.runtime.intrinsics.engine import lowered, new_engine, object_code
from irkit.runtime.intrinsics.slots import SLOT_IMPORT, filled, numbered
from irkit.runtime.numba_settings import numba_settings

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
    with _loading, interrupts_held():
        known = _loaded.get(key)
        if known is None:
            known = _loaded[key] = RKernelCode(payload)
        return known


def in_memory(key: str) -> RKernelCode | None:
    """The rKernel of a key if some program holds it."""
    return _loaded.get(key)


def lower(text: str) -> bytes:
    """The IR of a form's text, which `code_of` takes. A function that several forms have is lowered once,
    until `forget_functions`."""
    parts = functions_of_form(text)
    if parts is None:
        entry, found = lowered(f"{SLOT_IMPORT}\n{text}", {})
    else:
        texts = {function.name: function.text for function in parts.functions}
        entry, found = lowered(f"{SLOT_IMPORT}\n{parts.header}", texts)
        found = numbered(found, parts.slots())
    return entry.encode() + b"\0" + zlib.compress(found.encode(), 1)


def code_of(lowered_form: bytes, values: tuple[int | float, ...]) -> bytes:
    """The name of its entry and the object code of a unit with a zero byte between: of the IR of its form,
    and the unit's numbers."""
    entry, _, packed = lowered_form.partition(b"\0")
    return entry + b"\0" + object_code(filled(zlib.decompress(packed).decode(), values))


_UNIT = """\
from numba import float32

from irkit.runtime.intrinsics.cpu import float32p, int64p
from irkit.runtime.intrinsics.engine import cfunc, njit


@njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
def larger(p0, i):
    return max(p0[i], float32(0.0)) * 2


@cfunc("void(int64, int64, int64, int64, int64)", error_model="numpy")
def warm(task, tasks, rows, scratch, operands):
    p0 = float32p(int64p(operands)[0])
    for i in range(task, tasks):
        p0[i] = larger(p0, i)
"""


def warm() -> None:
    """Compile a unit that nothing uses: Numba and LLVM set up much once in a process."""
    code_of(lower(_UNIT), ())


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
    what Numba is told from outside."""
    versions = [version(name) for name in ("numba", "llvmlite", "numpy")]
    return repr(("cpu", intrinsics_digest(), *_host(), versions, numba_settings())).encode()
