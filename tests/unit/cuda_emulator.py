"""Runs rKernel templates on a CPU: Python threads for a block's threads, NumPy for its memory.

Slow and exact about control flow: a barrier that not all threads reach ends in an error. Threads take turns
(`taking_turns.py`).
"""

from __future__ import annotations

import functools
import math
import operator
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import emulated_attention
import emulated_bulk as bulk
import emulated_bytes
import emulated_columns
import emulated_scaled_columns
import emulated_scaled_rows as scaled_rows
import emulated_wgmma as wgmma
import emulated_wgmma_parts
import numpy as np
from cuda_samples import Sample, kernel_text
from emulated_mma import (
    any_unsure,
    magnitudes,
    mma_store,
    mma_store_across,
    mma_sums,
    store_piece,
    store_piece_across,
)
from half_memory import ROUND, HalfMemory
from taking_turns import Barrier, Crew, Workers

from irkit.bfloat16 import is_half
from irkit.dialects.fused import multiply_add
from irkit.runtime.plain import plain


class _Own(threading.local):
    """What a thread knows of itself: its number, how many values it gave its warp, modulo two, and its
    asynchronous copies."""

    thread = 0
    given = 0
    copies: Copies | None = None


class Block:
    """One block: its shared memory and the barriers of the block and of each warp."""

    def __init__(self, threads: int, shared_bytes: int, crew: Crew) -> None:
        self.shared = np.full(shared_bytes, 0xAB, dtype=np.uint8)
        self.barrier = Barrier(crew, threads)
        self.warps = [Barrier(crew, 32) for _ in range(threads // 32)]
        self.slots: list[Any] = [None] * threads
        self.lanes = [[[None] * 32, [None] * 32] for _ in range(threads // 32)]
        self.local = _Own()
        self.barriers = bulk.Barriers(crew)
        self.turns = bulk.Turns(crew, threads // 2)

    def told(self, value: Any) -> Sequence[Any]:
        """What all lanes of this warp give. Nobody gives what comes next but one before all have read it."""
        local = self.local
        warp, lane = divmod(local.thread, 32)
        local.given = given = 1 - local.given
        values = self.lanes[warp][given]
        values[lane] = value
        self.warps[warp].wait()
        return values

    def exchange(self, value: Any, source: int) -> Any:
        """The value that lane `source` of this warp gave."""
        values = self.told(value)
        return values[source] if source < 32 else value

    def ballot(self, mine: Any) -> int:
        """Bits of the lanes of this warp for which it holds, as the int32 that they are."""
        bits = sum(1 << lane for lane, held in enumerate(self.told(bool(mine))) if held)
        return bits - (1 << 32) * (bits >> 31)

    def any(self, mine: Any) -> bool:
        """Whether it holds for any thread of the block, which all ask."""
        self.slots[self.local.thread] = mine
        self.barrier.wait()
        found = any(self.slots)
        self.barrier.wait()
        return found

    def copies(self) -> Copies:
        """The asynchronous copies of this thread."""
        if self.local.copies is None:
            self.local.copies = Copies()
        return self.local.copies

    def view(self, dtype: Any, offset: int) -> Any:
        """Shared memory from `offset` on."""
        size = np.dtype(dtype).itemsize
        return self.shared[offset : offset + (len(self.shared) - offset) // size * size].view(dtype)


def _held(pointer: Any, start: int, lane: int, length: int, lanes: int, stride: int) -> list[Any]:
    width = 4 if stride and stride % 4 == 0 and length % 4 == 0 else 1
    values: list[Any] = []
    for piece in range(-(-(length // width) // lanes)):
        at = lane + piece * lanes
        inside = at < length // width
        values += [
            pointer[start + at * width + i] if inside else pointer.dtype.type(0)
            for i in range(width)
        ]
    return values


def tile_sums(sums: Any, p: Any, a: int, b: int, *rest: int) -> tuple[Any, ...]:
    a_step, b_step, height, width, count = rest
    total = np.array(sums, p.dtype).reshape(height, width)
    for k in range(count):
        left, right = p[a + k * a_step :][:height], p[b + k * b_step :][:width]
        total = total + left[:, None] * right[None, :]
    return tuple(total.reshape(-1))


def window_sums(
    sums: Any, p: Any, filters: int, columns: Any, shift: int, place: int, height: int
) -> tuple[Any, ...]:
    assert filters % 4 == 0
    down = p[filters : filters + height]
    across = np.array([p[int(at) + int(shift) + place] for at in columns])
    assert len(down) == height
    total = np.array(sums, p.dtype).reshape(height, len(columns))
    return tuple((total + down[:, None] * across[None, :]).reshape(-1))


def tile_scaled(sums: Any, p: Any, position: int, height: int, width: int) -> tuple[Any, ...]:
    factors = p[position : position + height]
    return tuple((np.array(sums, p.dtype).reshape(height, width) * factors[:, None]).reshape(-1))


def tile_store(p: Any, position: int, step: int, sums: Any, width: int) -> None:
    for start in range(0, len(sums), width):
        at = position + start // width * step
        p[at : at + width] = sums[start : start + width]


class Copies:
    """A thread's asynchronous copies: they arrive when they are awaited, and no sooner."""

    def __init__(self) -> None:
        self.groups: list[list[Any]] = [[]]

    def start(self, staged: Any, place: int, source: Any, at: int, width: int, inside: Any) -> None:
        if isinstance(source, HalfMemory):
            bits = source.array[at : at + 2 * width].view(np.uint16)
            values = (bits if inside else 0 * bits).view(staged.dtype)
            assert at % (2 * width) == 0
        else:
            values = source[at : at + width].copy() if inside else np.zeros(width, source.dtype)
        assert len(values) == width
        assert place % width == at % width == 0
        self.groups[-1].append((staged, place, values))

    def start_chunk(
        self, staged: Any, tile: int, row: int, chunk: int, source: Any, at: int, inside: Any
    ) -> None:
        """Sixteen bytes of a packed row."""
        array = getattr(source, "array", source)
        count = 16 // array.dtype.itemsize
        bits = array[at : at + count].view(np.uint16).copy()
        assert len(bits) == 8
        assert at % count == 0
        place = wgmma.chunk_of(tile, row, chunk)
        self.groups[-1].append((staged.view(np.uint16), place, bits if inside else 0 * bits))

    def start_rows(
        self, staged: Any, tile: int, row: int, chunk: int, source: Any, at: int,
        pitch: int, between: int, count: int, limit: int,
    ) -> None:  # fmt: skip
        """Sixteen bytes of each of several packed rows; those beyond the limit are not read."""
        assert between % 8 == 0
        for n in range(count):
            inside = n * between < limit
            first = at + n * between * pitch if inside else 0
            where = row + n * between
            self.start_chunk(staged, tile, where, chunk, source, first, inside)

    def commit(self) -> None:
        self.groups.append([])

    def given_up(self) -> list[Any]:
        """All that are on their way: something else counts them as they arrive."""
        found = [c for group in self.groups for c in group]
        self.groups = [[]]
        return found

    def wait(self, left: int) -> None:
        arrived = max(0, len(self.groups) - 1 - left)
        for staged, place, values in (c for group in self.groups[:arrived] for c in group):
            staged[place : place + len(values)] = values
        self.groups = self.groups[arrived:]


def four_of(p: Any, at: int, wide: int) -> tuple[Any, ...]:
    assert not wide or at % 4 == 0
    assert 0 <= at <= len(p) - 4
    return tuple(p[at : at + 4])


def of_four(p: Any, at: int) -> tuple[Any, ...]:
    assert at % 4 == 0
    return tuple(p[at + i] for i in range(4))


def to_four(p: Any, at: int, *values: Any) -> None:
    assert at % 4 == 0
    for i, value in enumerate(values):
        p[at + i] = value


def four_to(p: Any, at: int, *values: Any) -> None:
    *four, wide = values
    assert not wide or at % 4 == 0
    assert 0 <= at <= len(p) - 4
    for i, value in enumerate(four):
        p[at + i] = value


def rows_dots(
    sums: Any, staged: Any, rows: Any, pointer: Any, starts: Any, lane: int, *rest: int
) -> tuple[Any, ...]:
    length, lanes, stride, _ = rest
    xs = [_held(staged, at, lane, length, lanes, stride) for at in rows]
    ws = [_held(pointer, at, lane, length, lanes, stride) for at in starts]
    products = [sum(a * b for a, b in zip(x, w, strict=True)) for x in xs for w in ws]
    return tuple(total + product for total, product in zip(sums, products, strict=True))


def held_rows_dots(
    sums: Any, held: Any, pointer: Any, starts: Any, lane: int, *rest: int
) -> tuple[Any, ...]:
    length, lanes, stride, _ = rest
    xs = np.array(held, pointer.dtype).reshape(len(sums) // len(starts), -1)
    ws = [_held(pointer, at, lane, length, lanes, stride) for at in starts]
    products = [sum(a * b for a, b in zip(x, w, strict=True)) for x in xs for w in ws]
    return tuple(total + product for total, product in zip(sums, products, strict=True))


def dealt(whole: Any, lane: int, lanes: int, height: int) -> tuple[Any, ...]:
    """The row of a summed tile that a lane gets."""
    row, width = lane // (lanes // height), len(whole) // height
    return whole[row * width : (row + 1) * width]


def rows_to_shared(
    staged: Any, place: int, pointer: Any, start: int, count: int, thread: int, *rest: int
) -> None:
    length, threads, stride = rest
    assert count <= length
    width = 4 if stride and stride % 4 == 0 and length % 4 == 0 else 1
    for at in range(thread * width, count, threads * width):
        staged[place + at : place + at + width] = pointer[start + at : start + at + width]


def _rounded_to(dtype: Any, function: Any) -> Any:
    return lambda *given: dtype(function(*map(float, given)))


APPROXIMATIONS = {
    f"{name}_{dtype.__name__}": _rounded_to(dtype, getattr(np, at, None) or getattr(math, at))
    for name, at in (
        ("acos", "arccos"), ("asin", "arcsin"), ("atan2", "arctan2"), ("cosh", "cosh"),
        ("exp2", "exp2"), ("expm1", "expm1"), ("log10", "log10"), ("log2", "log2"), ("sinh", "sinh"),
        ("atan", "arctan"), ("cos", "cos"), ("erf", "erf"), ("exp", "exp"), ("log", "log"),
        ("log1p", "log1p"), ("pow", "power"), ("sin", "sin"), ("tanh", "tanh"),
    )
    for dtype in (np.float32, np.float64)
}  # fmt: skip
"""What `cuda_approximations` has, by its names there."""


def names_of(block: Block) -> dict[str, Any]:  # noqa: C901
    """What the text of a kernel calls, for one block."""

    def shuffle(value: Any, lane_of: Any) -> Any:
        return block.exchange(value, lane_of(block.local.thread % 32))

    def group_sums(sums: tuple[Any, ...], lanes: int) -> tuple[Any, ...]:
        distance = lanes // 2
        while distance:
            others = shuffle(sums, lambda lane, d=distance: lane ^ d)
            sums = tuple(a + b for a, b in zip(sums, others, strict=True))
            distance //= 2
        return sums

    def over_the_warp(value: Any, combine: Any, lanes: int = 32) -> Any:
        while lanes > 1:
            lanes //= 2
            value = combine(value, shuffle(value, lambda lane, d=lanes: lane ^ d))
        return value

    def over_the_block(value: Any, parts: Any, warps: int, combine: Any) -> Any:
        value = over_the_warp(value, combine)
        warp, lane = divmod(block.local.thread, 32)
        if lane == 0:
            parts[warp] = value
        block.barrier.wait()
        return functools.reduce(combine, parts[:warps])

    def lane_dots(
        sums: Any, held: Any, pointer: Any, starts: Any, offset: int, lane: int, *rest: int
    ) -> tuple[Any, ...]:
        length, lanes, stride, _ = rest
        return tuple(
            total
            + sum(
                a * b
                for a, b in zip(
                    held, _held(pointer, s + offset, lane, length, lanes, stride), strict=True
                )
            )
            for total, s in zip(sums, starts, strict=True)
        )

    def rows_store(p: Any, first: int, step: int, limit: int, values: Any, enabled: bool) -> None:
        for i, value in enumerate(values):
            if enabled and first + i * step < limit:
                p[first + i * step] = value

    def node_store(p: Any, index: int, word: int, threshold: Any) -> None:
        bits = p.view(f"u{p.dtype.itemsize}")
        bits[2 * index] = int(word)
        p[2 * index + 1] = threshold

    def node_load(p: Any, index: int) -> tuple[int, Any]:
        index = int(index)
        return int(p.view(f"u{p.dtype.itemsize}")[2 * index]), p[2 * index + 1]

    def heap_node(nodes: Any, index: int, x: Any) -> tuple[int, Any]:
        words = nodes[2 * int(index) : 2 * int(index) + 2]
        return int(words.view("u4")[0]), words[1:].view(x.dtype)[0]

    def packed_node(nodes: Any, index: int, x: Any) -> tuple[Any, Any, Any]:
        words = nodes[4 * int(index) : 4 * int(index) + 4]
        return words[: x.dtype.itemsize // 4].view(x.dtype)[0], words[2], words[3]

    cuda = SimpleNamespace(
        syncthreads=block.barrier.wait,
        syncthreads_or=block.any,
        syncwarp=lambda: block.warps[block.local.thread // 32].wait(),
        local=SimpleNamespace(array=lambda shape, dtype: np.full(shape, 77, dtype)),
        shfl_xor_sync=lambda mask, v, d: shuffle(v, lambda lane: lane ^ d),
        shfl_sync=lambda mask, v, d: shuffle(v, lambda lane: d),
        shfl_down_sync=lambda mask, v, d: shuffle(v, lambda lane: lane + d),
        shfl_up_sync=lambda mask, v, d: shuffle(v, lambda lane: lane - d if lane >= d else lane),
        ballot_sync=lambda mask, mine: block.ballot(mine),
        popc=lambda bits: (int(bits) & 0xFFFFFFFF).bit_count(),
    )
    return {
        # A GPU's logarithm of zero is no error.
        "math": SimpleNamespace(**{**vars(math), "log": np.log}),
        "cuda": cuda,
        "fused": lambda f: f,
        "thread_index": lambda: block.local.thread,
        "divide": divmod,
        "in_one_row": lambda element, width: (0, element),
        "same_in_warp": int,
        "divide32": divmod,
        "add32": lambda a, b: int(a) + int(b),
        "mad32": lambda a, b, c: int(a) * int(b) + int(c),
        "fixed": int,
        "boolean": np.bool_,
        **dict(rint=np.rint, cbrt=np.cbrt, exp2=np.exp2, log2=np.log2, fmod=np.fmod),
        "as_it_is": lambda x: x,
        "fma": multiply_add,
        "quotient": lambda x, y, *reciprocal: x / y,
        "within32": lambda index, size: 0 <= index < size,
        "itemsize": lambda p: p.dtype.itemsize,
        "shared_like": lambda p, offset: block.view(p.dtype, offset),
        "shared_of": lambda v, offset: block.view(np.asarray(v).dtype, offset),
        "shared_i32": lambda offset: block.view(np.int32, offset),
        "load4": of_four,
        "load_four": four_of,
        "store_four": four_to,
        "store4": to_four,
        "lane_load": lambda p, s, lane, *rest: tuple(_held(p, s, lane, *rest)),
        "lane_dots": lane_dots,
        "rows_dots": rows_dots,
        "held_rows_dots": held_rows_dots,
        "rows_load": lambda p, starts, lane, *rest: tuple(
            value for start in starts for value in _held(p, int(start), lane, *rest)
        ),
        "rows_to_shared": rows_to_shared,
        "dealt_sums": lambda sums, lane, lanes, *rest: dealt(
            group_sums(sums, lanes), lane, lanes, *rest
        ),
        "group_sums": group_sums,
        "lanes_sum": lambda x, lanes: over_the_warp(x, operator.add, lanes),
        "lanes_maximum": lambda x, lanes: over_the_warp(x, np.maximum, lanes),
        "lanes_minimum": lambda x, lanes: over_the_warp(x, np.minimum, lanes),
        "warp_sum": lambda x: over_the_warp(x, operator.add),
        "warp_largest": lambda x: over_the_warp(x, np.fmax),
        "warp_maximum": lambda x: over_the_warp(x, np.maximum),
        "warp_minimum": lambda x: over_the_warp(x, np.minimum),
        "block_maximum": lambda x, *of: over_the_block(x, *of, np.maximum),
        "block_minimum": lambda x, *of: over_the_block(x, *of, np.minimum),
        "block_sum": lambda x, *of: over_the_block(x, *of, operator.add),
        "block_largest": lambda x, *of: over_the_block(x, *of, np.fmax),
        "zeros_like": lambda p, count: (p.dtype.type(0),) * count,
        "row_starts": lambda first, step, limit, length, count: tuple(
            min(first + i * step, limit - 1) * length for i in range(count)
        ),
        "rows_store": rows_store,
        "tile_scaled": tile_scaled,
        "copy_async": lambda *given: block.copies().start(*given),
        "commit_copies": lambda: block.copies().commit(),
        "await_copies": lambda left: block.copies().wait(left),
        "any_unsure": any_unsure,
        "magnitudes": magnitudes,
        "mma_sums": mma_sums,
        "open_barrier": block.barriers.open,
        "close_barrier": block.barriers.close,
        "publish_barriers": lambda: None,
        "feed_rows": lambda *given: block.copies().start_rows(*given),
        "arrive_behind_copies": lambda p, place: block.barriers.at[place].arrive_behind(
            block.copies().given_up()
        ),
        "expect": lambda p, place, count: block.barriers.at[place].arrive(count),
        "arrive": lambda p, place: block.barriers.at[place].arrive(),
        "await_phase": lambda p, place, parity: block.barriers.at[place].wait(parity),
        "copy_rows": block.barriers.copy_rows,
        "copy_box": lambda *given: bulk.copy_box(block.barriers, *given),
        "see_map": lambda source: None,
        "store_piece": store_piece,
        "store_piece_across": store_piece_across,
        "packed_magnitudes": bulk.packed_magnitudes,
        "store_terms": bulk.store_terms,
        "await_products": lambda left: None,
        "aligned_place": wgmma.aligned_place,
        "publish_tiles": lambda: None,
        "read_terms": wgmma.read_terms,
        "pack_terms": wgmma.pack_terms,
        "copy_chunk": lambda *given: block.copies().start_chunk(*given),
        "round_chunks": wgmma.round_chunks,
        "group_products": lambda *given: wgmma.group_products(block.local.thread, *given),
        "group_added": wgmma.group_added,
        "group_added_low": wgmma.group_added_low,
        **{
            name: getattr(scaled_rows, name)
            for name in (
                "sizes_seen",
                "row_scale",
                "small_terms",
                "row_bound",
                "lost_of",
                "store_scaled",
                "store_header",
                "row_header",
                "scaled_sums",
            )
        },
        "settled": lambda values: values,
        "packed_weights": wgmma.packed_weights,
        "await_turn": block.turns.wait,
        "give_turn": block.turns.give,
        "weighted_products": lambda *given: wgmma.weighted_products(
            block.exchange, block.local.thread % 32, *given
        ),
        "mma_store": mma_store,
        "mma_store_across": mma_store_across,
        "tile_sums": tile_sums,
        "window_sums": window_sums,
        "tile_store": tile_store,
        "node_store": node_store,
        "node_load": node_load,
        "heap_node": heap_node,
        "packed_node": packed_node,
        **emulated_attention.names(shuffle, lambda: block.local.thread % 32),
        **emulated_wgmma_parts.names(shuffle, lambda: block.local.thread, block.copies),
        **emulated_columns.names(block.exchange, lambda: block.local.thread % 32),
        **emulated_scaled_columns.names(block.exchange, lambda: block.local.thread % 32),
        **APPROXIMATIONS,
        **emulated_bytes.NAMES,
        **ROUND,
        **{n: getattr(np, n) for n in ("float32", "float64")},
        **{f"{k}{n}": getattr(np, f"{k}{n}") for k in ("int", "uint") for n in (8, 16, 32, 64)},
    }


def run(
    sample: Sample, arrays: Sequence[Any], tasks: int, rows: int, threads: int = 64,
    shared_bytes: int = 1 << 16, blocks: int = 1,
) -> None:  # fmt: skip
    """Run all rTasks of a sample over flat operands, each shared by so many blocks. Raises what any thread
    raised."""
    text = kernel_text(0, sample, threads, blocks > 1)
    run_text(text, "kernel_0", arrays, tasks, rows, threads, shared_bytes, ranks=blocks)


def _pointer(array: Any) -> Any:
    if isinstance(array, bulk.BoxMap):
        return array
    return HalfMemory(array) if is_half(array.dtype) else array.reshape(-1)


def run_text(
    text: str, kernel: str, arrays: Sequence[Any], tasks: int, rows: int, threads: int,
    shared_bytes: int = 1 << 16, only: int | None = None, ranks: int = 1,
) -> None:  # fmt: skip
    """Run all rTasks of the kernel that a text defines, or the one of number `only`, each shared by a cluster
    of `ranks` blocks."""
    pointers = [_pointer(a) for a in arrays]
    code, workers = compile(plain(text), "<template>", "exec"), Workers()
    for task in range(tasks) if only is None else (only,):
        crew = Crew(task)
        cluster = [Block(threads, shared_bytes, crew) for _ in range(ranks)]
        meeting = Barrier(crew, ranks * threads)

        def work(number: int, block: Block, names: Any, task: int) -> None:
            block.local.thread = number
            with np.errstate(all="ignore"):
                names[kernel](task, tasks, rows, 0, *pointers)

        works: list[Callable[[], None]] = []
        for rank, block in enumerate(cluster):
            names = names_of(block) | bulk.of_cluster(cluster, block, meeting)
            names["block_index"] = lambda place=task * ranks + rank: place
            names["block_count"] = lambda: tasks * ranks
            exec(code, names)
            works += [functools.partial(work, n, block, names, task) for n in range(threads)]
        crew.run(works, workers)
    workers.end()
