"""Compile an emitted module to one cubin, on any machine: neither GPU nor driver is asked for."""

from __future__ import annotations

import importlib.util
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from irkit.runtime.cuda.assembling import assemble, cubin_of, resources_of
from irkit.runtime.cuda.entry_code import entry_ir
from irkit.runtime.cuda.linking import linked_code, nvvm_ptx
from irkit.runtime.units import NoEmittedModuleError, parts_of


@dataclass(frozen=True)
class CompiledModule:
    """What `compile_module_with_ptx` yields. `log` is the assembler's: registers, spills."""

    cubin: bytes
    ptx: str
    log: str

    def resources(self) -> dict[str, dict[str, int]]:
        """Per entry: registers a thread, bytes of stack frame, spill stores and loads."""
        return resources_of(self.log)


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


def compile_module_with_ptx(
    source: str, entries: Sequence[str], threads: int, arch: str
) -> CompiledModule:
    """Compile module text; the entry kernels keep their Python names in the cubin."""
    try:
        parts = parts_of(source)
    except NoEmittedModuleError:
        return _whole(source, entries, threads, arch)
    made = linked_code(parts, entries, threads, arch)
    cubin = cubin_of([image for _, image, _ in made])
    return CompiledModule(
        cubin, "\n".join(ptx for ptx, _, _ in made), "\n".join(log for _, _, log in made)
    )


def _whole(source: str, entries: Sequence[str], threads: int, arch: str) -> CompiledModule:
    """A module that emission did not print, in one piece."""
    module = load_module(source)
    try:
        ptx = module_ptx(module, entries, threads, arch)
    finally:
        # Its dispatchers refer to one another through these names, where no garbage collector looks.
        vars(module).clear()
    cubin, log = assemble(ptx, arch)
    return CompiledModule(cubin, ptx, log)


def compile_module(source: str, entries: Sequence[str], threads: int, arch: str) -> bytes:
    """The cubin of module text for `arch`. `threads` is the block size that every entry is compiled for."""
    return compile_module_with_ptx(source, entries, threads, arch).cubin
