"""From PTX to machine code: nvJitLink's assembler, and cubins of several ELF images.

PTX texts that do not refer to one another are assembled side by side, each to an image of its own, which has
the very instructions that it would have in one image with the others. A cubin of several is one image after
another; each is loaded by itself.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from irkit.errors import DeviceError
from irkit.processors import usable_cores

_MAGIC = b"\x7fELF"
# Of an ELF header: where headers of segments and sections are; how long and how many each.
_HEADER = struct.Struct("<32xQQ6xHHHH2x")
_SEGMENT = struct.Struct("<8xQ16xQ16x")
_SECTION = struct.Struct("<4xI16xQQ24x")
_NO_BYTES = 8
_KERNEL = re.compile(rb"\.text\.([\w.$]+)\0")


def assemble(ptx: str | Sequence[str], arch: str, side_by_side: bool = False) -> tuple[bytes, str]:
    """(cubin for `arch`, the assembler's log) of one PTX text or of several, which become one image.
    Functions and kernels of a text are assembled `side_by_side` if so asked.

    Raises DeviceError with the log if the PTX is refused.
    """
    nvjitlink: Any = import_module("cuda.bindings.nvjitlink")
    options = [f"-arch={arch}", "-O3", "-verbose", "-Xptxas=-v"]
    if side_by_side:
        options.append(f"-Xptxas=-split-compile={usable_cores()}")
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


def resources_of(log: str) -> dict[str, dict[str, int]]:
    """Per entry, of the assembler's log: registers a thread, bytes of stack frame, spill stores and loads."""
    found: dict[str, dict[str, int]] = {}
    for part in re.split(r"Compiling entry function ", log)[1:]:
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


def _log(nvjitlink: Any, handle: int, kind: str) -> str:
    buffer = bytearray(getattr(nvjitlink, f"get_{kind}_log_size")(handle))
    if buffer:
        getattr(nvjitlink, f"get_{kind}_log")(handle, buffer)
    return bytes(buffer).decode(errors="replace").strip("\x00").strip()


def cubin_of(images: Sequence[bytes]) -> bytes:
    """A cubin of several images, which `images_of` takes apart."""
    cubin = b"".join(images)
    assert images_of(cubin) == list(images)
    return cubin


def images_of(code: bytes) -> list[bytes]:
    """The images of a cubin; code that is none, PTX, is one. Raises DeviceError for a cubin cut short."""
    if not code.startswith(_MAGIC):
        return [code]
    found: list[bytes] = []
    at = 0
    while at < len(code):
        end = at + _length(code[at:])
        if end > len(code):
            raise DeviceError("the cubin is cut short")
        found.append(code[at:end])
        at = end
    return found


def _length(code: bytes) -> int:
    """How many bytes the image takes that `code` begins with."""
    try:
        if not code.startswith(_MAGIC):
            raise DeviceError("what follows an image of the cubin is none")
        segments, sections, segment, segment_count, section, section_count = _HEADER.unpack_from(
            code
        )
        ends = [
            _HEADER.size,
            segments + segment * segment_count,
            sections + section * section_count,
        ]
        for number in range(segment_count):
            ends.append(sum(_SEGMENT.unpack_from(code, segments + segment * number)))
        for number in range(section_count):
            kind, at, size = _SECTION.unpack_from(code, sections + section * number)
            ends.append(at + size * (kind != _NO_BYTES))
        return max(ends)
    except struct.error:
        raise DeviceError("the cubin is cut short") from None


def kernels_of(images: Sequence[bytes]) -> Mapping[str, int]:
    """Functions with machine code → the number of the first image that has it."""
    found: dict[str, int] = {}
    for number, image in enumerate(images):
        for name in _KERNEL.findall(image):
            found.setdefault(name.decode(), number)
    return found
