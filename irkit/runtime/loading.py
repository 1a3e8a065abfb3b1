"""From the text of an emitted CPU module to machine code in this process.

Each rKernel is compiled by itself (`units.py`, `machine_code.py`) and kept on disk (`code_store.py`); equal
ones are one, whatever program they are of. In memory machine code lasts as long as somebody holds a
`LoadedModule` with it: programs of the same text share one, and the last one dropped frees it.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.util
import linecache
import pickle
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from irkit.errors import ArtifactError
from irkit.runtime import code_store, least_used, machine_code
from irkit.runtime.artifact import Artifact, cache_folder
from irkit.runtime.forms import Form, form_of
from irkit.runtime.interrupts import interrupts_held
from irkit.runtime.machine_code import RKernelCode
from irkit.runtime.program_files import write_atomically
from irkit.runtime.side_by_side import Request, compile_units
from irkit.runtime.units import Parts, Unit, key_of, parts_of
from irkit.schedule.tables import Program


@dataclass(frozen=True, eq=False)
class _GroupedCall:
    """`call` of a module of many arrays: these are bound by groups of one type."""

    binders: tuple[tuple[Callable[..., None], tuple[tuple[Any, tuple[int, ...]], ...]], ...]
    walk: Callable[..., int]

    def __call__(
        self,
        records: Any,
        bases: Any,
        counters: Any,
        address: Any,
        rows: int,
        padded: int,
        *arrays: Any,
    ) -> None:
        for bind, groups in self.binders:
            for numbers, group in groups:
                bind(bases, numbers, *[arrays[number] for number in group])
        self.walk(records, bases, counters, address, rows, padded)


# What unpickling wrong bytes raises (the pickle module's documentation names no more).
_UNPICKLING = (
    pickle.UnpicklingError,
    AttributeError,
    EOFError,
    ImportError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, eq=False)
class LoadedModule:
    """The machine code of an emitted CPU module.

    `rkernels` are the addresses of its rKernels, by number; they hold while this object lives. `run` walks
    a range of records, `call` all of them in order: compiled functions that check none of their arguments.
    """

    program: Program
    rkernels: tuple[int, ...]
    run: Callable[..., int]
    call: Callable[..., None]
    code: tuple[RKernelCode, ...]


_loading = threading.Lock()
_loaded: WeakValueDictionary[str, LoadedModule] = WeakValueDictionary()
# Of the modules that are being loaded: key -> how many of their rKernels are there.
_ready: dict[str, int] = {}


def load_source(artifact: Artifact) -> LoadedModule:
    """Load an emitted module: its rKernels from memory, else from the cache, else compiled side by side."""
    key = artifact.key
    with _loading:
        known = _loaded.get(key)
        if known is not None:
            return known
        try:
            loaded = _loaded[key] = _load(key, artifact.source)
        finally:
            _ready.pop(key, None)
        return loaded


def ready(artifact: Artifact, symbols: Sequence[str]) -> int:
    """How many of a program's rKernels are compiled."""
    return len(symbols) if artifact.key in _loaded else _ready.get(artifact.key, 0)


def _load(key: str, source: str) -> LoadedModule:
    parts = parts_of(source)
    code = _rkernels(key, parts.units)
    walkers = _walkers(parts)
    names: dict[str, Any] = {"__name__": f"irkit_program_{key}"}
    exec(compile(f"{_TABLES}\n{_PROGRAM.split(parts.rest)[-1]}", "<program>", "exec"), names)
    run, call = _entry_point(walkers.run), _call_of(walkers)
    # Compiled functions refer to the names of their module, and these to dispatchers that refer to compiled
    # functions, in ways that the garbage collector does not see: cut, or none of it is ever freed.
    vars(walkers).clear()
    program: Program = names["PROGRAM"]
    program = program.planned(names.get("PLANS", (program,)))
    return LoadedModule(program, tuple(c.address for c in code), run, call, code)


_TABLES = (
    "from irkit.schedule.tables import "
    "Appended, Moving, Operand, Pinned, Port, Program, Ran, Repeated"
)
_PROGRAM = re.compile(r"^(?=PROGRAM = Program\()", re.MULTILINE)


# rKernels


def _rkernels(key: str, units: Sequence[Unit]) -> tuple[RKernelCode, ...]:
    """The machine code of units, in their order."""
    here = machine_code.context()
    keys = [unit.key(here) for unit in units]
    found: dict[str, RKernelCode] = {}
    missing: dict[str, Unit] = {}
    for name, unit in zip(keys, units, strict=True):
        if name in found or name in missing:
            continue
        code = machine_code.in_memory(name) or _from_disk(name)
        if code is None:
            missing[name] = unit
        else:
            found[name] = code

    def count() -> None:
        _ready[key] = sum(name in found for name in keys)

    def made(name: str, payload: bytes) -> None:
        code_store.keep(name, payload)
        found[name] = machine_code.loaded(name, payload)
        count()

    count()
    if missing:
        _compile(missing, here, made)
        code_store.prune()
    return tuple(found[name] for name in keys)


def _compile(missing: Mapping[str, Unit], here: bytes, made: Callable[[str, bytes], None]) -> None:
    """Make machine code of units, by their keys: of each form the IR, once, then the code of each unit."""
    forms = {name: form_of(unit.text) for name, unit in missing.items()}
    of_form: dict[str, list[str]] = {}
    for name, form in forms.items():
        of_form.setdefault(form.text, []).append(name)

    def of_units(lowered: bytes, names: Sequence[str]) -> list[Request]:
        return [_code_request(n, missing[n].symbol, lowered, forms[n]) for n in names]

    def done(request: Request, payload: bytes) -> Sequence[Request]:
        if request.step == "cpu code":
            made(request.key, payload)
            return ()
        code_store.keep(request.key, payload)
        return of_units(payload, of_form[request.arguments[0]])

    requests: list[Request] = []
    for text, names in of_form.items():
        key = key_of(text, here + b" form")
        lowered = code_store.kept(key)
        if lowered is None:
            symbol, length = missing[names[0]].symbol, _FORM_LENGTH * len(text)
            requests.append(Request(symbol, "cpu", (text,), length, key))
        else:
            requests += of_units(lowered, names)
    compile_units(requests, done, expected=len(missing))


