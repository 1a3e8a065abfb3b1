"""Compile an emitted module to one cubin, on any machine: neither GPU nor driver is asked for."""

from __future__ import annotations

import importlib.util
import inspect
import re
import tempfile
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from irkit.architectures import ARCHITECTURES, Architecture
from irkit.errors import DeviceError


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


def _numbas(built: Architecture) -> tuple[int, int, str]:
    """An architecture as Numba calls it."""
    return (*built.capability, built.suffix)


@contextmanager
def _compiling_for(cc: tuple[int, int, str]) -> Generator[None]:
    """Device functions are compiled for `cc`.

    Numba would ask the driver for the device at hand, which need not exist and whose context is not
    wanted.
    """
    dispatcher: Any = import_module("numba.cuda.dispatcher")
    asked = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=cc)
    try:
        yield
    finally:
        dispatcher.get_current_device = asked


@dataclass(frozen=True)
class ModuleIR:
    """NVVM IR of a module, a text for each function of Python, and the `entries` by their names there."""

    texts: Sequence[str]
    entries: Mapping[str, str]

    def ptx(self, arch: str) -> str:
        """PTX text for `arch` ("sm_90a"), entry kernels under their Python names."""
        nvvm: Any = import_module("numba.cuda.cudadrv.nvvm")
        made: bytes = nvvm.compile_ir(self.texts, opt=3, arch=arch.replace("sm_", "compute_"))
        text = made.decode().strip("\x00").strip()
        for mangled, entry in self.entries.items():
            text = text.replace(mangled, entry)
        return text


def module_ir(module: ModuleType, entries: Sequence[str], threads: int, arch: str) -> ModuleIR:
    """What Numba makes of a module's entry kernels for `arch`.

    Every parameter of an entry is a 64-bit integer. Device functions that entries share are
    translated once.
    """
    compiler: Any = import_module("numba.cuda.compiler")
    types: Any = import_module("numba.cuda").types
    cc = _numbas(ARCHITECTURES[arch])
    modules: dict[int, Any] = {}
    names: dict[str, str] = {}
    for entry in entries:
        function = getattr(module, entry)
        signature = types.void(*[types.int64] * len(inspect.signature(function).parameters))
        with _compiling_for(cc):
            library, _ = compiler._compile_pyfunc_with_fixup(
                function, signature, device=False, abi="numba", cc=cc, launch_bounds=(threads, 1)
            )
        names[library._entry_name] = entry
        modules |= {id(m): m for m in library.modules}
    return ModuleIR([str(m) for m in modules.values()], names)


def module_ptx(module: ModuleType, entries: Sequence[str], threads: int, arch: str) -> str:
    """PTX text of a module's entry kernels for `arch` ("sm_90a"), under their Python names."""
    return module_ir(module, entries, threads, arch).ptx(arch)


def assemble(ptx: str, arch: str) -> tuple[bytes, str]:
    """(cubin for `arch`, the assembler's log). Raises DeviceError with the log if the PTX is refused."""
    nvjitlink: Any = import_module("cuda.bindings.nvjitlink")
    options = [f"-arch={arch}", "-O3", "-verbose", "-Xptxas=-v"]
    handle = nvjitlink.create(len(options), options)
    text = ptx.encode()
    try:
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
