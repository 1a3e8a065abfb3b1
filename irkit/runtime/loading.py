"""From the text of an emitted CPU module to machine code in this process.

Numba keeps machine code on disk beside the module's file, in irkit's cache. In memory it lasts as long as
somebody holds the `LoadedModule`: programs of the same text share one, and the last one dropped frees it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import linecache
import pickle
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

from irkit.errors import ArtifactError
from irkit.runtime import intrinsics
from irkit.runtime.artifact import Artifact, cache_folder, write_atomically
from irkit.schedule.tables import Program

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
    callbacks: tuple[Any, ...]


_loading = threading.Lock()
_loaded: WeakValueDictionary[str, LoadedModule] = WeakValueDictionary()


def load_source(artifact: Artifact) -> LoadedModule:
    """Load an emitted module from the cache; what is not compiled yet is compiled there."""
    key = artifact.key
    with _loading:
        known = _loaded.get(key)
        if known is not None:
            return known
        path = _module_file(artifact)
        try:
            loaded = _load_file(_name(key), path)
        except _UNPICKLING:
            # Damaged machine code is made anew; what is wrong with the module itself shows again.
            shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
            loaded = _load_file(_name(key), path)
        _loaded[key] = loaded
        return loaded


def ready(artifact: Artifact, symbols: Sequence[str]) -> int:
    """How many of a program's functions are compiled: its module, while it is imported, defines one
    after the other."""
    if artifact.key in _loaded:
        return len(symbols)
    module = sys.modules.get(_name(artifact.key))
    return sum(hasattr(module, symbol) for symbol in symbols)


def _name(key: str) -> str:
    return f"irkit_program_{key}"


def _module_file(artifact: Artifact) -> Path:
    """The emitted module as a file: in the cache, or where the cache cannot be written, in a folder
    that lasts as long as the process."""
    folder = cache_folder()
    if folder is not None:
        try:
            return _write_module(folder, artifact)
        except ArtifactError:
            pass
    return _write_module(Path(_scratch_folder().name), artifact)


@functools.cache
def _scratch_folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="irkit-", ignore_cleanup_errors=True)
    except OSError as error:
        raise ArtifactError(f"no folder for the program's machine code: {error}") from None


@functools.cache
def _intrinsics_digest() -> str:
    """Of the sources whose functions an emitted module calls, and which are compiled into it."""
    h = hashlib.sha256()
    for path in sorted(Path(intrinsics.__path__[0]).glob("*.py")):
        h.update(path.name.encode() + b"\0" + path.read_bytes())
    return h.hexdigest()[:16]


def _write_module(base: Path, artifact: Artifact) -> Path:
    # Numba looks at the module's own file alone to tell whether what it kept is stale.
    path = base / "modules" / f"{artifact.key}-{_intrinsics_digest()}" / "module.py"
    source = artifact.source.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Numba's cache goes by the file's time stamp: leave an equal file alone.
        equal = path.exists() and path.read_bytes() == source
    except OSError as error:
        raise ArtifactError(f"cannot write '{path}': {error.strerror}") from None
    if not equal:
        write_atomically(path, source)
    return path


def _load_file(name: str, path: Path) -> LoadedModule:
    module = _imported(name, path)
    loaded = LoadedModule(
        module.PROGRAM,
        tuple(k.address for k in module.KERNELS),
        _entry_point(module.run),
        _entry_point(module.call),
        module.KERNELS,
    )
    # Compiled functions refer to the names of their module, and these to dispatchers that refer to compiled
    # functions, in ways that the garbage collector does not see: cut, or none of it is ever freed.
    vars(module).clear()
    linecache.cache.pop(str(path), None)
    return loaded


def _entry_point(dispatcher: Any) -> Callable[..., Any]:
    """The one compiled function of a dispatcher, which is called without looking at argument types."""
    return dispatcher.get_overload(dispatcher.signatures[0])


def _imported(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Numba finds the functions of what it kept on disk by the name of their module.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module
