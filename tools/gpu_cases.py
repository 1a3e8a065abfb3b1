"""What `gpu_check` checks: single rKernels with data and a float64 reference, a stack of LSTMs, a forest.

NumPy only, so that it also runs where neither Numba nor xDSL is installed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np

from irkit.schedule.block_memory import aligned
from irkit.schedule.modes import Mode
from irkit.schedule.tables import (
    ARENA,
    CONSTANTS,
    FIRST_INPUT,
    Appended,
    Operand,
    Pinned,
    Port,
    Program,
)
from irkit.weights import Array

VEUS = 132
# Cases are right in every mode: each is one launch, or has waves behind its waits.
MODES = tuple(mode.value for mode in Mode)
LAYERS, STEPS, UNITS, TASKS = 10, 100, 256, 13


@dataclass(frozen=True)
class Case:
    """One program. `sample` names a function of tests/unit/cuda_samples.py and its arguments.

    `arrays` are the read operands; the first is the program's input, the others are constants.
    `reference` computes the output in float64. `batch`: the rTasks are shares of the rows.
    """

    name: str
    sample: tuple[str, Mapping[str, Any]]
    data: Callable[[np.random.Generator], list[Array]]
    reference: Callable[..., Array]
    output: str = "float32"
    tasks: int = VEUS
    batch: bool = True
    threads: int = 256
    scratch_bytes: int = 32 * 1024
    tolerance: float = 1e-5
    peer: Callable[..., Any] | None = None
    grids: tuple[int, ...] = ()
    modes: tuple[str, ...] = ("per-op", "per-wave", "persistent")
    shape: tuple[int, ...] | None = None

    @cached_property
    def arrays(self) -> list[Array]:
        """The operands, always the same."""
        return self.data(np.random.default_rng(7))

    def expected(self) -> Array:
        """The output in float64."""
        return self.reference(
            *(a.astype(np.float64) if a.dtype.kind == "f" else a for a in self.arrays)
        )

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the output."""
        return self.expected().shape if self.shape is None else self.shape

    @property
    def rows(self) -> int:
        """Rows of the batch."""
        return len(self.arrays[0]) if self.batch else 1

    def program(self) -> Program:
        """A program with one append."""
        shape = self.output_shape
        first, *others = self.arrays
        constants, at = [], 0
        for number, array in enumerate(others):
            constants.append((f"c{number}", at, array.nbytes))
            at += -(-array.nbytes // 256) * 256
        operands = [Operand(FIRST_INPUT, 0)]
        operands += [Operand(CONSTANTS, start) for _, start, _ in constants]
        operands.append(Operand(FIRST_INPUT + 1, 0))
        lead = (-1,) if self.batch else ()
        return Program(
            "h200",
            VEUS,
            self.threads,
            aligned(self.scratch_bytes),
            (Port("x", str(first.dtype), (*lead, *first.shape[len(lead) :])),),
            (Port("y", self.output, (*lead, *shape[len(lead) :])),),
            0,
            0,
            at,
            tuple(constants),
            (self.name,),
            (Appended(0, self.tasks, 0, min(self.tasks, VEUS), 0, (), tuple(operands)),),
            MODES,
            "not from IR",
        ).sealed()


def normal(*shape: int, kind: str = "float32") -> Callable[[np.random.Generator], Array]:
    """Random numbers of that shape."""
    return lambda rng: rng.standard_normal(shape).astype(kind)


def each(
    *makers: Callable[[np.random.Generator], Array],
) -> Callable[[np.random.Generator], list[Array]]:
    """Several operands."""
    return lambda rng: [make(rng) for make in makers]


def softmax(x: Array) -> Array:
    """Softmax of the last dimension."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: Array) -> Array:
    """Rows without their mean, divided by what is left, times two."""
    return rms_norm(x - x.mean(-1, keepdims=True))


def rms_norm(x: Array) -> Array:
    """Rows divided by the root of their mean square, times two."""
    return 2 * x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def conv3x3(x: Array, w: Array, b: Array) -> Array:
    """3x3 convolution of channels x size x size, padded by 1, and ReLU."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    return np.maximum(np.einsum("cyxij,ocij->oyx", windows, w) + b[:, None, None], 0)


def relu_gemm(transposed: bool) -> Callable[..., Array]:
    """relu(a @ b + bias)."""
    return lambda a, b, bias: np.maximum(a @ (b.T if transposed else b) + bias, 0)


def torch_relu_gemm(transposed: bool) -> Callable[..., Any]:
    """The same with PyTorch."""
    return lambda t, a, b, bias: t.relu(t.addmm(bias, a, b.T if transposed else b))


@cache
def random_forest(
    rows: int, features: int, trees: int, depth: int, columns: int, width: int, kind: str
) -> Callable[[np.random.Generator], list[Array]]:
    """x (a tenth NaN), feature, threshold, nan_left, value, output, base of a perfect forest."""

    @lru_cache(maxsize=1)
    def make(rng_state: int) -> list[Array]:
        rng = np.random.default_rng(rng_state)
        x = rng.standard_normal((rows, features)).astype(kind)
        x[rng.random(x.shape) < 0.1] = np.nan
        nodes = (trees, (1 << depth) - 1)
        output = (
            np.arange(trees, dtype=np.int32) % columns if width == 1 else np.zeros(trees, np.int32)
        )
        return [
            x,
            rng.integers(0, features, nodes).astype(np.int32),
            rng.standard_normal(nodes).astype(kind),
            rng.integers(0, 2, nodes).astype(np.uint8),
            rng.standard_normal((trees, 1 << depth, width)),
            output.astype(np.int32),
            rng.standard_normal(columns),
        ]

    # Programs over the same forest share one copy of it.
    return lambda rng: make(7)


def walk(
    x: Array,
    feature: Array,
    threshold: Array,
    nan_left: Array,
    value: Array,
    output: Array,
    base: Array,
) -> Array:
    """Sums in tree order: the result must be equal to the last bit."""
    result = np.tile(base, (len(x), 1))
    rows = np.arange(len(x))
    for tree in range(len(feature)):
        node = np.zeros(len(x), dtype=np.int64)
        while node[0] < feature.shape[1]:
            v = x[rows, feature[tree, node]]
            left = (v <= threshold[tree, node]) | (np.isnan(v) & (nan_left[tree, node] != 0))
            node = 2 * node + np.where(left, 1, 2)
        leaf = value[tree, node - feature.shape[1]]
        if value.shape[2] == 1:
            result[:, output[tree]] += leaf[:, 0]
        else:
            result += leaf
    return result


def forest_case(
    variant: str, rows: int, features: int, trees: int, depth: int, columns: int = 1,
    width: int = 1, kind: str = "float32", threads: int = 256, scratch: int | None = None,
    timing: bool = False, **literals: int,
) -> Case:  # fmt: skip
    """A perfect forest."""
    item = 4 if kind == "float32" else 8
    tile = threads * literals.get("ROWS_PER_THREAD", 2)
    slots = literals.get("GROUP", 8) << depth
    staged = tile * features * item + slots * (2 * item + (8 if width == 1 else 0))
    name = f"forest {variant} {trees}x{depth}x{features}, {rows} rows, {columns} columns {kind}"
    name += "".join(f" {k}={v}" for k, v in literals.items())
    arguments = dict(
        variant=variant, features=features, trees=trees, depth=depth, x=kind, columns=columns,
        width=width, **literals,
    )  # fmt: skip
    return Case(
        name + (f" threads={threads}" if threads != 256 else ""),
        ("perfect_forest", arguments),
        random_forest(rows, features, trees, depth, columns, width, kind),
        walk,
        output="float64",
        threads=threads,
        scratch_bytes=staged if scratch is None else scratch,
        tolerance=0.0,
        shape=(rows, columns),
        grids=(132, 264, 396, 528, 1056, -(-rows // tile)) if timing else (),
        modes=("per-op",) if timing else ("per-op", "per-wave", "persistent"),
    )


def forest_timings() -> list[Case]:
    """500 trees, depth 8, 28 features, a million rows, with several tile sizes and block sizes."""
    tunings = [(256, 2, 8), (256, 1, 8), (256, 3, 4), (256, 4, 8), (512, 1, 8), (512, 2, 8), (128, 3, 4),
               (1024, 1, 8)]  # fmt: skip
    return [
        forest_case(
            "staged",
            1_000_000,
            28,
            500,
            8,
            threads=threads,
            timing=True,
            GROUP=group,
            ROWS_PER_THREAD=rows,
        )
        for threads, rows, group in tunings
    ]


CASES = [
    Case("map 100", ("elementwise", dict(columns=100)), each(normal(10000, 100), normal(100)),
         lambda x, y: np.tanh(x) + y, peer=lambda t, x, y: t.tanh(x) + y),
    Case("reduce thread", ("reduce", dict(family="reduce", variant="thread", columns=16, terms=9)),
         each(normal(1000, 16, 9)), lambda x: x.sum(-1) / 2, peer=lambda t, x: x.sum(-1) / 2),
    Case("pool warp", ("reduce", dict(family="pool", variant="warp", columns=16, terms=100)),
         each(normal(1000, 16, 100)), lambda x: x.sum(-1) / 2, peer=lambda t, x: x.sum(-1) / 2),
    Case("reduce block", ("reduce", dict(family="reduce", variant="block", columns=1, terms=5000,
         kind="float64")), each(normal(500, 1, 5000, kind="float64")), lambda x: x.sum(-1) / 2,
         output="float64", tolerance=1e-12),
    Case("softmax warp", ("softmax", dict(variant="warp", columns=10)), each(normal(10000, 10)), softmax,
         peer=lambda t, x: t.softmax(x, -1)),
    Case("softmax block", ("softmax", dict(variant="block", columns=5000)), each(normal(500, 5000)),
         softmax, peer=lambda t, x: t.softmax(x, -1)),
    Case("layer norm warp", ("layer_norm", dict(variant="warp", columns=768, held=24)),
         each(normal(2000, 768)), layer_norm, peer=lambda t, x: 2 * t.nn.functional.layer_norm(x, [768])),
    Case("layer norm block", ("layer_norm", dict(variant="block", columns=5000, held=20)),
         each(normal(500, 5000)), layer_norm, peer=lambda t, x: 2 * t.nn.functional.layer_norm(x, [5000])),
    Case("layer norm long", ("layer_norm", dict(variant="long", columns=20000, centred=False)),
         each(normal(100, 20000)), rms_norm),
    Case("argmax", ("argmax", dict(columns=10)), each(normal(10000, 10)), lambda x: x.argmax(-1),
         output="int64", tolerance=0.0, peer=lambda t, x: x.argmax(-1)),
    Case("gemm tile64 kj 1024", ("gemm", dict(variant="tile64_kj", k=1024, columns=1024)),
         each(normal(1024, 1024), normal(1024, 1024), normal(1024)), relu_gemm(False),
         peer=torch_relu_gemm(False)),
    Case("gemm tile64 jk 1000x100x70", ("gemm", dict(variant="tile64_jk", k=100, columns=70)),
         each(normal(1000, 100), normal(70, 100), normal(70)), relu_gemm(True), peer=torch_relu_gemm(True)),
    Case("gemm tile32 kj 1000x100x70", ("gemm", dict(variant="tile32_kj", k=100, columns=70)),
         each(normal(1000, 100), normal(100, 70), normal(70)), relu_gemm(False),
         peer=torch_relu_gemm(False)),
    Case("gemm tile64 float64", ("gemm", dict(variant="tile64_jk", k=100, columns=70, kind="float64")),
         each(*(normal(*s, kind="float64") for s in ((1000, 100), (70, 100), (70,)))), relu_gemm(True),
         output="float64", tolerance=1e-13, scratch_bytes=36 * 1024),
    Case("gemv rows 4096x9216", ("gemv", dict(variant="rows", k=9216, units=4096)),
         each(normal(1, 9216), normal(4096, 9216), normal(4096)), lambda x, w, b: x @ w.T + b, batch=False,
         peer=lambda t, x, w, b: t.addmm(b, x, w.T)),
    Case("gemv rows odd 3x30x100", ("gemv", dict(variant="rows", k=30, units=100, batch=3,
         kind="float64")), each(*(normal(*s, kind="float64") for s in ((3, 30), (100, 30), (100,)))),
         lambda x, w, b: x @ w.T + b, batch=False, output="float64", tolerance=1e-13, tasks=7),
    Case("gemv block 10x9216", ("gemv", dict(variant="block", k=9216, units=10)),
         each(normal(1, 9216), normal(10, 9216), normal(10)), lambda x, w, b: x @ w.T + b, batch=False,
         tasks=10, peer=lambda t, x, w, b: t.addmm(b, x, w.T)),
    Case("conv tile 64x64x32", ("conv", dict(variant="tile", channels=64, outputs=64, size=32)),
         each(normal(64, 32, 32), normal(64, 64, 3, 3), normal(64)), conv3x3, batch=False,
         peer=lambda t, x, w, b: t.relu(t.conv2d(x[None], w, b, padding=1))),
    Case("conv split 64x64x8", ("conv", dict(variant="split", channels=64, outputs=64, size=8)),
         each(normal(64, 8, 8), normal(64, 64, 3, 3), normal(64)), conv3x3, batch=False,
         peer=lambda t, x, w, b: t.relu(t.conv2d(x[None], w, b, padding=1))),
    forest_case("staged", 5000, 28, 50, 8, GROUP=8, ROWS_PER_THREAD=2),
    forest_case("staged", 777, 64, 30, 6, columns=3, width=3, GROUP=8, ROWS_PER_THREAD=2),
    forest_case("staged_wide", 1000, 28, 51, 5, columns=3, kind="float64", GROUP=1, ROWS_PER_THREAD=1),
    forest_case("trees", 1, 28, 500, 8, scratch=8 * 500 * 8),
    forest_case("trees", 100, 28, 500, 8, columns=3, scratch=8 * 500 * 8),
    forest_case("direct", 1000, 784, 20, 6, columns=3, scratch=0),
]  # fmt: skip


@dataclass(frozen=True)
class Recurrence:
    """A stack of LSTMs, each layer's weights resident in the shared memory of 13 vEUs (W6)."""

    variant: str
    threads: int
    resident: int
    literals: Mapping[str, int] = field(default_factory=dict[str, int])
    pinned: bool = True

    @property
    def name(self) -> str:
        """A line in the table."""
        given = " ".join(f"{k}={v}" for k, v in self.literals.items())
        kept = "in shared memory" if self.pinned else "in global memory"
        loads = "ld.shared" if self.resident else "generic loads"
        return (
            f"LSTM 10x256, 100 steps, {self.variant} {given} threads={self.threads} {kept} {loads}"
        )

    @property
    def scratch_bytes(self) -> int:
        """Two buffers of the rows of a pass."""
        lanes = self.literals.get("LANES", int(self.variant.removeprefix("lanes")))
        return 2 * self.literals.get("PASS", 5) * (self.threads // lanes) * 4

    def program(self) -> Program:
        """The schedule: cell (layer, step) in wave layer + step, after its two neighbours."""
        weights = 4 * UNITS * UNITS * 4
        bias, state = 4 * UNITS * 4, UNITS * 4
        layer_bytes = 2 * weights + bias
        constants = (("weights", 0, LAYERS * layer_bytes), ("zero", LAYERS * layer_bytes, state))
        zero = Operand(CONSTANTS, LAYERS * layer_bytes)
        cut = [UNITS * t // TASKS for t in range(TASKS + 1)]
        row = 4 * UNITS * 4
        starts = tuple(u * row for u in cut[:-1])
        sizes = tuple((b - a) * row for a, b in itertools.pairwise(cut))
        room = -(-max(sizes) // 16) * 16
        pinned = (
            (Pinned(2, 0, starts, sizes), Pinned(3, room, starts, sizes)) if self.pinned else ()
        )
        number: dict[tuple[int, int], int] = {}
        appends: list[Appended] = []
        for wave in range(LAYERS + STEPS - 1):
            for layer in range(max(0, wave - STEPS + 1), min(LAYERS, wave + 1)):
                step = wave - layer
                number[layer, step] = len(appends)
                waits = tuple(
                    number[n] for n in ((layer - 1, step), (layer, step - 1)) if n in number
                )
                at = layer * layer_bytes

                def place(which: int, layer: int, step: int) -> Operand:
                    return Operand(ARENA, ((which * LAYERS + layer) * STEPS + step) * state)

                below = (
                    Operand(FIRST_INPUT, step * state) if layer == 0 else place(0, layer - 1, step)
                )
                last = (layer, step) == (LAYERS - 1, STEPS - 1)
                operands = (
                    below,
                    place(0, layer, step - 1) if step else zero,
                    Operand(CONSTANTS, at),
                    Operand(CONSTANTS, at + weights),
                    Operand(CONSTANTS, at + 2 * weights),
                    place(1, layer, step - 1) if step else zero,
                    place(1, layer, step),
                    Operand(FIRST_INPUT + 1, 0) if last else place(0, layer, step),
                )
                appends.append(
                    Appended(0, TASKS, layer * TASKS, TASKS, wave, waits, operands, pinned)
                )
        ports = (Port("x", "float32", (STEPS, UNITS)),), (Port("h", "float32", (UNITS,)),)
        return Program(
            "h200",
            VEUS,
            self.threads,
            (2 * room if self.pinned else 0) + aligned(self.scratch_bytes),
            *ports,
            2 * LAYERS * STEPS * state,
            0,
            LAYERS * layer_bytes + state,
            constants,
            ("lstm",),
            tuple(appends),
            MODES,
            "not from IR",
        ).sealed()

    @staticmethod
    def data() -> tuple[Array, dict[str, Array]]:
        """(x, constants): per layer W and U (unit, gate, k) and the bias (unit, gate)."""
        rng = np.random.default_rng(11)
        layer = 2 * 4 * UNITS * UNITS + 4 * UNITS
        weights = (rng.standard_normal((LAYERS, layer)) / 16).astype(np.float32)
        x = rng.standard_normal((STEPS, UNITS)).astype(np.float32)
        return x, {"weights": weights, "zero": np.zeros(UNITS, np.float32)}

    @staticmethod
    def expected() -> Array:
        """The last hidden state in float64."""
        x, constants = Recurrence.data()
        sequence = x.astype(np.float64)
        size = 4 * UNITS * UNITS
        for flat in constants["weights"].astype(np.float64):
            w, u = (
                flat[:size].reshape(UNITS, 4, UNITS),
                flat[size : 2 * size].reshape(UNITS, 4, UNITS),
            )
            bias = flat[2 * size :].reshape(UNITS, 4)
            h = c = np.zeros(UNITS)
            states: list[Array] = []
            for value in sequence:
                gates = w @ value + u @ h + bias
                i, f, o = (1 / (1 + np.exp(-gates[:, g])) for g in (0, 1, 3))
                c = f * c + i * np.tanh(gates[:, 2])
                h = o * np.tanh(c)
                states.append(h)
            sequence = np.array(states)
        return sequence[-1]


RECURRENCES = [
    Recurrence("lanes16", 256, 0),
    Recurrence("lanes16", 256, 1),
    Recurrence("lanes16", 256, 0, {}, pinned=False),
    Recurrence("lanes32", 256, 1),
    Recurrence("lanes16", 256, 1, {"LANES": 8, "PASS": 3}),
    Recurrence("lanes16", 512, 1, {"PASS": 3}),
    Recurrence("lanes32", 512, 1),
]
