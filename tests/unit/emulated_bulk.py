"""Barriers in shared memory and the copies that they count, for the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from emulated_wgmma import parts
from half_memory import HalfMemory
from taking_turns import Barrier as Meeting
from taking_turns import Crew

from irkit.rkernels.boxes import Boxed
from irkit.runtime.intrinsics import cuda_mma
from irkit.runtime.intrinsics.cuda_wgmma_terms import terms_of_chunk


class Barrier:
    """One `mbarrier`: its phases end when all have arrived and no byte is missing."""

    def __init__(self, crew: Crew, arrivals: int) -> None:
        self.arrivals, self.missing, self.bytes, self.phase = arrivals, arrivals, 0, 0
        self.copies: list[Any] = []
        self.crew, self.waiting = crew, list[Any]()

    def arrive(self, expected: int = 0) -> None:
        self.missing -= 1
        self.bytes += expected
        assert self.missing >= 0, "more threads arrive than the barrier was opened for"
        self._end()

    def arrive_behind(self, copies: list[Any]) -> None:
        self.copies += copies
        self.arrive()

    def copy(self, staged: Any, place: int, words: Any) -> None:
        self.copies.append((staged, place, words))
        self.bytes -= 4 * len(words)
        self._end()

    def _end(self) -> None:
        if self.missing or self.bytes:
            return
        for staged, place, words in self.copies:
            staged[place : place + len(words)] = words
        self.copies, self.missing, self.phase = [], self.arrivals, self.phase + 1
        self.crew.wake(self.waiting)

    def wait(self, parity: int) -> None:
        while self.phase % 2 == parity:
            self.crew.sleep(self.waiting)


class Barriers:
    """Those of a block, by their places."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.at: dict[int, Barrier] = {}

    def open(self, p: Any, place: int, arrivals: int) -> None:
        assert place not in self.at, "a barrier that is open is opened"
        self.at[place] = Barrier(self.crew, arrivals)

    def close(self, p: Any, place: int) -> None:
        barrier = self.at.pop(place)
        assert barrier.missing == barrier.arrivals, "a barrier is closed that some have arrived at"
        assert not barrier.copies, "a barrier is closed before its copies are there"

    def copy_rows(
        self, p: Any, place: int, source: Any, index: int, count: int, barrier: int
    ) -> None:
        bits = source.array if isinstance(source, HalfMemory) else source
        size = bits.dtype.itemsize
        words = bits[index : index + count // size].copy().view(np.uint32)
        assert count % 16 == index * size % 16 == 4 * place % 16 == 0
        assert 4 * len(words) == count, "rows beyond the end of what is copied"
        self.at[barrier].copy(p.view(np.uint32), place, words)


class BoxMap:
    """A tensor map: an operand, and how its rKernel sees it."""

    def __init__(self, array: Any, boxed: Boxed) -> None:
        self.bytes, self.boxed = array.reshape(-1).view(np.uint8), boxed

    def rows(self, first: tuple[int, ...]) -> Any:
        """The rows of the box that begins at `first`, each as bytes; zeros outside."""
        of, (x, y, z) = self.boxed, first
        size = 2 if of.element in ("bfloat16", "float16") else 4
        # Other boxes are no legal instruction.
        assert x * size % 16 == 0, "a box that does not begin at a multiple of 16 bytes"
        across, down, back = of.box
        assert across * size == 128
        found = np.zeros((back * down, 128), np.uint8)
        for n in range(back * down):
            row, matrix = y + n % down, z + n // down
            count = min(across, of.sizes[0] - x) * size
            if not (0 <= row < of.sizes[1] and 0 <= matrix < of.sizes[2] and count > 0):
                continue
            at = of.first + x * size + row * of.steps[0] + matrix * of.steps[1]
            assert at + count <= len(self.bytes), "a box reads beyond its operand"
            found[n, :count] = self.bytes[at : at + count]
        if of.element == "tfloat32":
            words, kept = found.view(np.uint32), np.isnan(found.view(np.float32))
            nearest = (words + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
            found = np.where(kept, np.uint32(0x7FFFE000), nearest).view(np.uint8)
        return found


def copy_box(
    barriers: Barriers, p: Any, place: int, source: BoxMap, x: int, y: int, z: int, barrier: int
) -> None:
    assert 4 * place % 1024 == 0, "a box that does not begin at a multiple of 1024 bytes"
    rows = source.rows((int(x), int(y), int(z)))
    # Chunks of 16 bytes of a row, each eighth of which begins anew.
    order = np.arange(8)[None, :] ^ (np.arange(len(rows))[:, None] % 8)
    chunks = np.empty_like(rows).reshape(len(rows), 8, 16)
    np.put_along_axis(chunks, order[:, :, None], rows.reshape(len(rows), 8, 16), axis=1)
    barriers.at[barrier].copy(p.view(np.uint32), place, chunks.reshape(-1).view(np.uint32))


class Turns:
    """Turns of a block's halves: one waits until all threads of the other have given it theirs."""

    def __init__(self, crew: Crew, threads: int) -> None:
        # All must come, be it to wait or to give.
        self.barriers = [Barrier(crew, 2 * threads), Barrier(crew, 2 * threads)]

    def wait(self, half: int) -> None:
        barrier = self.barriers[half]
        parity = barrier.phase % 2
        barrier.arrive()
        barrier.wait(parity)

    def give(self, half: int) -> None:
        self.barriers[half].arrive()


def packed_magnitudes(least: Any, most: Any, p: Any, place: int, inside: Any) -> tuple[Any, Any]:
    held = p.view(np.uint16)[2 * place : 2 * place + 8].reshape(4, 2) & np.uint16(0x7FFF)
    if not inside:
        return least, most
    low = np.array([least], np.uint32).view(np.uint16)
    top = np.array([most], np.uint32).view(np.uint16)
    low = np.minimum(low, (held - np.uint16(1)).min(axis=0))
    top = np.maximum(top, held.max(axis=0))
    return low.view(np.uint32)[0], top.view(np.uint32)[0]


def store_terms(target: Any, index: int, terms: Any, part: int, kind: int) -> None:
    assert len(terms) == terms_of_chunk(kind)
    array = target.array if isinstance(target, HalfMemory) else target
    for n, words in enumerate(parts(np.array(terms, np.float32), kind)):
        values = words.view(np.float32 if kind == cuda_mma.TF32 else array.dtype)
        array[index + n * part : index + n * part + len(terms)] = values


def of_cluster(cluster: Sequence[Any], own: Any, meeting: Meeting) -> dict[str, Any]:
    """How a block meets those of its cluster, and reads their shared memory."""

    def add_ranks(p: Any, place: int, count: int, ranks: int) -> None:
        assert ranks == len(cluster)
        assert place % 4 == count % 4 == 0
        # A warp's lanes all take part; one stands for them.
        block = own.local.thread // 32
        own.warps[block].wait()
        if own.local.thread % 32 == 0:
            offset = p.ctypes.data - own.shared.ctypes.data
            there = [b.view(np.float32, offset)[place : place + count] for b in cluster]
            total = there[0].copy()
            for more in there[1:]:
                total += more
            p[place : place + count] = total
        own.warps[block].wait()

    return {"meet_cluster": meeting.wait, "add_ranks": add_ranks}
