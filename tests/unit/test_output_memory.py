"""Memory of outputs is lent again, and never while somebody can read it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakSet

import numpy as np
import pytest

import irkit
from irkit.runtime import output_memory
from irkit.runtime.output_memory import LARGE, OutputMemory

F4 = np.dtype(np.float32)
SHAPE = (LARGE // 1024, 256)


def at(array):
    return array.__array_interface__["data"][0]


def test_what_nobody_holds_is_lent_again():
    memory = OutputMemory()
    places = [at(memory.empty(SHAPE, F4)) for _ in range(5)]
    assert len(set(places)) == 1
    assert places[0] % 64 == 0


@pytest.mark.parametrize(
    "kept",
    [
        lambda a: a,
        lambda a: a[1:, ::2],
        lambda a: a.T.reshape(-1, order="F"),
        lambda a: memoryview(a),
        lambda a: a.view(np.int32)[0],
        lambda a: np.asarray(memoryview(a)),
        lambda a: a.ctypes,
        lambda a: iter(a),
    ],
)
def test_what_somebody_holds_is_not(kept):
    memory = OutputMemory()
    held = kept(memory.empty(SHAPE, F4))
    first = at(memory.empty(SHAPE, F4))
    second = memory.empty(SHAPE, F4)
    assert at(second) == first  # `held` has the other piece
    del held
    assert at(memory.empty(SHAPE, F4)) != first


def test_arrays_held_side_by_side_share_no_byte():
    memory = OutputMemory()
    held = [memory.empty(SHAPE, F4) for _ in range(20)]
    for number, array in enumerate(held):
        array[:] = number
    assert all((array == number).all() for number, array in enumerate(held))


def test_little_is_kept():
    memory = OutputMemory(nbytes=1 << 27)
    for n in range(30):
        memory.empty((n + 1, LARGE), np.dtype(np.uint8))
    assert memory.kept_bytes <= 1 << 27
    assert memory.kept_bytes == sum((n + 1) * LARGE for n in range(22, 30))
    small = memory.kept_bytes
    assert memory.empty((1 << 20, 256), np.dtype(np.uint8)).shape == (1 << 20, 256)
    assert memory.kept_bytes == small


def test_programs_keep_so_much_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(output_memory, "KEPT_BY_ALL", 6 * LARGE)
    monkeypatch.setattr(output_memory, "_SHARING", WeakSet())
    first, second, third = (OutputMemory() for _ in range(3))
    for memory in (first, second, first):
        memory.empty((2, LARGE), np.dtype(np.uint8))
    second.empty((1, LARGE), np.dtype(np.uint8))
    assert (first.kept_bytes, second.kept_bytes) == (2 * LARGE, 3 * LARGE)
    # The one that has not lent for longest gives back first, then the one after.
    third.empty((3, LARGE), np.dtype(np.uint8))
    assert [m.kept_bytes // LARGE for m in (first, second, third)] == [0, 3, 3]
    third.empty((2, LARGE), np.dtype(np.uint8))
    assert [m.kept_bytes // LARGE for m in (first, second, third)] == [0, 1, 5]
    # More than all may keep is no reason to give anything back.
    third.empty((7, LARGE), np.dtype(np.uint8))
    assert [m.kept_bytes // LARGE for m in (first, second, third)] == [0, 1, 5]
    del third
    second.empty((5, LARGE), np.dtype(np.uint8))
    assert second.kept_bytes == 6 * LARGE


def test_what_all_keep_follows_the_machine(monkeypatch: pytest.MonkeyPatch):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 24}
    monkeypatch.setattr(output_memory.os, "sysconf", pages.__getitem__)
    assert output_memory.kept_by_all() == 1 << 31
    pages["SC_PHYS_PAGES"] = 1 << 15
    assert output_memory.kept_by_all() == 1 << 27
    monkeypatch.delattr(output_memory.os, "sysconf")
    assert output_memory.kept_by_all() == 1 << 27


def test_threads_are_never_lent_the_same():
    memory, wrong = OutputMemory(), []
    together = threading.Barrier(4)

    def use(number):
        together.wait()
        for _ in range(200):
            array = memory.empty(SHAPE, F4)
            array[::64, 0] = number
            if not (array[::64, 0] == number).all():
                wrong.append(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(4)))
    assert not wrong


NET = """\
func.func @main(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %0 = graph.exp %x : (tensor<?x1024xf32>) -> tensor<?x1024xf32>
  func.return %0 : tensor<?x1024xf32>
}
"""


@pytest.mark.parametrize("device", ["cpu1", "cpu2"])
def test_programs_keep_what_was_returned(tmp_path, device):
    (tmp_path / "net.mlir").write_text(NET)
    program = irkit.compile(tmp_path / "net.mlir", device=device)
    x = np.random.default_rng(0).standard_normal((200, 1024)).astype(np.float32)
    first = program(x)
    kept = first.copy()
    place = at(first)
    for n in range(3):
        assert at(program(x + n)) != place
    assert (first == kept).all()
    del first
    again = [at(program(x)) for _ in range(4)]
    assert len(set(again)) == 1
    np.testing.assert_allclose(program(x[:150]), np.exp(x[:150]), rtol=1e-6)
