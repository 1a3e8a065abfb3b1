"""Products and convolutions on tensor cores, on a GPU: random shapes and data of any magnitude."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import irkit
from benchmarks.products import Case, Job, program
from irkit.bfloat16 import dtype_of
from irkit.dialects.packed_terms import SCALED, packed
from irkit.dialects.precision import Precision, rounded
from irkit.model_info import ModelInfo
from irkit.rkernels import registry
from irkit.rkernels.cuda import product_held
from irkit.runtime.cuda.availability import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

TENSOR_CORES = [
    k.name
    for k in registry.registered("cuda")
    if k.name.startswith(("product.mma", "product.wgmma", "product.packed"))
]
HALVES = [n for n in TENSOR_CORES if n.endswith("_halves")]
BFLOAT16 = dtype_of("bfloat16")
WORDS = [n for n in TENSOR_CORES if n.endswith("_words")]
MMA = [n for n in TENSOR_CORES if n not in (*HALVES, *WORDS)]
# Registers hold no more sums of parts.
SCALABLE = [n for n in MMA if n.startswith("product.packed") and "256" not in n]
PACKED_IN_CLUSTERS = [n for n in MMA if "_by" in n]
# Of matrices in memory alone.
HELD = {f"product.{name}": tile for name, tile in product_held.TILES.items()}
# Registers do not hold more sums of parts.
HELD_IN_PARTS = [n for n, tile in HELD.items() if tile["SHARED"] <= 64]
BOXES = [k.name for k in registry.registered("cuda") if k.name.startswith("product.boxes")]
BOXES_OF_WORDS = [n for n in BOXES if n.endswith("_words")]
BOXES_OF_HALVES = [n for n in BOXES if n not in BOXES_OF_WORDS]


def any_case(number: int) -> Case:
    """A product, laid out either way, or a convolution."""
    draw = random.Random(number)
    m, k, n = (draw.choice([draw.randint(8, 40), draw.randint(40, 300)]) for _ in range(3))
    if number % 3 < 2:
        transposed = number % 3 == 1
        return Case("random", (m, k), (n, k) if transposed else (k, n), transposed=transposed)
    channels, size, kernel = draw.randint(1, 40), draw.randint(5, 20), draw.choice([1, 3, 5])
    x = (draw.randint(1, 3), channels, size, size)
    return Case("random", x, (m, channels, kernel, kernel), stride=draw.randint(1, 2))


def ran(case: Case, precision: str, rkernel: str, x: Any, w: Any, terms: str = "") -> Any:
    """What the rKernel makes of it; None if it cannot compute the case."""
    from irkit.runtime.cuda.executor import CudaExecutor

    made = program(Job(case, precision, "cuda", rkernel, terms))
    if made is None:
        return None
    info = ModelInfo.from_json(made.artifact.info)
    executor = CudaExecutor.from_artifact(made.artifact, info, "per-op")
    given = [x, w, np.zeros(case.y[1], x.dtype)][: len(executor.program.inputs)]
    return executor.run(given)[0]


def windows(case: Case, x: Any) -> Any:
    """The matrix [outputs, terms] that a convolution multiplies by its weights."""
    kernel, pad = case.w[2], case.w[2] // 2
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
    seen = seen[:, :, :: case.stride, :: case.stride].transpose(0, 2, 3, 1, 4, 5)
    return seen.reshape(-1, case.w[1] * kernel * kernel)


def factors(case: Case, x: Any, w: Any) -> tuple[Any, Any]:
    """The matrices whose product it is."""
    if case.conv:
        return windows(case, x), w.reshape(len(w), -1).T
    return x, w.T if case.transposed else w


def as_matrix(case: Case, y: Any) -> Any:
    """The answer as that product has it."""
    return y.transpose(0, 2, 3, 1).reshape(-1, case.w[0]) if case.conv else y


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16", "f16"])
@pytest.mark.parametrize("number", range(len(MMA)))
def test_tensor_cores_are_as_exact_as_they_say(number: int, precision: str) -> None:
    # One in three is a convolution, which packed products are not for.
    tried = [
        right(any_case(number + later), precision, rkernel, number)
        for rkernel in (MMA[number], MMA[number - 3])
        for later in (0, 1)
    ]
    assert any(tried)


def right(case: Case, precision: str, rkernel: str, seed: int, terms: str = "") -> bool:
    """Whether the rKernel can compute a case: its answer is looked at then."""
    rng = np.random.default_rng(seed)
    # Rows of magnitudes far apart; float16 has none of them.
    scale = 1.0 if precision == "f16" else 10.0 ** rng.integers(-12, 12)
    x, w = ((rng.standard_normal(s) * scale).astype(np.float32) for s in (case.x, case.w))
    pair = factors(case, x, w)
    given = [rounded(f, Precision(precision)).astype(np.float64) for f in pair]
    want, size = given[0] @ given[1], abs(given[0]) @ abs(given[1])
    y = ran(case, precision, rkernel, x, w, terms)
    if y is None:
        return False
    # A sum of k terms in float32 may be off by k units in the last place; these are by fewer.
    assert (abs(as_matrix(case, y) - want) <= 3e-6 * size).all(), rkernel
    return True


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("rkernel", PACKED_IN_CLUSTERS)
@pytest.mark.parametrize("number", range(4))
def test_clusters_share_tiles_of_packed_terms(number: int, rkernel: str, precision: str) -> None:
    draw = random.Random(number)
    m, k, n = draw.randint(8, 300), draw.randint(800, 2000), draw.randint(8, 300)
    w = (n, k) if number % 2 else (k, n)
    case = Case("random", (m, k), w, transposed=number % 2 == 1)
    assert right(case, precision, rkernel, number)


def wide(kind: int, rng: Any, shape: tuple[int, int]) -> Any:
    """Rows of numbers whose magnitudes are near one another or not, in a row or from row to row."""
    x = rng.standard_normal(shape)
    match kind:
        case 1:
            x = np.abs(x)
        case 2:
            x *= np.exp(3 * rng.standard_normal(shape))
        case 3:
            x *= 10.0 ** rng.integers(-12, 12, (shape[0], 1))
        case 4:
            # What is large meets zeros, so that the rest is the answer.
            x = np.where(np.arange(shape[1]) % 2, x * 1e-13, x)
        case 5:
            x = np.exp(9 * x - 40)
        case _:
            pass
    return x.astype(np.float32)


@pytest.mark.parametrize("kind", range(6))
@pytest.mark.parametrize("rkernel", SCALABLE)
def test_scaled_rows_are_as_exact_as_plain_sums(rkernel: str, kind: int) -> None:
    number = 6 * SCALABLE.index(rkernel) + kind
    draw, rng = random.Random(number), np.random.default_rng(number)
    m, k, n = draw.randint(8, 300), draw.randint(700, 3000), draw.randint(8, 300)
    x, w = wide(kind, rng, (m, k)), wide(kind, rng, (n, k))
    if kind == 4:
        w[:, ::2] = 0
    want, size = (f(x.astype(np.float64)) @ f(w.T.astype(np.float64)) for f in (np.asarray, abs))
    transposed = number % 2 == 1
    case = Case("random", x.shape, w.shape if transposed else w.T.shape, transposed=transposed)
    y = ran(case, "float32", rkernel, x, w if transposed else np.ascontiguousarray(w.T), SCALED)
    plain = np.zeros_like(want, np.float32)
    for term in range(k):
        plain += x[:, term, None] * w[None, :, term]
    off, most = abs(y - want) / size, (abs(plain - want) / size).max()
    assert off.max() <= max(1.25 * most, 2e-7), (off.max(), most)


@pytest.mark.parametrize("by_k", [True, False])
@pytest.mark.parametrize(
    ("rows", "terms"),
    [(9, 70), (300, 256), (77, 500), (40, 3001), (1100, 130), (3000, 200), (5000, 64)],
)
def test_rows_are_scaled_and_cut_as_the_interpreter_does(rows: int, terms: int, by_k: bool) -> None:
    x = wide(2, np.random.default_rng(rows), (rows, terms) if by_k else (terms, rows))
    x[0], x[5, 3], x[7, 2], x[3, 1] = 0, np.inf, -np.inf, np.nan
    want = packed(x, SCALED, terms, by_k)
    sizes = ["x".join(str(n) for n in a.shape) for a in (x, want)]
    types = f"tensor<{sizes[0]}xf32>", f"tensor<{sizes[1]}xf16>"
    how = f'precision = "scaled", terms = {int(by_k)} : i64, depth = {terms} : i64'
    module = irkit.parse(
        f"""func.func @main(%x: {types[0]}) -> {types[1]} {{
      %p = te.pack %x {{{how}}} : ({types[0]}) -> {types[1]}
      func.return %p : {types[1]}
    }}"""
    )
    (got,) = irkit.compile(module, target="cuda").run([x])
    np.testing.assert_array_equal(got[:-1], want[:-1])
    # What terms have lost is summed in another order.
    np.testing.assert_allclose(got[-1].view("f4"), want[-1].view("f4"), rtol=1e-5)


@pytest.mark.parametrize(
    ("precision", "terms"), [("float32", ""), ("float32", SCALED), ("tf32", "")]
)
@pytest.mark.parametrize("rkernel", HELD)
@pytest.mark.parametrize("number", range(4))
def test_one_factor_is_held_in_registers(
    number: int, rkernel: str, precision: str, terms: str
) -> None:
    draw = random.Random(number)
    m, k, n = draw.randint(1, 300), 4 * draw.randint(60, 400), draw.randint(8, 100)
    w = (4 * n + 3, k) if number % 2 else (k, 4 * n)
    case = Case("random", (m, k), w, transposed=number % 2 == 1)
    # In TF32 the other one's terms lie side by side.
    fits = case.transposed or not HELD[rkernel]["ROWS"]
    legal = fits if precision == "tf32" else rkernel in HELD_IN_PARTS
    if terms == SCALED:
        # Of stages, which are longer, each group of each block has one.
        legal &= -(-k // 64) >= HELD[rkernel]["BLOCKS"] * (128 // HELD[rkernel]["HELD"])
    assert right(case, precision, rkernel, number, terms) == legal


@pytest.mark.parametrize(
    ("rkernel", "terms"),
    [(n, "") for n in (*PACKED_IN_CLUSTERS, *HELD_IN_PARTS)]
    + [(n, SCALED) for n in (*SCALABLE, *HELD_IN_PARTS)],
)
def test_what_a_block_of_a_cluster_is_in_doubt_about_is_summed_anew(
    rkernel: str, terms: str
) -> None:
    case = Case("special", (40, 900), (900, 52))
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in (case.x, case.w))
    # In the first block's share of the terms, in the last one's, and between.
    x[3, 5], x[7, 880], x[9, 400], x[11, 3] = np.inf, -np.inf, np.nan, np.finfo(np.float32).max
    x[13], w[:, 17] = 1e-42, 1e30
    with np.errstate(all="ignore"):
        want = (x.astype(np.float64) @ w.astype(np.float64)).astype(np.float32)
    y = ran(case, "float32", rkernel, x, w, terms)
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rkernel", WORDS)
@pytest.mark.parametrize("number", range(4))
def test_terms_side_by_side_are_rounded_where_they_lie(number: int, rkernel: str) -> None:
    draw = random.Random(number)
    m, k, n = draw.randint(8, 300), 4 * draw.randint(1, 70), draw.randint(8, 300)
    case = Case("random", (m, k), (n, k), transposed=True)
    if number % 2:
        # So many images have their channels side by side.
        channels, size, kernel = 4 * draw.randint(1, 10), draw.randint(5, 15), draw.choice([1, 3])
        case = Case("random", (9, channels, size, size), (n, channels, kernel, kernel))
    assert right(case, "tf32", rkernel, number)


@pytest.mark.parametrize("rkernel", BOXES_OF_WORDS)
@pytest.mark.parametrize("number", range(3))
def test_boxes_are_rounded_on_their_way(number: int, rkernel: str) -> None:
    draw = random.Random(number)
    # Blocks that share a tile have a stage each.
    least = 9 if "_by" in rkernel else 4
    m, k, n = draw.randint(8, 300), 4 * draw.randint(least, 70), draw.randint(8, 300)
    assert right(Case("random", (m, k), (n, k), transposed=True), "tf32", rkernel, number)


@pytest.mark.parametrize("rkernel", BOXES_OF_WORDS)
def test_what_is_no_number_stays_none_on_its_way(rkernel: str) -> None:
    case = Case("special", (64, 96), (64, 96), transposed=True)
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in (case.x, case.w))
    x[3, 5], x[7, 1], x[9, 2] = np.inf, -np.inf, np.nan
    # NaN whose marks are among the bits that are rounded off, of either sign.
    x[11, 3] = np.uint32(0x7F800001).view(np.float32)
    x[12, 3] = np.uint32(0xFF801FFF).view(np.float32)
    y = ran(case, "tf32", rkernel, x, w)
    with np.errstate(all="ignore"):
        want = x.astype(np.float64) @ w.T.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(y), np.isinf(want))


@pytest.mark.parametrize("rkernel", [*HELD_IN_PARTS, *(n for n in MMA if "256" not in n)])
def test_values_that_cannot_be_split_come_out_as_of_plain_sums(rkernel: str) -> None:
    # Terms enough for the groups of all blocks of a cluster, where these share a tile.
    terms = 288 if "_by" in rkernel else 96
    case = Case("special", (64, terms), (terms, 64))
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in (case.x, case.w))
    x[3, 5], x[7, 1], x[9, 2], x[11, 3] = np.inf, -np.inf, np.nan, np.finfo(np.float32).max
    x[13], x[14] = 1e-42, 3e-39
    w[:, 17], w[5, 20] = 1e30, 0.0
    with np.errstate(all="ignore"):
        want = (x.astype(np.float64) @ w.astype(np.float64)).astype(np.float32)
        size = (abs(x).astype(np.float64) @ abs(w).astype(np.float64)).astype(np.float64)
    y = ran(case, "float32", rkernel, x, w)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(want))
    infinite = np.isinf(want)
    np.testing.assert_array_equal(y[infinite], want[infinite])
    finite = np.isfinite(want)
    assert (
        abs(y[finite].astype(np.float64) - want[finite]) <= 3e-6 * size[finite] + terms * 1.4e-45
    ).all()


@pytest.mark.parametrize("terms", [576, 20000])
@pytest.mark.parametrize(
    "rkernel", [*HELD_IN_PARTS, *(n for n in MMA if ".mma" not in n and "256" not in n)]
)
def test_sums_of_parts_are_not_drawn_towards_zero(rkernel: str, terms: int) -> None:
    case = Case("long", (128, terms), (terms, 96))
    rng = np.random.default_rng(terms)
    x = np.maximum(rng.standard_normal(case.x), 0).astype(np.float32)
    w = rng.standard_normal(case.w).astype(np.float32)
    want, plain = x.astype(np.float64) @ w.astype(np.float64), np.zeros(case.y, np.float32)
    for k in range(terms):
        plain += x[:, k : k + 1] * w[k : k + 1]
    y = ran(case, "float32", rkernel, x, w)
    off, size = y.astype(np.float64) - want, np.linalg.norm(want)
    assert np.linalg.norm(off) <= np.linalg.norm(plain - want)
    # What cutting one sum to 24 bits leaves out of it on average.
    assert abs((off * want).sum()) <= 4.3e-8 * size**2


@pytest.mark.parametrize("rkernel", [*HALVES, *BOXES_OF_HALVES])
@pytest.mark.parametrize("number", range(6))
def test_products_of_16_bit_floats_are_exact_but_for_rounding_the_result(
    rkernel: str, number: int
) -> None:
    draw = random.Random(number)
    least = 17 if "_by" in rkernel else 2 if rkernel in BOXES else 1
    m, k, n = draw.randint(8, 300), 8 * draw.randint(least, 70), draw.randint(8, 300)
    transposed, precision = bool(number % 2), ("float32", "bf16")[number // 2 % 2]
    kind = BFLOAT16 if number % 3 else np.dtype(np.float16)
    if kind is not BFLOAT16 and precision == "bf16":
        precision = "f16"
    n = n if transposed else 8 * -(-n // 8)
    element = "bf16" if kind is BFLOAT16 else "f16"
    w_shape = (n, k) if transposed else (k, n)
    case = Case("random", (m, k), w_shape, transposed=transposed, element=element)
    rng = np.random.default_rng(number)
    x, w = (rng.standard_normal(s).astype(np.float32).astype(kind) for s in (case.x, case.w))
    y = ran(case, precision, rkernel, x, w)
    if y is None:
        assert precision == "float32"
        # Registers hold no second set of so many sums.
        assert "256" in rkernel or "128x128_fed" in rkernel
        return
    left, right = factors(case, x.astype(np.float64), w.astype(np.float64))
    want, size = left @ right, abs(left) @ abs(right)
    unit = 2.0**-8 if kind is BFLOAT16 else 2.0**-11
    off = abs(y.astype(np.float64) - want)
    assert (off <= unit * abs(want) + (3e-6 if precision == "float32" else 3e-5) * size).all()
