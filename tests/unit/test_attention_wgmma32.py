"""Attention of float32 by warp groups: run thread by thread on a CPU, and built for a GPU."""

from __future__ import annotations

import itertools
from typing import Any

import cuda_emulator
import numpy as np
import pytest
from test_attention_mma import attended, check, chosen, program, random_case, scheduled
from xdsl.dialects.builtin import StringAttr

from irkit.dialects.precision import PRECISION
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import int_array
from irkit.rkernels import families, registry
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.cuda import attention_wgmma32
from irkit.rkernels.families.attention import tile_blocks
from irkit.rkernels.legality import root_of
from irkit.rkernels.templates import specialise, template_source
from irkit.rkernels.work import Part

TILES = {
    "rows in groups": {"BM": 128, "BN": 32, "KG": 1, "AHEAD": 0},
    "keys in groups": {"BM": 64, "BN": 64, "KG": 2, "AHEAD": 1},
    "rows in groups, ahead": {"BM": 128, "BN": 32, "KG": 1, "AHEAD": 1},
}


FORBIDDEN = """
def forbidden(*given):
    raise AssertionError("a row that is sure")
"""


def emulated(
    arrays: list[Any], scale: float, causal: int | None, tile: str, tasks: int = 1, vector: int = 1,
    sure: bool = False,
) -> Any:  # fmt: skip
    """What the template makes of it; if `sure`, it computes no row once more."""
    text, shape = program(arrays, scale, causal, "heads")
    op, _module = scheduled(text)
    root = root_of(op)
    assert root.op is not None
    root.op.attributes[PRECISION] = StringAttr("float32")
    rkernel = registry.find("cuda", "attention.wgmma128x64_parts")
    assert rkernel.legal(root)
    op.grid = int_array(attention_wgmma32.grid_of(TILES[tile])(root, tasks))
    binder = Binder(op, root, "cuda")
    families.find("attention").bind(binder)
    # Of few keys scores are not computed ahead.
    given = {**attention_wgmma32.parameters_of(TILES[tile], root), "AHEAD": TILES[tile]["AHEAD"]}
    names = {**binder.binding.names, **{k: str(v) for k, v in given.items()}}
    names |= {"THREADS": "256", "VECTOR": str(vector)}
    names |= {"ROW": "forbidden"} if sure else {}
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    y = np.full(shape, 77, arrays[0].dtype)
    text = "\n".join([FORBIDDEN, *binder.binding.functions, *binder.binding.parts.values(), body])
    cuda_emulator.run_text(
        text, "kernel", [*arrays, y],
        int(np.prod(list(op.grid.get_values()))), 1, 256, rkernel.scratch(root, given),
    )  # fmt: skip
    return y


