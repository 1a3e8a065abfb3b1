"""The CUDA templates compute the right thing, as emulated thread by thread."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cuda_samples as cs
import numpy as np
import pytest
from cuda_emulator import run
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64

from irkit.dialects.forest_base import forest_sums
from irkit.dialects.heap_nodes import heap_nodes, unpacked_heap
from irkit.dialects.packed_nodes import NODE_WORDS, packed_nodes, unpacked_nodes
from irkit.rkernels import registry
from irkit.rkernels.cuda import cell_rows

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import gpu_cases as cases

RNG = np.random.default_rng(3)


def real(*shape: int, kind: str = "float32") -> Any:
    """Random numbers."""
    return RNG.standard_normal(shape).astype(kind)


def forest(rows: int, *shape: int, kind: str = "float32") -> list[Any]:
    """Operands of a perfect forest: features, trees, depth, columns, width."""
    return cases.random_forest(rows, *shape, kind)(RNG)


def linked(rows: int, *shape: int, kind: str = "float32") -> list[Any]:
    """The same trees, node by node with child pointers, each tree's leaves behind its nodes."""
    x, feature, threshold, nan_left, value, output, base = forest(rows, *shape, kind=kind)
    trees, inner = feature.shape
    width, count = value.shape[2], 2 * inner + 1
    root = (np.arange(trees) * count).astype(np.int32)
    own = np.arange(trees * count, dtype=np.int32).reshape(trees, count)
    left, right = own.copy(), own.copy()
    left[:, :inner], right[:, :inner] = own[:, 1::2], own[:, 2::2]

    def padded(nodes: Any) -> Any:
        return np.pad(nodes, [(0, 0), (0, inner + 1)]).reshape(-1)

    values = np.zeros((trees, count, width))
    values[:, inner:] = value
    nodes = padded(feature), padded(threshold), left.ravel(), right.ravel(), padded(nan_left)
    return [x, *nodes, values.reshape(-1, width), root, output, base]


def packed(rows: int, *shape: int, kind: str = "float32") -> list[Any]:
    """The same, by nodes of 16 bytes."""
    x, feature, threshold, left, right, nan_left, value, root, output, base = linked(
        rows, *shape, kind=kind
    )
    found = packed_nodes(feature, threshold, left, right, nan_left, root)
    assert found is not None
    return [x, found.nodes.reshape(-1), value[found.source], found.root, output, base]


def heap(rows: int, *shape: int) -> list[Any]:
    """The perfect trees, by nodes of 8 bytes."""
    x, feature, threshold, nan_left, *others = forest(rows, *shape)
    return [x, heap_nodes(feature, threshold, nan_left.astype(bool)).reshape(-1), *others]


def walk_heap(x: Any, nodes: Any, value: Any, *others: Any) -> Any:
    """The meaning of `te.heap_forest`."""
    trees, slots, _ = value.shape
    return cases.walk(x, *unpacked_heap(nodes.reshape(trees, slots, 2)), value, *others)


def walk_packed(x: Any, nodes: Any, value: Any, root: Any, output: Any, base: Any) -> Any:
    """The meaning of `te.packed_forest`."""
    op = SimpleNamespace(comparison=StringAttr("le"), depth=IntegerAttr(9, i64))
    trees = unpacked_nodes(nodes.reshape(-1, NODE_WORDS), x.dtype)
    return forest_sums(op, x, *trees, value, root, output, base)


def walk_linked(x: Any, *arrays: Any) -> Any:
    """`cases.walk` of the perfect trees that `linked` was made of."""
    feature, threshold, _, _, nan_left, value, root, output, base = arrays
    trees = len(root)
    inner = len(feature) // trees // 2

    def nodes(array: Any) -> Any:
        return array.reshape(trees, -1)[:, :inner]

    leaves = value.reshape(trees, -1, value.shape[1])[:, inner:]
    return cases.walk(x, nodes(feature), nodes(threshold), nodes(nan_left), leaves, output, base)


def halves(x: Any) -> Any:
    """Half the sum of the last dimension."""
    return x.sum(-1) / 2


