"""A program that passes to other processes as the files that `save` writes, and is loaded there once."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from irkit.driver.compiler.recompile import load_program
from irkit.errors import ArtifactError, UnsupportedError
from irkit.runtime.program import CompiledProgram

KEPT = 16
"""Programs that came from elsewhere and stay in a process, those used last."""

_loaded: OrderedDict[object, CompiledProgram] = OrderedDict()
_lock = threading.Lock()


class KeptProgram:
    """A program, its files, or the path of one: loaded at the first use, once in a process.

    Pickled with its files, or with the path alone, which must then be there for whoever unpickles it.
    Machine code for a CPU is made where it is loaded, and found in the cache from then on.
    """

    def __init__(self, source: CompiledProgram | Path | str) -> None:
        self._program = source if isinstance(source, CompiledProgram) else None
        self._path = None if self._program is not None else Path(str(source)).absolute()
        self._files: Mapping[str, bytes] | None = None
        if self._program is not None and len(self._program.state):
            raise UnsupportedError(
                "serving a program with state: what a batch gives would hang on those before it"
            )
        if self._path is not None and not self._path.is_file():
            raise ArtifactError(f"there is no saved program '{self._path}'")

    @property
    def program(self) -> CompiledProgram:
        """The program. Raises what `irkit.load` raises."""
        if self._program is None:
            self._program = _once(self._key(), self._read)
        return self._program

    def _key(self) -> object:
        if self._path is not None:
            # A file that was replaced is another program.
            facts = self._path.stat()
            return self._path, facts.st_ino, facts.st_size, facts.st_mtime_ns
        assert self._files is not None
        digest = hashlib.sha256()
        for name, content in sorted(self._files.items()):
            digest.update(f"{name}:{len(content)}:".encode() + content)
        return digest.hexdigest()

    def _read(self) -> CompiledProgram:
        if self._path is not None:
            return load_program(self._path)
        assert self._files is not None
        with tempfile.TemporaryDirectory(prefix="irkit-") as folder:
            for name, content in self._files.items():
                Path(folder, name).write_bytes(content)
            return load_program(Path(folder, "program"))

    def files(self) -> Mapping[str, bytes]:
        """What `save` writes, by name; the first is "program". Raises UnsupportedError for what has none."""
        if self._files is None:
            with tempfile.TemporaryDirectory(prefix="irkit-") as folder:
                self.program.save(Path(folder, "program"))
                self._files = {p.name: p.read_bytes() for p in sorted(Path(folder).iterdir())}
        return self._files

    def __getstate__(self) -> dict[str, Any]:
        files = self.files() if self._path is None else None
        return {"_program": None, "_path": self._path, "_files": files}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: object) -> KeptProgram:
        # A program without state is never changed.
        return self


def _once(key: object, read: Callable[[], CompiledProgram]) -> CompiledProgram:
    """What was read under `key` in this process; read once, whoever asks first."""
    with _lock:
        found = _loaded.get(key)
        if found is None:
            found = _loaded[key] = read()
        _loaded.move_to_end(key)
        while len(_loaded) > KEPT:
            _loaded.popitem(last=False)
        return found