def drawn(seed: int, *shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


@pytest.mark.parametrize("seed", range(6))
def test_random_sizes(seed: int) -> None:
    arrays, scale, causal = random_case(seed, halves=False)
    arrays[:3] = [np.resize(a, (*a.shape[:2], -(-a.shape[2] // 4) * 4)) for a in arrays[:3]]
    if seed == 5:
        # Several blocks of keys, and of rows, and more than one plane.
        arrays = drawn(1, (1, 140, 72), (1, 150, 72), (1, 150, 100))
    got = emulated(
        arrays, scale, causal, list(TILES)[seed % 3], (1, 3)[seed // 2 % 2], sure=seed % 3 != 1
    )
    want = attended(*arrays[:3], *(arrays[3:] or [None]), scale, causal)
    check(got, want, 1e-6)


def test_what_is_not_aligned() -> None:
    arrays = drawn(3, (1, 3, 8), (1, 5, 8), (1, 5, 8))
    got = emulated(arrays, 0.4, 2, "rows in groups", vector=0)
    check(got, attended(*arrays, None, 0.4, 2), 1e-6)


def compared(arrays: list[Any], tile: str, scale: float = 1.0, causal: int | None = None) -> None:
    """Element by element, however small they are, beside the sum of what is weighed without signs."""
    got = emulated(arrays, scale, causal, tile).astype(np.float64)
    q, k, v, *mask = arrays
    with np.errstate(all="ignore"):
        want = attended(q, k, v, *(mask or [None]), scale, causal)
        size = attended(q, k, abs(v), *(mask or [None]), scale, causal)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    finite = np.isfinite(want)
    assert finite.sum() > 20
    assert (abs(got[finite] - want[finite]) <= 5e-6 * size[finite] + 2e-45).all()


@pytest.mark.parametrize("tile", list(TILES))
def test_what_cannot_be_split_comes_out_as_of_plain_sums(tile: str) -> None:
    """Infinities, NaN, the largest and the least values, and rows that see nothing."""
    q, k, v = drawn(3, (1, 9, 8), (1, 20, 8), (1, 20, 8))
    q[0, 1, 2], q[0, 2, 0], q[0, 3] = np.inf, np.nan, 1e-38
    q[0, 4] = 0
    k[0, 7, 3] = -np.inf
    v[0, 5, 1], v[0, 6, 2], v[0, :, 4], v[0, :, 5] = np.inf, 3e38, 1e-41, 1e-36
    mask = np.ones((9, 20), bool)
    mask[6] = False
    compared([q, k, v, mask], tile)


@pytest.mark.parametrize("tile", list(TILES))
@pytest.mark.parametrize("what", ["values", "keys", "queries"])
def test_one_that_is_far_larger_than_its_block(what: str, tile: str) -> None:
    q, k, v = drawn(4, (1, 9, 8), (1, 80, 8), (1, 80, 8))
    # Blocks that are larger than any before are cut once more; such small ones as these are sure.
    grown = np.exp2(np.arange(80) // 16, dtype=np.float32)[:, None]
    got = emulated([q, k / 64 * grown, v * grown], 0.4, None, tile, sure=True)
    check(got, attended(q, k / 64 * grown, v * grown, None, 0.4), 1e-6)
    of = {"values": v, "keys": k, "queries": q}[what]
    of[0, 3, 1] = 1e12 if what == "values" else 3e7
    v[0, :, 5] *= np.float32(1e-9)
    # That key is not seen, and some are.
    k[0, 3, 0], q[0, :, 0] = -40, 3
    compared([q, k, v], tile, causal=None if what == "values" else 10)


@pytest.mark.parametrize("tile", list(TILES))
def test_weights_that_are_far_smaller_than_the_largest(tile: str) -> None:
    """Values that are 1 for one key and 0 for others show the weights themselves."""
    q, k, v = (np.zeros((1, n, 8), np.float32) for n in (3, 40, 40))
    q[0, :, 0] = 1
    k[0, :, 0] = -2.0 * np.arange(40)
    v[0, np.arange(40), np.arange(40) % 8] = 1
    v[0, 8:, 7] = 0
    v[0, 30, 7] = 2.0**70
    compared([q, k, v], tile)


@pytest.mark.parametrize("scale", [1e-3, 1e3, 1e6])
def test_scores_of_any_size(scale: float) -> None:
    q, k, v = drawn(5, (1, 9, 8), (1, 20, 8), (1, 20, 8))
    # Rounded, so that scores are exact.
    q, k = (np.round(4 * a) for a in (q, k))
    compared([q, k, v], "keys in groups", scale)


def test_tiny_queries_keys_and_values() -> None:
    q, k, v = drawn(6, (1, 9, 8), (1, 20, 8), (1, 20, 8))
    compared(
        [q * np.float32(1e-30), k * np.float32(1e-40), v * np.float32(1e-39)], "keys in groups"
    )
    compared([q * np.float32(1e20), k * np.float32(1e-20), v * np.float32(1e30)], "keys in groups")


def root_for(keys: int, size: int, causal: int | None = None) -> Root:
    """Of twelve heads of as many queries as keys."""
    arrays = [np.empty((12, keys, size), np.float32)] * 3
    op, _module = scheduled(program(arrays, size**-0.5, causal, "heads")[0])
    return root_of(op)


def test_scores_are_computed_ahead_where_there_are_many_keys_and_registers() -> None:
    def ahead(variant: str, keys: int, size: int) -> int:
        tile = attention_wgmma32.VARIANTS[variant]
        return attention_wgmma32.parameters_of(tile, root_for(keys, size))["AHEAD"]

    assert ahead("wgmma128x64_parts", 1000, 64) == 1
    assert ahead("wgmma128x64_parts", 500, 64) == ahead("wgmma128x64_parts", 1000, 80) == 0
    assert ahead("wgmma64x64_parts", 1000, 64) == 0


def test_a_last_tile_of_few_rows_is_worth_a_part_of_its_own() -> None:
    """Parts of 187 rows are done before parts of 256, of which there are fewer."""
    variants = attention_wgmma32.VARIANTS
    grid = attention_wgmma32.grid_of(variants["wgmma128x64_parts"])
    assert grid(root_for(2048, 64), 132) == [12, 11, 1]
    assert grid(root_for(1024, 64), 132) == [12, 8, 1]
    # Where the last rows see the most, the others go along with those that see few.
    assert grid(root_for(4096, 64, 0), 132) == [12, 32, 1]


def test_tiles_see_the_keys_of_their_last_rows() -> None:
    def blocks(keys: int, causal: int | None, parts: int, height: int) -> list[int]:
        return tile_blocks(Part(root_for(keys, 8, causal), [12, parts, 1]), height, 64)

    assert blocks(77, None, 5, 16) == [2]
    assert blocks(77, 0, 5, 16) == [2]
    assert blocks(256, 0, 2, 64) == [3, 4]
    assert blocks(256, -256, 1, 128) == [0, 0]


@pytest.mark.parametrize(
    ("variant", "size", "keys"),
    [
        *itertools.product(attention_wgmma32.VARIANTS, (64, 80, 128), (512,)),
        ("wgmma128x64_parts", 64, 1024),
    ],
)
@pytest.mark.parametrize("causal", [None, 0])
def test_it_becomes_a_cubin_without_spills(
    variant: str, size: int, keys: int, causal: int | None
) -> None:
    pytest.importorskip("numba_cuda")
    from irkit.runtime.cuda import compiling, ptx

    if variant == "wgmma64x128_parts" and size > 64:
        pytest.skip("more than shared memory has room for")
    arrays = [np.empty((12, keys, size), np.float32)] * 3
    text = program(arrays, size**-0.5, causal, "heads")[0]
    source = chosen(text, registry.find("cuda", f"attention.{variant}"))
    compiled = compiling.compile_module_with_ptx(source, ["op_0"], 256, "sm_90a")
    resources = compiled.resources()["op_0"]
    assert resources["spill_stores"] == resources["spill_loads"] == 0
    # A division without a call is of float64.
    assert (
        ptx.warnings(compiled.ptx, double_expected=True) == ptx.forbidden_forms(compiled.ptx) == []
    )
    assert "k16.f32.f16.f16" in compiled.ptx
    assert "wgmma.mma_async" in compiled.ptx
    assert "serial" not in compiled.log
    assert "C75" not in compiled.log