def half_norm(x: Any) -> Any:
    """A layer normalisation; `cases` has one twice as large."""
    return cases.layer_norm(x) / 2


def dots(x: Any, w: Any, b: Any) -> Any:
    """x times the rows of w, plus b."""
    return x @ w.T + b


def odd_rows(rows: int, columns: int) -> Any:
    """Rows of one element that counts, with a NaN, with an infinity, of nothing but -inf, and as usual."""
    x = real(rows, columns)
    x[0] = -np.inf
    x[0, columns - 3] = 1.5
    x[1, 5] = np.nan
    x[2, 7] = np.inf
    x[3] = -np.inf
    return x


def quietly(of: Callable[..., Any]) -> Callable[..., Any]:
    """Without warnings of what is no number."""

    def run(*arrays: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return of(*arrays)

    return run


Check = tuple[cs.Sample, list[Any], Callable[..., Any], int, int]
gemm = cases.relu_gemm
SMALL = dict(BM=16, BN=16, BK=8)

CHECKS: dict[str, Check] = {
    "map": (cs.elementwise(7), [real(11, 7), real(7)], lambda x, y: np.tanh(x) + y, 3, 11),
    "map fetched": (cs.fetched(7), [real(90, 7), real(7)], lambda x, y: np.tanh(x) + y, 2, 90),
    **{
        f"map fours {columns} {rows} {two} {vector}": (
            cs.fetched(columns, "fours", two, vector), [real(rows, columns), real(columns)],
            lambda x, y: np.tanh(x) + y, 2, rows,
        )
        for columns, rows, two, vector in (
            (4, 1, 1, 1), (12, 90, 1, 1), (12, 90, 0, 1), (8, 131, 1, 0), (7, 33, 1, 1)
        )
    },
    "reduce": (cs.reduce("reduce", "thread", 3, 9), [real(5, 3, 9)], halves, 2, 5),
    "pool_warp": (cs.reduce("pool", "warp", 3, 70), [real(5, 3, 70)], halves, 2, 5),
    "pool_warp_short": (cs.reduce("pool", "warp", 3, 5), [real(5, 3, 5)], halves, 2, 5),
    "reduce_block": (cs.reduce("reduce", "block", 2, 150), [real(3, 2, 150)], halves, 2, 3),
    "reduce_block_short": (cs.reduce("reduce", "block", 2, 37), [real(3, 2, 37)], halves, 2, 3),
    **{
        f"reduce_columns {columns} {terms}": (
            cs.reduce("reduce", "columns", columns, terms), [real(3, columns, terms)], halves, 2, 3,
        )
        for columns, terms in ((3, 9), (40, 33), (5, 170), (2, 420))
    },
    "pool_warp_long": (cs.reduce("pool", "warp", 2, 700), [real(5, 2, 700)], halves, 2, 5),
    "softmax_warp": (cs.softmax("warp", 40, held=2), [real(5, 40)], cases.softmax, 2, 5),
    "softmax_block": (cs.softmax("block", 100, held=2), [real(3, 100)], cases.softmax, 2, 3),
    "softmax_long": (cs.softmax("long", 100), [real(3, 100)], cases.softmax, 2, 3),
    **{
        f"softmax_fours_long_{columns}": (
            cs.softmax("fours_long", columns), [real(3, columns)], cases.softmax, 2, 3,
        )
        for columns in (100, 1100, 2600)
    },
    "softmax_fours_long_odd": (
        cs.softmax("fours_long", 2600), [odd_rows(5, 2600)], quietly(cases.softmax), 2, 5,
    ),
    "softmax_fours": (cs.softmax("fours", 140), [real(11, 140)], cases.softmax, 2, 11),
    "softmax_fours_whole": (cs.softmax("fours", 256), [real(5, 256)], cases.softmax, 1, 5),
    "softmax_fours_apart": (cs.softmax("fours", 20, VECTOR=0), [real(5, 20)], cases.softmax, 2, 5),
    "softmax_fours_rows": (cs.softmax("fours", 20, rows=4), [real(31, 20)], cases.softmax, 2, 31),
    "softmax_fours_block": (cs.softmax("fours_block", 700, held=3), [real(5, 700)], cases.softmax, 2, 5),
    "layer_norm_warp": (cs.layer_norm("warp", 40, held=2), [real(5, 40)], cases.layer_norm, 2, 5),
    "layer_norm_block": (cs.layer_norm("block", 300, held=5), [real(3, 300)], cases.layer_norm, 2, 3),
    **{
        f"layer_norm_{variant}_{factor}_{columns}": (
            cs.layer_norm(variant, columns, held=held, rows=rows, factor=factor),
            [real(13, columns)], cases.layer_norm if factor == 2 else half_norm, 2, 13
        )
        for variant, columns, held, rows, factor in (
            ("fours", 140, 0, 1, 1), ("fours", 128, 0, 2, 2), ("fours", 20, 0, 4, 1),
            ("fours_block", 700, 3, 1, 1), ("fours_block", 256, 1, 1, 2),
        )
    },
    "layer_norm_long": (cs.layer_norm("long", 300), [real(3, 300)], cases.layer_norm, 2, 3),
    **{
        f"rms_norm_{variant}": (
            cs.layer_norm(variant, 300, centred=False, held=held), [real(3, 300)], cases.rms_norm, 2, 3
        )
        for variant, held in (("warp", 10), ("block", 5), ("long", 1), ("fours", 0), ("fours_block", 2))
    },
    "argmax": (cs.argmax(37), [np.round(real(9, 37))], lambda x: x.argmax(-1), 2, 9),
    "gemm_tile64": (cs.gemm("tile64_kj", 19, 21, **SMALL),
                    [real(20, 19), real(19, 21), real(21)], gemm(False), 2, 20),
    "gemm_tile64_jk": (cs.gemm("tile64_jk", 8, 33, **SMALL),
                       [real(17, 8), real(33, 8), real(33)], gemm(True), 1, 17),
    "gemm_tile32": (cs.gemm("tile32_jk", 19, 21, **SMALL),
                    [real(20, 19), real(21, 19), real(21)], gemm(True), 2, 20),
    "gemv_rows": (cs.gemv("rows", 600, 9), [real(1, 600), real(9, 600), real(9)], dots, 2, 1),
    "gemv_odd": (cs.gemv("rows", 30, 10, 3), [real(3, 30), real(10, 30), real(10)], dots, 3, 1),
    "gemv_block": (cs.gemv("block", 4100, 5), [real(1, 4100), real(5, 4100), real(5)], dots, 2, 1),
    "conv_tile": (cs.conv("tile", 3, 2, 5), [real(3, 5, 5), real(2, 3, 3, 3), real(2)],
                  cases.conv3x3, 3, 1),
    "conv_split": (cs.conv("split", 11, 2, 5), [real(11, 5, 5), real(2, 11, 3, 3), real(2)],
                   cases.conv3x3, 3, 1),
    "forest_staged": (cs.perfect_forest("staged", 5, 7, 3, GROUP=3),
                      forest(150, 5, 7, 3, 1, 1), cases.walk, 1, 150),
    "forest_columns": (cs.perfect_forest("staged", 5, 6, 3, columns=3, GROUP=4),
                       forest(70, 5, 6, 3, 3, 1), cases.walk, 2, 70),
    "forest_classes": (cs.perfect_forest("staged", 4, 5, 2, columns=3, width=3, GROUP=2,
                                         ROWS_PER_THREAD=1),
                       forest(70, 4, 5, 2, 3, 3), cases.walk, 2, 70),
    "forest_float64": (cs.perfect_forest("staged_wide", 5, 4, 3, x="float64"),
                       forest(20, 5, 4, 3, 1, 1, kind="float64"), cases.walk, 2, 20),
    "forest_trees": (cs.perfect_forest("trees", 5, 9, 3, columns=2),
                     forest(19, 5, 9, 3, 2, 1), cases.walk, 2, 19),
    "forest_trees_classes": (cs.perfect_forest("trees", 5, 9, 3, columns=2, width=2),
                             forest(9, 5, 9, 3, 2, 2), cases.walk, 1, 9),
    "forest_tiles": (cs.perfect_forest("tiles", 5, 70, 3, TOGETHER=4, CHUNK=32, SKEW=0, SHARE=1),
                     forest(50, 5, 70, 3, 1, 1), cases.walk, 2, 50),
    "forest_tiles_columns": (cs.perfect_forest("tiles", 40, 21, 3, columns=10, TOGETHER=2,
                                               CHUNK=8, SKEW=1, SHARE=5),
                             forest(35, 40, 21, 3, 10, 1), cases.walk, 1, 35),
    "forest_tiles_classes": (cs.perfect_forest("tiles", 5, 9, 2, columns=3, width=3, TOGETHER=4,
                                               CHUNK=8, SKEW=1, SHARE=2),
                             forest(9, 5, 9, 2, 3, 3), cases.walk, 1, 9),
    "forest_linked": (cs.forest(5, 40, 1, 1, "tiles", TOGETHER=4, CHUNK=16, SKEW=0, SHARE=1),
                      linked(50, 5, 40, 3, 1, 1), walk_linked, 2, 50),
    "forest_linked_classes": (cs.forest(5, 9, 3, 3, "tiles", TOGETHER=4, CHUNK=8, SKEW=1, SHARE=2),
                              linked(33, 5, 9, 2, 3, 3), walk_linked, 1, 33),
    "forest_linked_rows": (cs.forest(5, 9, 2, 1), linked(33, 5, 9, 2, 2, 1), walk_linked, 1, 33),
    "forest_packed": (cs.packed_forest(5, 40, 1, 1, "tiles", TOGETHER=4, CHUNK=16, SKEW=0, SHARE=1),
                      packed(50, 5, 40, 3, 1, 1), walk_packed, 2, 50),
    "forest_packed_float64": (cs.packed_forest(5, 9, 3, 3, "tiles", "float64", TOGETHER=4, CHUNK=8,
                                               SKEW=1, SHARE=2),
                              packed(33, 5, 9, 2, 3, 3, kind="float64"), walk_packed, 1, 33),
    "forest_packed_rows": (cs.packed_forest(5, 9, 3, 3), packed(33, 5, 9, 2, 3, 3), walk_packed, 1, 33),
    "forest_heap_direct": (cs.heap_forest("direct", 5, 9, 3, columns=2), heap(19, 5, 9, 3, 2, 1),
                           walk_heap, 2, 19),
    "forest_heap_trees": (cs.heap_forest("trees", 5, 9, 3, columns=2, width=2),
                          heap(9, 5, 9, 3, 2, 2), walk_heap, 1, 9),
    "forest_heap_tiles": (cs.heap_forest("tiles", 5, 37, 3, TOGETHER=4, CHUNK=16, SKEW=1, SHARE=1),
                          heap(50, 5, 37, 3, 1, 1), walk_heap, 2, 50),
    "forest_streamed": (cs.heap_forest("streamed", 5, 11, 3, GROUP=4, TOGETHER=2, ROWS_PER_THREAD=2,
                        LEAVES=2), heap(300, 5, 11, 3, 1, 1), walk_heap, 1, 300),
    "forest_streamed_columns": (cs.heap_forest("streamed", 3, 5, 1, columns=3, GROUP=2, TOGETHER=2,
                                ROWS_PER_THREAD=1, LEAVES=2), heap(70, 3, 5, 1, 3, 1), walk_heap, 2, 70),
    "forest_streamed_classes": (cs.heap_forest("streamed", 4, 5, 2, columns=3, width=3, GROUP=3,
                                TOGETHER=1, ROWS_PER_THREAD=2, LEAVES=0), heap(40, 4, 5, 2, 3, 3),
                                walk_heap, 1, 40),
    "forest_streamed_one": (cs.heap_forest("streamed", 4, 1, 4, GROUP=1, TOGETHER=1,
                            ROWS_PER_THREAD=1, LEAVES=0), heap(33, 4, 1, 4, 1, 1), walk_heap, 1, 33),
    "forest_direct": (cs.perfect_forest("direct", 5, 9, 3, columns=2),
                      forest(19, 5, 9, 3, 2, 1), cases.walk, 2, 19),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_a_template_computes_its_family(name: str) -> None:
    sample, arrays, reference, tasks, rows = CHECKS[name]
    want = reference(*arrays)
    kind = sample.pointers[-1]
    got = np.full(want.shape, -99, dtype=kind)
    run(sample, [*arrays, got], tasks, rows)
    if name.startswith(("forest", "argmax")):
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


SPREAD = [name for name, check in CHECKS.items() if registry.find("cuda", check[0].rkernel).spreads]


@pytest.mark.parametrize("name", SPREAD)
def test_blocks_share_an_rtask(name: str) -> None:
    """What several blocks write is what one does."""
    sample, arrays, reference, tasks, rows = CHECKS[name]
    got = np.full(reference(*arrays).shape, -99, dtype=sample.pointers[-1])
    want = got.copy()
    run(sample, [*arrays, want], tasks, rows)
    run(sample, [*arrays, got], tasks, rows, blocks=3)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("lanes", "turns", "tasks"), [(16, 5, 16), (8, 3, 9), (32, 2, 20)])
def test_a_cell_computes_its_gates(lanes: int, turns: int, tasks: int) -> None:
    sample = cs.lstm(LANES=lanes, PASS=turns)
    x, h, c = real(256), real(256), real(256)
    w, u, bias = real(256, 4, 256) / 16, real(256, 4, 256) / 16, real(256, 4)
    new_c, new_h = np.full(256, -99, "float32"), np.full(256, -99, "float32")
    for chosen in (0, tasks - 1):
        # Two rTasks stand for all: this is slow.
        part = cs.Sample(
            sample.rkernel,
            sample.pointers,
            sample.names,
            sample.functions.replace(
                "(256 * task) // tasks", f"(256 * {chosen}) // {tasks}"
            ).replace("(256 * (task + 1)) // tasks", f"(256 * {chosen + 1}) // {tasks}"),
            sample.overrides,
        )
        run(part, [x, h, w, u, bias, c, new_c, new_h], 1, 1)
    gates = w @ x + u @ h + bias
    i, f, o = (1 / (1 + np.exp(-gates[:, g])) for g in (0, 1, 3))
    want_c = f * c + i * np.tanh(gates[:, 2])
    done = np.r_[0 : 256 // tasks, 256 * (tasks - 1) // tasks : 256]
    np.testing.assert_allclose(new_c[done], want_c[done], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(new_h[done], (o * np.tanh(want_c))[done], rtol=1e-4, atol=1e-4)
    assert (np.delete(new_h, done) == -99).all()


TILES = [
    # height, down, lanes; rows of x, units, terms of each product; rTasks
    (4, 1, 16, 5, 7, 12, 8, 2),
    (8, 2, 8, 19, 11, 40, 24, 2),
    (4, 2, 8, 3, 7, 13, 9, 1),
]


@pytest.mark.parametrize("vector", [0, 1])
@pytest.mark.parametrize("terms", [1, 2])
@pytest.mark.parametrize("shape", TILES)
def test_a_cell_of_several_rows(shape: tuple[int, ...], terms: int, vector: int) -> None:
    height, down, lanes, rows, units, k0, k1, tasks = shape
    tile = dict(LANES=lanes, HEIGHT=height, WIDTH=5, DOWN=down, ROWS=height * down)
    tile |= dict(SPAN=64 // 32 // down * (32 // lanes) * 5, VECTOR=vector)
    sample = cs.lstm()
    functions = sample.functions.replace("256 *", f"{units} *").replace("* 256", f"* {units}")
    names = {**sample.names, "K0": k0, "K1": k1, "U": units, "B": rows, "BATCH": rows}
    name = f"recurrent_cell.{'two_terms' if terms == 2 else 'one_term'}_rows4"
    sample = cs.Sample(name, sample.pointers, names, functions, tile)
    x, h, c = real(rows, k0), real(rows, k1), real(rows, units)
    w, u, bias = real(units, 4, k0) / 6, real(units, 4, k1) / 3, real(units, 4)
    new_c, new_h = (np.full((rows, units), -99, "float32") for _ in range(2))
    run(sample, [x, h, w, u, bias, c, new_c, new_h], tasks, 1)
    gates = np.einsum("bk,ugk->bug", x, w) + bias
    if terms == 2:
        gates += np.einsum("bk,ugk->bug", h, u)
    i, f, o = (1 / (1 + np.exp(-gates[..., g])) for g in (0, 1, 3))
    want_c = f * c + i * np.tanh(gates[..., 2])
    np.testing.assert_allclose(new_c, want_c, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(new_h, o * np.tanh(want_c), rtol=1e-4, atol=1e-4)


OWN_ROWS = [
    # rows at once; rows of x, units, terms of each product; rTasks
    (1, 5, 7, 12, 8, 2),
    (1, 3, 33, 16, 32, 3),
    (2, 5, 11, 40, 24, 2),
    (4, 9, 37, 13, 9, 2),
    (4, 4, 5, 100, 33, 1),
    (1, 1, 70, 4, 4, 1),
]


@pytest.mark.parametrize("vector", [0, 1])
@pytest.mark.parametrize("terms", [1, 2])
@pytest.mark.parametrize("shape", OWN_ROWS, ids=str)
def test_a_cell_of_an_rtask_s_own_rows(shape: tuple[int, ...], terms: int, vector: int) -> None:
    height, rows, units, k0, k1, tasks = shape
    sample = cs.lstm()
    functions = sample.functions.replace("* 256", f"* {units}")
    first, last = f"{rows} * task // {tasks}", f"{rows} * (task + 1) // {tasks}"
    names = {**sample.names, "K0": k0, "K1": k1, "U": units, "FIRST": first, "LAST": last}
    given = cell_rows.parameters_of([k0, k1][:terms], height) | {"VECTOR": vector}
    name = f"cell_rows.{'two_terms' if terms == 2 else 'one_term'}_by{height}"
    sample = cs.Sample(name, sample.pointers, names, functions, given)
    x, h, c = real(rows, k0), real(rows, k1), real(rows, units)
    w, u, bias = real(units, 4, k0) / 6, real(units, 4, k1) / 3, real(units, 4)
    new_c, new_h = (np.full((rows, units), -99, "float32") for _ in range(2))
    run(sample, [x, h, w, u, bias, c, new_c, new_h], tasks, 1)
    gates = np.einsum("bk,ugk->bug", x, w) + bias
    if terms == 2:
        gates += np.einsum("bk,ugk->bug", h, u)
    i, f, o = (1 / (1 + np.exp(-gates[..., g])) for g in (0, 1, 3))
    want_c = f * c + i * np.tanh(gates[..., 2])
    np.testing.assert_allclose(new_c, want_c, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(new_h, o * np.tanh(want_c), rtol=1e-4, atol=1e-4)


def test_a_cell_over_shares_of_the_batch() -> None:
    """Where the batch is dynamic, an rTask has its rows and all units."""
    units, rows, tasks = 8, 5, 2
    sample = cs.lstm(PASS=2)
    share = "(rows * task) // tasks, (rows * (task + 1)) // tasks"
    functions = sample.functions.replace(
        "(256 * task) // tasks, (256 * (task + 1)) // tasks", "0, 8"
    )
    sample = cs.Sample(
        sample.rkernel,
        sample.pointers,
        {**sample.names, "K0": 32, "K1": 8, "U": units, "B": 0, "BATCH": share},
        functions.replace("* 256", f"* {units}"),
        sample.overrides,
    )
    x, h, c = real(rows, 32), real(rows, units), real(rows, units)
    w, u, bias = real(units, 4, 32) / 6, real(units, 4, units) / 3, real(units, 4)
    new_c, new_h = (np.full((rows, units), -99, "float32") for _ in range(2))
    run(sample, [x, h, w, u, bias, c, new_c, new_h], tasks, rows)
    gates = np.einsum("bk,ugk->bug", x, w) + np.einsum("bk,ugk->bug", h, u) + bias
    i, f, o = (1 / (1 + np.exp(-gates[..., g])) for g in (0, 1, 3))
    want_c = f * c + i * np.tanh(gates[..., 2])
    np.testing.assert_allclose(new_c, want_c, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(new_h, o * np.tanh(want_c), rtol=1e-4, atol=1e-4)
