"""Runs the entry kernels of an emitted CUDA module on a CPU: all blocks of a grid, in any order that their
barriers, waits and signals leave.

One thread of one block runs at a time. It gives way to another, picked at random, at every barrier, wait and
signal, and a block is favoured for a while now and then, so that it runs far ahead of others. A thread that
waits for a flag sleeps until somebody signals it; if all sleep, the kernel is stuck. Memory is one array of
bytes, global memory first and the shared memory of each block behind it; asynchronous copies arrive when they
are awaited.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import random
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from cuda_emulator import Block, names_of
from fake_cuda import FakeDriver
from taking_turns import Crew, Workers

from irkit.runtime.cuda.facts import LaunchFacts, read_facts

_SHARED_FROM = 12 << 20
"""Where the shared memory of blocks begins: behind global memory."""
_PATIENCE_S = 500
_TYPES = {f"{k}{n}p": f"{v}{n}" for k, v in (("i", "int"), ("u", "uint")) for n in (8, 16, 32, 64)}
_TYPES |= {"f32p": "float32", "f64p": "float64"}


class GridError(Exception):
    """A grid in which no thread can go on, or one looks where no memory is."""


class _Stopped(BaseException):
    """Another thread of the grid has failed."""


class Grid:
    """The threads of all blocks, of which one runs at a time."""

    def __init__(self, blocks: int, threads: int, seed: int) -> None:
        self.random, self.threads = random.Random(seed), threads
        self.count, self.turn = blocks * threads, list[Any]()
        # By block.
        self.ready = [set(range(n * threads, (n + 1) * threads)) for n in range(blocks)]
        self.sleeping: dict[int, int] = {}
        self.arrived: dict[Any, set[int]] = {}
        self.problem: BaseException | None = None
        self.favourite = 0
        self.over = threading.Event()

    def run(self, work: Any, workers: Workers) -> None:
        """`work(number)` of every thread. Raises what the first that fails raised; the workers are of no use
        then."""
        for n in range(self.count):
            self.turn.append(workers.taken(functools.partial(self._live, n, work)).turn)
        self._next()
        assert self.over.wait(_PATIENCE_S), "the emulated grid takes too long"
        if self.problem is not None:
            raise self.problem

    def _live(self, number: int, work: Any) -> None:
        if self.problem is not None:
            return
        try:
            with np.errstate(all="ignore"):
                work(number)
        except _Stopped:
            return
        except BaseException as problem:
            self._fail(problem)
            return
        self.ready[number // self.threads].discard(number)
        self._next()

    def _fail(self, problem: BaseException) -> None:
        self.problem = self.problem or problem
        for turn in self.turn:
            if turn.locked():
                turn.release()
        self.over.set()

    def _next(self) -> None:
        """Let one that can go on."""
        if not any(self.ready):
            if self.sleeping or any(self.arrived.values()):
                waits = sorted({n // self.threads for n in self.sleeping})
                self._fail(GridError(f"all threads wait, those of blocks {waits} for others"))
            self.over.set()
            return
        # One block for a while: its threads wait for each other far more often than for other blocks.
        if not self.ready[self.favourite] or self.random.random() < 0.005:
            self.favourite = self.random.choice([n for n, of in enumerate(self.ready) if of])
        self.turn[next(iter(self.ready[self.favourite]))].release()

    def give_way(self, number: int) -> None:
        """Go on later."""
        self._next()
        self.turn[number].acquire()
        if self.problem is not None:
            raise _Stopped

    def meet(self, number: int, group: Any, count: int) -> None:
        """Wait for `count` threads that come to a barrier."""
        here = self.arrived.setdefault(group, set())
        here.add(number)
        self.ready[number // self.threads].discard(number)
        if len(here) == count:
            self.ready[number // self.threads] |= here
            self.arrived[group] = set()
        self.give_way(number)

    def sleep(self, number: int, flag: int) -> None:
        """Wait until somebody signals a flag."""
        self.sleeping[number] = flag
        self.ready[number // self.threads].discard(number)
        self.give_way(number)

    def wake(self, flag: int) -> None:
        """Whoever waits for a flag may look again."""
        for number in [n for n, f in self.sleeping.items() if f == flag]:
            del self.sleeping[number]
            self.ready[number // self.threads].add(number)


class _Barrier:
    """A barrier of a block, or of a warp."""

    def __init__(self, grid: Grid, block: Block, group: Any, count: int, first: int) -> None:
        self.grid, self.block, self.group, self.count, self.first = grid, block, group, count, first

    def wait(self) -> None:
        self.grid.meet(self.first + self.block.local.thread, self.group, self.count)


class EmulatedDriver(FakeDriver):
    """A CUDA driver whose modules are the texts of emitted modules, and whose kernels run, in an order that
    `seed` picks. What is captured runs when the graph is launched. `launches` has the entries that ran."""

    def __init__(self, seed: int = 0, multiprocessors: int = 4) -> None:
        super().__init__(multiprocessors)
        self.seed, self.launches = seed, list[str]()
        self.space = np.frombuffer(self.memory, dtype=np.uint8)
        # Memory is as whoever was there before left it.
        self.space[:] = 0xFF
        self._texts: dict[int, tuple[LaunchFacts, Any]] = {}
        self._captured: list[Any] | None = None
        self._recorded: dict[int, list[Any]] = {}
        self._workers = self._new_workers()

    def _new_workers(self) -> Workers:
        workers = Workers()
        weakref.finalize(self, workers.end)
        return workers

    def _cuMemAlloc(self, size: int) -> tuple[int]:
        assert self._free + size <= _SHARED_FROM
        return super()._cuMemAlloc(size)

    def _cuModuleLoadData(self, code: bytes) -> tuple[int]:
        (handle,) = super()._cuModuleLoadData(code)
        source = code.decode()
        self._texts[handle] = read_facts(source)[1], _body(source)
        return (handle,)

    def _cuStreamBeginCapture(self, *_: Any) -> tuple[()]:
        self._captured = []
        return ()

    def _cuStreamEndCapture(self, *_: Any) -> tuple[int]:
        assert self._captured is not None
        handle = next(self._handles)
        self._recorded[handle], self._captured = self._captured, None
        return (handle,)

    def _cuGraphInstantiate(self, graph: int, *_: Any) -> tuple[int]:
        handle = next(self._handles)
        self._recorded[handle] = self._recorded[graph]
        return (handle,)

    def _cuGraphLaunch(self, graph: int, *_: Any) -> tuple[()]:
        for launch in self._recorded[graph]:
            self._launched(*launch)
        return ()

    def _cuLaunchKernel(self, function: int, blocks: int, *rest: Any) -> tuple[()]:
        module, name = self.functions[function]
        facts, tree = self._texts[module]
        definition = next(node for node in tree.body if node.name == name)
        count = len(definition.args.args)
        pointers = (ctypes.POINTER(ctypes.c_int64) * count).from_address(rest[7])
        launch = (module, name, blocks, [p[0] for p in pointers])
        assert rest[2] == facts.threads
        if self._captured is None:
            self._launched(*launch)
        else:
            self._captured.append(launch)
        return ()

    def _cuLaunchCooperativeKernel(self, *given: Any) -> tuple[()]:
        return self._cuLaunchKernel(*given)

    def _launched(self, module: int, entry: str, blocks: int, arguments: Sequence[int]) -> None:
        """Raises GridError where the kernel does not come to its end."""
        self.launches.append(entry)
        self.seed += 1
        facts, tree = self._texts[module]
        shared = -(-facts.shared_bytes // 256) * 256
        grid = Grid(blocks, facts.threads, self.seed)
        code = compile(tree, "<emitted>", "exec")
        names = [
            _Names(grid, self.space, number, facts.threads, blocks, shared).made()
            for number in range(blocks)
        ]
        for of_block in names:
            exec(code, of_block)

        def work(number: int) -> None:
            of_block = names[number // facts.threads]
            of_block["local"].thread = number % facts.threads
            of_block[entry](*(np.int64(a) for a in arguments))

        try:
            grid.run(work, self._workers)
        except BaseException:
            self._workers.end()
            self._workers = self._new_workers()
            raise


class _Names:
    """What the text of a kernel calls, for one block."""

    def __init__(
        self, grid: Grid, space: Any, number: int, threads: int, blocks: int, size: int
    ) -> None:
        self.grid, self.space, self.number, self.blocks = grid, space, number, blocks
        self.base, self.first = _SHARED_FROM + number * size, number * threads
        assert self.base + size <= len(space)
        self.block = Block(threads, 0, Crew())
        self.block.shared = space[self.base : self.base + size]
        self.block.barrier = self._barrier("block", threads)
        self.block.warps = [self._barrier(("warp", w), 32) for w in range(threads // 32)]
        self.copies: dict[int, list[tuple[int, int]]] = {}
        self.seen: dict[int, tuple[int, int]] = {}
        self.early: set[int] = set()

    def _barrier(self, kind: Any, count: int) -> Any:
        return _Barrier(self.grid, self.block, (kind, self.number), count, self.first)

    @property
    def me(self) -> int:
        return self.first + self.block.local.thread

    def pointer(self, dtype: str) -> Any:
        size = np.dtype(dtype).itemsize

        def at(address: Any) -> Any:
            first = int(address)
            if not 0 < first <= len(self.space):
                raise GridError(f"address {first}")
            return self.space[first : first + (len(self.space) - first) // size * size].view(dtype)

        return at

    def address_of(self, pointer: Any) -> int:
        start = self.space.__array_interface__["data"][0]
        return pointer.__array_interface__["data"][0] - start

    def ld_acquire(self, flag: Any) -> Any:
        at = int(flag)
        value = int(self.space[at : at + 4].view(np.uint32)[0])
        if self.seen.get(self.me) == (at, value):
            self.grid.sleep(self.me, at)
            value = int(self.space[at : at + 4].view(np.uint32)[0])
        else:
            self.grid.give_way(self.me)
            value = int(self.space[at : at + 4].view(np.uint32)[0])
        self.seen[self.me] = (at, value)
        return np.uint32(value)

    def red_release_add(self, flag: Any, amount: Any) -> None:
        self.grid.give_way(self.me)
        self.space[int(flag) : int(flag) + 4].view(np.uint32)[0] += np.uint32(amount)
        self.grid.wake(int(flag))

    def ld_relaxed64(self, address: Any) -> Any:
        at = int(address)
        value = int(self.space[at : at + 8].view(np.uint64)[0])
        if self.me in self.early:
            # Where operands are, which may be the same for two, is read and not waited for.
            return np.uint64(value)
        if self.seen.get(self.me) == (at, value):
            self.grid.sleep(self.me, at)
        else:
            self.grid.give_way(self.me)
        value = int(self.space[at : at + 8].view(np.uint64)[0])
        self.seen[self.me] = (at, value)
        return np.uint64(value)

    def st_relaxed64(self, address: Any, value: Any) -> None:
        self.grid.give_way(self.me)
        self.space[int(address) : int(address) + 8].view(np.uint64)[0] = np.uint64(value)
        self.grid.wake(int(address))

    def cp_async16(self, destination: Any, source: Any) -> None:
        assert int(destination) % 16 == int(source) % 16 == 0
        self.copies.setdefault(self.me, []).append((int(destination), int(source)))

    def cp_async_wait(self) -> None:
        for destination, source in self.copies.pop(self.me, ()):
            self.space[destination : destination + 16] = self.space[source : source + 16]

    def made(self) -> dict[str, Any]:
        return names_of(self.block) | {
            **{name: self.pointer(dtype) for name, dtype in _TYPES.items()},
            "local": self.block.local,
            "block_index": lambda: self.number,
            "block_count": lambda: self.blocks,
            "shared_base": lambda: self.base,
            "address_of": self.address_of,
            "ld_acquire": self.ld_acquire,
            "begin_next": lambda: self.early.add(self.me),
            "await_previous": lambda: self.early.discard(self.me),
            "fetch_to_l2": lambda address, nbytes: None,
            "red_release_add": self.red_release_add,
            "ld_relaxed64": self.ld_relaxed64,
            "st_relaxed64": self.st_relaxed64,
            "cp_async16": self.cp_async16,
            "cp_async_wait": self.cp_async_wait,
        }


def _body(source: str) -> ast.Module:
    """A module's functions."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return tree
