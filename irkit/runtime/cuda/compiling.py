"""Compile an emitted module to one cubin, on any machine: neither GPU nor driver is asked for."""

from __future__ import annotations

import importlib.util
import re
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from irkit.errors import DeviceError
from irkit.runtime.cuda.linking import entry_ir, linked_ptx, nvvm_ptx
from irkit.runtime.units import NoEmittedModuleError, parts_of


@dataclass(frozen=True)
class CompiledModule:
    """What `compile_module_with_ptx` yields. `log` is the assembler's: registers, spills."""

    cubin: bytes
    ptx: str
    log: str

    def resources(self) -> dict[str, dict[str, int]]:
        """Per entry: registers a thread, bytes of stack frame, spill stores and loads."""
        found: dict[str, dict[str, int]] = {}
        for part in re.split(r"Compiling entry function ", self.log)[1:]:
            name = re.match(r"'([^']+)'", part)
            if name is None:
                continue
            found[name.group(1)] = {
                key: int(match.group(1)) if (match := re.search(pattern, part)) else 0
                for key, pattern in (
                    ("registers", r"Used (\d+) registers"),
                    ("stack", r"(\d+) bytes stack frame"),
                    ("spill_stores", r"(\d+) bytes spill stores"),
                    ("spill_loads", r"(\d+) bytes spill loads"),
                )
            }
        return found


def load_module(source: str) -> ModuleType:
    """Import module text from a file of its own, where Numba finds the lines it reports."""
    name = f"irkit_emitted_{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class ModuleIR:
    """NVVM IR of a module, a text for each function of Python; entries have their Python names there."""

    texts: Sequence[str]

    def ptx(self, arch: str) -> str:
        """PTX text for `arch` ("sm_90a")."""
        return nvvm_ptx(self.texts, arch)


def module_ir(module: ModuleType, entries: Sequence[str], threads: int, arch: str) -> ModuleIR:
    """What Numba makes of a module's entry kernels for `arch`.

    Every parameter of an entry is a 64-bit integer. Device functions that entries share are
    translated once.
    """
    texts = [text for e in entries for text in entry_ir(getattr(module, e), threads, arch)]
    return ModuleIR(list(dict.fromkeys(texts)))


def module_ptx(module: ModuleType, entries: Sequence[str], threads: int, arch: str) -> str:
    """PTX text of a module's entry kernels for `arch` ("sm_90a"), under their Python names."""
    return module_ir(module, entries, threads, arch).ptx(arch)


def assemble(ptx: str | Sequence[str], arch: str) -> tuple[bytes, str]:
    """(cubin for `arch`, the assembler's log) of one PTX text or of several.

    Raises DeviceError with the log if the PTX is refused.
    """
    nvjitlink: Any = import_module("cuda.bindings.nvjitlink")
    options = [f"-arch={arch}", "-O3", "-verbose", "-Xptxas=-v"]
    handle = nvjitlink.create(len(options), options)
    texts = [ptx] if isinstance(ptx, str) else ptx
    try:
        for text in map(str.encode, texts):
            nvjitlink.add_data(handle, nvjitlink.InputType.PTX, text, len(text), "irkit")
        nvjitlink.complete(handle)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
        return bytes(cubin), _log(nvjitlink, handle, "info")
    except nvjitlink.nvJitLinkError as error:
        log = _log(nvjitlink, handle, "error")
        raise DeviceError(f"the assembler refused the emitted PTX: {log}") from error
    finally:
        nvjitlink.destroy(handle)


def _log(nvjitlink: Any, handle: int, kind: str) -> str:
    buffer = bytearray(getattr(nvjitlink, f"get_{kind}_log_size")(handle))
    if buffer:
        getattr(nvjitlink, f"get_{kind}_log")(handle, buffer)
    return bytes(buffer).decode(errors="replace").strip("\x00").strip()


def compile_module_with_ptx(
    source: str, entries: Sequence[str], threads: int, arch: str
) -> CompiledModule:
    """Compile module text; the entry kernels keep their Python names in the cubin."""
    texts = _ptx_texts(source, entries, threads, arch)
    cubin, log = assemble(texts, arch)
    return CompiledModule(cubin, "\n".join(texts), log)


def _ptx_texts(source: str, entries: Sequence[str], threads: int, arch: str) -> list[str]:
    try:
        return linked_ptx(parts_of(source), entries, threads, arch)
    except NoEmittedModuleError:
        module = load_module(source)
    try:
        return [module_ptx(module, entries, threads, arch)]
    finally:
        # Its dispatchers refer to one another through these names, where no garbage collector looks.
        vars(module).clear()


def compile_module(source: str, entries: Sequence[str], threads: int, arch: str) -> bytes:
    """The cubin of module text for `arch`. `threads` is the block size that every entry is compiled for."""
    return compile_module_with_ptx(source, entries, threads, arch).cubin