def _code_request(key: str, symbol: str, lowered: bytes, form: Form) -> Request:
    return Request(symbol, "cpu code", (lowered, form.values), len(form.text), key)


# Lowering a form takes about so many times as long as making machine code of it.
_FORM_LENGTH = 4


def _from_disk(key: str) -> RKernelCode | None:
    payload = code_store.kept(key)
    return None if payload is None else machine_code.loaded(key, payload)


# Walkers


def _walkers(parts: Parts) -> ModuleType:
    """`run` and `call` of a module, which Numba keeps on disk beside their file: programs with arguments of
    the same types share them."""
    return _kept(f"{parts.header}\n\n{_PROGRAM.split(parts.rest)[0].partition(_AFTER_KERNELS)[2]}")


def entry_points(text: str, names: Sequence[str]) -> list[Callable[..., Any]]:
    """The compiled functions of a module's text, each of one signature, which Numba keeps on disk.

    Raises ArtifactError where it cannot.
    """
    module = vars(_kept(text))
    return [_entry_point(module[name]) for name in names]


def _kept(text: str) -> ModuleType:
    """A module that Numba keeps machine code of."""
    name = hashlib.sha256(text.encode()).hexdigest()[:24]
    path = _module_file(name, text)
    try:
        return _imported(f"irkit_walkers_{name}", path)
    except _UNPICKLING:
        # Damaged machine code is made anew; what is wrong with the module itself shows again.
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
        return _imported(f"irkit_walkers_{name}", path)
    except FileNotFoundError:
        # Another process has deleted it since, as it makes room.
        path = _write_module(Path(_scratch_folder().name), name, text)
        return _imported(f"irkit_walkers_{name}", path)


_AFTER_KERNELS = ")\n"
LIMIT_BYTES = 256 << 20
"""How large the walkers on disk may be together: those used longest ago go."""


def _module_file(name: str, text: str) -> Path:
    """The walkers as a file: in the cache, or where the cache cannot be written, in a folder that lasts as
    long as the process."""
    folder = cache_folder()
    if folder is not None:
        try:
            return _write_module(folder, name, text)
        except ArtifactError:
            pass
    return _write_module(Path(_scratch_folder().name), name, text)


@functools.cache
def _scratch_folder() -> tempfile.TemporaryDirectory[str]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="irkit-", ignore_cleanup_errors=True)
    except OSError as error:
        raise ArtifactError(f"no folder for the program's machine code: {error}") from None
    # Before Python finds it left over, and says so.
    atexit.register(folder.cleanup)
    return folder


def _write_module(base: Path, name: str, text: str) -> Path:
    # Numba looks at the module's own file alone to tell whether what it kept is stale.
    folder = base / "modules"
    path = folder / f"{name}-{machine_code.intrinsics_digest()}" / "module.py"
    source = text.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Numba's cache goes by the file's time stamp: leave an equal file alone.
        equal = path.exists() and path.read_bytes() == source
    except OSError as error:
        raise ArtifactError(f"cannot write '{path}': {error.strerror}") from None
    if equal:
        least_used.used(path.parent)
    else:
        least_used.prune(folder, LIMIT_BYTES)
        write_atomically(path, source)
    return path


def _entry_point(dispatcher: Any) -> Callable[..., Any]:
    """The one compiled function of a dispatcher, which is called without looking at argument types."""
    return dispatcher.get_overload(dispatcher.signatures[0])


def _call_of(walkers: ModuleType) -> Callable[..., Any]:
    """The entry point that binds all arrays of a call and walks."""
    walk = _entry_point(walkers.call)
    # Modules of few arrays, and those that were saved before there were any, have none.
    binders = getattr(walkers, "BINDERS", ())
    if not binders:
        return walk
    return _GroupedCall(
        tuple((_entry_point(bind), _groups(bind, numbers)) for bind, numbers in binders), walk
    )


def _groups(bind: Any, numbers: tuple[int, ...]) -> tuple[tuple[Any, tuple[int, ...]], ...]:
    """The arrays of a binder, as many at a time as it takes, the last again in place of what is missing."""
    size = len(bind.signatures[0]) - _BINDER_HEAD
    found: list[tuple[Any, tuple[int, ...]]] = []
    for first in range(0, len(numbers), size):
        group = numbers[first : first + size]
        group += group[-1:] * (size - len(group))
        found.append((np.array(group, dtype=np.int64), group))
    return tuple(found)


_BINDER_HEAD = 2
"""Arguments of a binder that are not arrays of the call: the bases, and which of them."""


def _imported(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Numba keeps machine code beside the file as it compiles, and finds the functions of what it kept
    # on disk by the name of their module.
    sys.modules[name] = module
    try:
        with interrupts_held():
            spec.loader.exec_module(module)
    except FileNotFoundError:
        raise
    except OSError as error:
        if not path.exists():
            # Of a source that went meanwhile, Numba says so with an error of no number.
            raise FileNotFoundError(path) from error
        reason = error.strerror or error
        raise ArtifactError(f"cannot keep machine code beside '{path}': {reason}") from None
    finally:
        del sys.modules[name]
        linecache.cache.pop(str(path), None)
    return module
