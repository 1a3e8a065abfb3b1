"""Barriers in shared memory and the copies that they count, for the emulator."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from emulated_wgmma import parts
from half_memory import HalfMemory

from irkit.runtime.intrinsics import cuda_mma
from irkit.runtime.intrinsics.cuda_wgmma_terms import terms_of_chunk

_PATIENCE_S = 20


class Barrier:
    """One `mbarrier`: its phases end when all have arrived and no byte is missing."""

    def __init__(self, arrivals: int) -> None:
        self.arrivals, self.missing, self.bytes, self.phase = arrivals, arrivals, 0, 0
        self.copies: list[Any] = []
        self.changed = threading.Condition()

    def arrive(self, expected: int = 0) -> None:
        with self.changed:
            self.missing -= 1
            self.bytes += expected
            assert self.missing >= 0, "more threads arrive than the barrier was opened for"
            self._end()

    def arrive_behind(self, copies: list[Any]) -> None:
        with self.changed:
            self.copies += copies
        self.arrive()

    def copy(self, staged: Any, place: int, words: Any) -> None:
        with self.changed:
            self.copies.append((staged, place, words))
            self.bytes -= 4 * len(words)
            self._end()

    def _end(self) -> None:
        if self.missing or self.bytes:
            return
        for staged, place, words in self.copies:
            staged[place : place + len(words)] = words
        self.copies, self.missing, self.phase = [], self.arrivals, self.phase + 1
        self.changed.notify_all()

    def wait(self, parity: int) -> None:
        with self.changed:
            ended = self.changed.wait_for(lambda: self.phase % 2 != parity, _PATIENCE_S)
            assert ended, "a phase that does not end"


class Barriers:
    """Those of a block, by their places."""

    def __init__(self) -> None:
        self.at: dict[int, Barrier] = {}

    def open(self, p: Any, place: int, arrivals: int) -> None:
        assert place not in self.at, "a barrier that is open is opened"
        self.at[place] = Barrier(arrivals)

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


class Turns:
    """Turns of a block's halves: one waits until all threads of the other have given it theirs."""

    def __init__(self, threads: int) -> None:
        # All must come, be it to wait or to give.
        self.barriers = [Barrier(2 * threads), Barrier(2 * threads)]

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
