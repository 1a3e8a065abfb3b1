"""The zip files of saved programs: what is large is written in parts, and mapped, not read.

Its bytes start on a page of the file, by an extra field of padding in the member's header, as Android's
zipalign does it. So they are the system's copy of the file, which all processes share, and which it may drop
and read again.
"""

from __future__ import annotations

import os
import struct
import tempfile
import zipfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from irkit.errors import ArtifactError
from irkit.runtime.digests import PIECE_BYTES, digest_of, mapped_file
from irkit.runtime.workspace import aligned
from irkit.weights import Array

LARGE = 1 << 20
"""Bytes from which on a member that is stored as it is, is mapped, or read to its place in memory."""
PAGE = 4096
_LOCAL = struct.Struct("<4s22xHH")
# An extra field's number and length; the one that zipalign pads with.
_EXTRA, _PADDING = struct.Struct("<HH"), 0xD935
# What `zipfile` puts behind the extra fields of a member that may be long.
_ZIP64_BYTES = 20


@dataclass(frozen=True)
class Member:
    """A member's bytes, which start on a cache line if they are many, and their digest."""

    data: memoryview
    digest: str


def read_members(path: Path) -> dict[str, Member]:
    """All members of a zip file, by name. Raises OSError, and what `zipfile` raises for wrong bytes."""
    with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        return {i.filename: _member(archive, stream, i) for i in archive.infolist()}


def _member(archive: zipfile.ZipFile, stream: BufferedReader, info: zipfile.ZipInfo) -> Member:
    plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
    if not plain or info.file_size < LARGE:
        data = archive.read(info)
        return Member(memoryview(data), digest_of([data]))
    stream.seek(info.header_offset)
    head = stream.read(_LOCAL.size)
    signature, name, extra = _LOCAL.unpack(head)
    if signature != b"PK\3\4" or info.file_size > os.fstat(stream.fileno()).st_size:
        raise zipfile.BadZipFile(f"{info.filename} is not where it should be")
    stream.seek(name + extra, os.SEEK_CUR)
    mapped = mapped_file(stream) if stream.tell() % PAGE == 0 else None
    if mapped is not None:
        data = mapped[stream.tell() :][: info.file_size]
        if len(data) < info.file_size:
            raise EOFError("the file ends within a member")
        return Member(data, digest_of([data]))
    data = aligned(info.file_size).data
    return Member(data.toreadonly(), digest_of(_filled(data, stream)))


def _filled(data: memoryview, stream: BufferedReader) -> Iterator[memoryview]:
    """Read a stream to `data`, part after part. Raises EOFError where it ends before."""
    for at in range(0, len(data), PIECE_BYTES):
        part = data[at : at + PIECE_BYTES]
        got = 0
        while got < len(part):
            more = stream.readinto(part[got:])
            if not more:
                raise EOFError("the file ends within a member")
            got += more
        yield part


def write_members(
    stream: BinaryIO, members: Mapping[str, bytes], stored: Mapping[str, Sequence[Array]]
) -> None:
    """A zip file of `members`, compressed, and of `stored`, bytes in parts, as they are."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        for name, parts in stored.items():
            large = sum(part.nbytes for part in parts) >= LARGE
            info = _on_a_page(name, stream.tell()) if large else zipfile.ZipInfo(name)
            with archive.open(info, "w", force_zip64=True) as member:
                for part in parts:
                    member.write(part.data)
            # The directory at the end needs no padding.
            info.extra = b""


def _on_a_page(name: str, at: int) -> zipfile.ZipInfo:
    """A member to be written at a place of a file, whose bytes start on a page behind its header."""
    info = zipfile.ZipInfo(name)
    header = _LOCAL.size + len(name.encode()) + _EXTRA.size + _ZIP64_BYTES
    padding = -(at + header) % PAGE
    info.extra = _EXTRA.pack(_PADDING, padding) + bytes(padding)
    return info


@contextmanager
def replaced(path: Path) -> Generator[BinaryIO]:
    """A stream whose bytes become the file once all are written. Raises ArtifactError if that fails."""
    if path.exists() and not path.is_file():
        raise ArtifactError(f"cannot write '{path}': it is no regular file")
    try:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".partial")
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
            os.replace(partial, path)
        except BaseException:
            os.unlink(partial)
            raise
    except OSError as error:
        raise ArtifactError(f"cannot write '{path}': {error.strerror}") from None


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file beside its place and move it there. Raises ArtifactError if that fails."""
    with replaced(path) as stream:
        stream.write(data)
