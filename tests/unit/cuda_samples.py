"""Small CUDA modules made of one rKernel each, with fused functions written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from irkit.lower.task_to_numba import dispatch_cuda, header_cuda, walkers_cuda
from irkit.rkernels import registry
from irkit.rkernels.templates import placeholders, specialise, template_source

ROWS = """
@fused
def part(task, tasks, rows):
    return (rows * task) // tasks, (rows * (task + 1)) // tasks, 0, {columns}
"""
FIXED_ROWS = """
@fused
def part(task, tasks, rows):
    return ({rows} * task) // tasks, ({rows} * (task + 1)) // tasks, 0, {columns}
"""


@dataclass(frozen=True)
class Sample:
    """One rOperator: its rKernel, element types of its operands, literals and fused functions."""

    rkernel: str
    pointers: Sequence[str]
    names: Mapping[str, str | int]
    functions: str = ""
    overrides: Mapping[str, int] = field(default_factory=dict[str, int])
    scratch_bytes: int = 32 * 1024


def kernel_text(number: int, sample: Sample, threads: int, shared: bool = False) -> str:
    """Fused functions and specialised rKernel of a sample, named `kernel_<number>`; if `shared` that which
    several blocks run for an rTask."""
    rkernel = registry.find("cuda", sample.rkernel)
    operands = ", ".join(f"p{i}" for i in range(len(sample.pointers)))
    # Those that hang on a root are among the sample's own.
    own = {} if callable(rkernel.parameters) else rkernel.parameters
    names = {k: str(v) for k, v in {**own, **sample.overrides}.items()}
    names = {"VECTOR": "1", "RESIDENT": "0", "RANK": "0", "RANKS": "1", "READS_AHEAD": "1"} | names
    names |= {"OPERANDS": operands, "THREAD": "thread_index()", "THREADS": str(threads)}
    if shared:
        names |= walkers_cuda.shared_by_blocks(threads, "THREAD" in placeholders(rkernel))
    names |= {k: str(v) for k, v in sample.names.items()}
    functions = sample.functions.replace("OPERANDS", operands)
    for name in (
        "part",
        "units",
        "init",
        "fetch",
        "store",
        "term",
        "combine",
        "load_a",
        "load_b",
        "load",
        "go_left",
        "level_node",
        "node",
        "store_fetched",
        "fetch_four",
        "store_four",
    ):
        functions = functions.replace(f"def {name}(", f"def {name}_{number}(")
    defined = {
        "RANGE": "part",
        "UNITS": "units",
        "INIT": "init",
        "FETCH": "fetch",
        "STORE": "store",
        "STORE_FETCHED": "store_fetched",
        "FETCH_FOUR": "fetch_four",
        "STORE_FOUR": "store_four",
        "TERM": "term",
        "COMBINE": "combine",
        "LOAD_A": "load_a",
        "LOAD_B": "load_b",
        "LOAD": "load",
        "GO_LEFT": "go_left",
        "LEVEL_NODE": "level_node",
        "NODE": "node",
    }
    names |= {k: f"{v}_{number}" for k, v in defined.items() if f"def {v}_{number}(" in functions}
    source = template_source(rkernel)
    body = specialise(source, rkernel.function, f"kernel_{number}", names)
    return f"{functions}\n\n@fused\n{body}"


def kernel_of(number: int, sample: Sample) -> dispatch_cuda.Kernel:
    """Sample `number` as the walkers see it."""
    return dispatch_cuda.Kernel(f"kernel_{number}", sample.pointers, sample.scratch_bytes)


def module_text(
    samples: Sequence[Sample], layout: walkers_cuda.Layout, walkers: bool = True
) -> tuple[str, list[str]]:
    """(module, entries): every sample under `op_K`, and the walkers over all of them."""
    kernels = [kernel_of(i, s) for i, s in enumerate(samples)]
    parts = [header_cuda.IMPORTS]
    parts += [kernel_text(i, s, layout.threads) for i, s in enumerate(samples)]
    parts += [
        dispatch_cuda.run_task(kernels),
        walkers_cuda.walkers(replace(layout, residents=True)),
    ]
    parts += [walkers_cuda.op_kernel(i, kernel) for i, kernel in enumerate(kernels)]
    entries = [f"op_{i}" for i in range(len(samples))]
    return "\n\n".join(parts), [*(["persistent", "wave"] if walkers else []), *entries]


LSTM = """
@fused
def units(task, tasks):
    return (256 * task) // tasks, (256 * (task + 1)) // tasks

@fused
def init(OPERANDS, b, u, g):
    return p4[u * 4 + g]

@fused
def sigmoid(x):
    return float32(1.0) / (float32(1.0) + math.exp(-x))

@fused
def fetch(OPERANDS, b, u):
    return (p5[b * 256 + u],)

@fused
def store(OPERANDS, b, u, acc, known):
    c = sigmoid(acc[1]) * known[0] + sigmoid(acc[0]) * math.tanh(acc[2])
    p6[b * 256 + u] = c
    p7[b * 256 + u] = sigmoid(acc[3]) * math.tanh(c)
"""


def lstm(resident: int = 0, variant: str = "lanes16", **overrides: int) -> Sample:
    """An LSTM cell of 256 units: x, h, W, U, bias, c -> c, h."""
    return Sample(
        f"recurrent_cell.two_terms_{variant}",
        ["float32"] * 8,
        dict(
            NOTHING="(float32(0.0),)",
            X0="p0",
            W0="p2",
            K0=256,
            X1="p1",
            W1="p3",
            K1=256,
            G=4,
            B=1,
            BATCH=1,
            U=256,
            TERMS=2,
            FLOAT="float32",
            RESIDENT=resident,
        ),
        LSTM,
        overrides,
    )


GO_LEFT = """
@fused
def go_left(x, threshold, nan_left):
    return (x <= threshold) | ((nan_left != 0) & (x != x))

@fused
def store(OPERANDS, r, c, acc):
    {output}[r * {columns} + c] = acc
"""


def perfect_forest(
    variant: str,
    features: int,
    trees: int,
    depth: int,
    x: str = "float32",
    value: str = "float64",
    columns: int = 1,
    width: int = 1,
    **overrides: int,
) -> Sample:
    """x, feature, threshold, nan_left, value, output, base -> sums."""
    return Sample(
        f"perfect_forest.{variant}",
        [x, "int32", x, "uint8", value, "int32", value, value],
        dict(
            X="p0",
            FEATURE="p1",
            THRESHOLD="p2",
            NAN_LEFT="p3",
            VALUE="p4",
            OUTPUT="p5",
            BASE="p6",
            FEATURES=features,
            TREES=trees,
            DEPTH=depth,
            NODES=(1 << depth) - 1,
            SPAN=(1 << depth) - 1,
            FIRST=0,
            COLUMNS=columns,
            WIDTH=width,
            FLOAT=value,
            INPUT=x,
        ),
        ROWS.format(columns=columns) + LEVELS + GO_LEFT.format(output="p7", columns=columns),
        overrides,
    )


LEVELS = """
@fused
def level_node(OPERANDS, n):
    return p1[n], p2[n], p3[n]
"""
HEAP = """
@fused
def level_node(OPERANDS, n):
    word, threshold = heap_node(p1, n, p0)
    return int32(word & uint32(0x7FFFFFFF)), threshold, word >> uint32(31)
"""


def heap_forest(
    variant: str,
    features: int,
    trees: int,
    depth: int,
    columns: int = 1,
    width: int = 1,
    **overrides: int,
) -> Sample:
    """x, nodes, value, output, base -> sums."""
    return Sample(
        f"heap_forest.{variant}",
        ["float32", "int32", "float64", "int32", "float64", "float64"],
        dict(
            X="p0",
            HEAP="p1",
            VALUE="p2",
            OUTPUT="p3",
            BASE="p4",
            FEATURES=features,
            TREES=trees,
            DEPTH=depth,
            NODES=(1 << depth) - 1,
            SPAN=1 << depth,
            FIRST=1,
            COLUMNS=columns,
            WIDTH=width,
            FLOAT="float64",
            INPUT="float32",
        ),
        ROWS.format(columns=columns) + HEAP + GO_LEFT.format(output="p5", columns=columns),
        overrides,
    )


def product(output: str, columns: int) -> str:
    """Fused functions of x (p0) times weights, into `output`."""
    return f"""
@fused
def units(task, tasks):
    return ({columns} * task) // tasks, ({columns} * (task + 1)) // tasks

@fused
def init(OPERANDS, b, u, g):
    return p2[u]

@fused
def fetch(OPERANDS, b, u):
    return ()

@fused
def store(OPERANDS, b, u, acc, known):
    {output}[b * {columns} + u] = acc[0]
"""


def gemv(variant: str, k: int, units: int, batch: int = 1, kind: str = "float32") -> Sample:
    """x, W (units x k), bias -> y."""
    return Sample(
        f"gemv.{variant}",
        [kind] * 4,
        dict(
            X0="p0",
            W0="p1",
            K0=k,
            B=batch,
            BATCH=batch,
            U=units,
            G=1,
            TERMS=1,
            FLOAT=kind,
            NOTHING="()",
        ),
        product("p3", units),
    )


def gemm(variant: str, k: int, columns: int, kind: str = "float32", **overrides: int) -> Sample:
    """A (rows x k), B (k x columns, or transposed for `jk`), bias -> C, the rows shared out."""
    at = f"j * {k} + k" if variant.endswith("jk") else f"k * {columns} + j"
    return Sample(
        f"gemm.{variant}",
        [kind] * 4,
        dict(J=columns, K=k, ROWS=0, FLOAT=kind),
        ROWS.format(columns=columns)
        + f"""
@fused
def load_a(OPERANDS, r, k):
    return p0[r * {k} + k]

@fused
def load_b(OPERANDS, k, j):
    return p1[{at}]

@fused
def init(OPERANDS, r, j):
    return p2[j]

@fused
def store(OPERANDS, r, j, acc):
    p3[r * {columns} + j] = max(acc, {kind}(0.0))
""",
        overrides,
    )


def gemm_terms(layout: str, terms: int, columns: int, **tile: int) -> Sample:
    """The same of few terms in float64, by a tile as its roots have it."""
    tile = {"ACROSS": 1, "TM": 8, "TN": 2, "BY_K": int(layout == "jk")} | tile
    one = gemm(f"terms_{layout}", terms, columns, "float64", **tile)
    return replace(one, scratch_bytes=128 * 1024)


ADD = """
@fused
def combine(acc, term):
    return acc + term
"""


def conv(variant: str, channels: int, outputs: int, size: int) -> Sample:
    """x (channels x size x size), w (outputs x channels x 3 x 3), bias -> y, padded by 1.

    Rows are (output channel, y).
    """
    return Sample(
        f"conv.{variant}",
        ["float32"] * 4,
        dict(J=size, K0=channels, K1=3, K2=3, FLOAT="float32"),
        FIXED_ROWS.format(rows=outputs * size, columns=size)
        + ADD
        + f"""
@fused
def init(OPERANDS, r, j):
    return p2[r // {size}]

@fused
def term(OPERANDS, r, j, k0, k1, k2):
    y = r % {size} + k1 - 1
    x = j + k2 - 1
    v = float32(0.0)
    if 0 <= y < {size} and 0 <= x < {size}:
        v = p0[(k0 * {size} + y) * {size} + x]
    return v * p1[((r // {size} * {channels} + k0) * 3 + k1) * 3 + k2]

@fused
def store(OPERANDS, r, j, acc):
    p3[r * {size} + j] = max(acc, float32(0.0))
""",
    )


def reduce(family: str, variant: str, columns: int, terms: int, kind: str = "float32") -> Sample:
    """Sum of the last dimension of x (rows x columns x terms), halved."""
    return Sample(
        f"{family}.{variant}",
        [kind] * 2,
        dict(J=columns, K0=terms, K1=1, K2=1, FLOAT=kind, SHUFFLED=kind),
        ROWS.format(columns=columns)
        + ADD
        + f"""
@fused
def init(OPERANDS, r, j):
    return {kind}(0.0)

@fused
def term(OPERANDS, r, j, k0, k1, k2):
    return p0[(r * {columns} + j) * {terms} + k0]

@fused
def store(OPERANDS, r, j, acc):
    p1[r * {columns} + j] = acc * {kind}(0.5)
""",
    )


def pieces(variant: str, columns: int, held: int, rows: int) -> dict[str, int]:
    """Parameters of an rKernel that keeps rows in registers."""
    if variant == "long":
        return {}
    if variant == "fours":
        return dict(PIECES=-(-columns // 128), ROWS=rows)
    return dict(PIECES=held) if variant == "fours_block" else dict(HELD=held)


def softmax(
    variant: str, columns: int, kind: str = "float32", held: int = 1, rows: int = 1, **names: int
) -> Sample:
    """Softmax of rows of `columns`."""
    return Sample(
        f"softmax.{variant}",
        [kind] * 2,
        dict(J=columns, FLOAT=kind, EXP="math.exp", SOURCE="p0", **names),
        ROWS.format(columns=columns)
        + f"""
@fused
def load(OPERANDS, r, j):
    return p0[r * {columns} + j]

@fused
def store(OPERANDS, r, j, acc):
    p1[r * {columns} + j] = acc

@fused
def store_four(OPERANDS, r, j, a0, a1, a2, a3):
    store_four(p1, r * {columns} + j, a0, a1, a2, a3, {names.get("VECTOR", 1)})
""",
        pieces(variant, columns, held, rows),
    )


def layer_norm(
    variant: str, columns: int, kind: str = "float32", centred: bool = True, held: int = 1,
    rows: int = 1, factor: int = 2, **names: int,
) -> Sample:  # fmt: skip
    """Layer normalisation of rows of `columns`, `factor` times as large."""
    own = dict(J=columns, FLOAT=kind, CENTRED=int(centred), EPSILON=f"{kind}(1e-5)")
    return Sample(
        f"layer_norm.{variant}",
        [kind] * 2,
        {**own, "SOURCE": "p0", **names},
        ROWS.format(columns=columns)
        + f"""
@fused
def load(OPERANDS, r, j):
    return p0[r * {columns} + j]

@fused
def store(OPERANDS, r, j, acc):
    p1[r * {columns} + j] = acc * {kind}({factor})

@fused
def store_four(OPERANDS, r, j, a0, a1, a2, a3):
    store_four(p1, r * {columns} + j, a0 * {kind}({factor}), a1 * {kind}({factor}),
               a2 * {kind}({factor}), a3 * {kind}({factor}), {names.get("VECTOR", 1)})
""",
        pieces(variant, columns, held, rows),
    )


def argmax(columns: int, kind: str = "float32") -> Sample:
    """First largest of rows of `columns`."""
    return Sample(
        "argmax.warp",
        [kind, "int64"],
        dict(J=1, K0=columns, FLOAT="int64"),
        ROWS.format(columns=1)
        + f"""
@fused
def load(OPERANDS, r, k):
    return p0[r * {columns} + k]

@fused
def store(OPERANDS, r, acc):
    p1[r] = acc
""",
    )


def elementwise(columns: int) -> Sample:
    """tanh(x) + y[column]."""
    return Sample(
        "map.elements",
        ["float32"] * 3,
        dict(J=columns, FLOAT="float32", SPLIT="divide"),
        ROWS.format(columns=columns)
        + f"""
@fused
def store(OPERANDS, r, j):
    p2[r * {columns} + j] = math.tanh(p0[r * {columns} + j]) + p1[j]
""",
    )


def fetched(columns: int, variant: str = "fetched", two: int = 1, vector: int = 1) -> Sample:
    """The same, by a kernel that reads ahead."""
    return Sample(
        f"map.{variant}",
        ["float32"] * 3,
        dict(J=columns, FLOAT="float32", VECTOR=vector, SPLIT="divide"),
        ROWS.format(columns=columns)
        + f"""
@fused
def fetch(OPERANDS, r, j):
    return (p0[r * {columns} + j], p1[j])

@fused
def store_fetched(OPERANDS, r, j, known):
    p2[r * {columns} + j] = math.tanh(known[0]) + known[1]

@fused
def store(OPERANDS, r, j):
    p2[r * {columns} + j] = math.tanh(p0[r * {columns} + j]) + p1[j]

@fused
def fetch_four(OPERANDS, r, j):
    one = load_four(p0, r * {columns} + j, {vector})
    other = load_four(p1, j, {vector})
    return one, other

@fused
def store_four(OPERANDS, r, j, known):
    a, b = known
    store_four(p2, r * {columns} + j, math.tanh(a[0]) + b[0], math.tanh(a[1]) + b[1],
               math.tanh(a[2]) + b[2], math.tanh(a[3]) + b[3], {vector})
""",
        dict(TWO=two) if variant == "fours" else {},
    )


LINKED = """
@fused
def node(OPERANDS, n):
    return p1[n], p2[n], p5[n] != 0, p3[n], p4[n]
"""
PACKED = """
@fused
def node(OPERANDS, n):
    threshold, word, near = packed_node(p1, n, p0)
    return word & int32(0x7FFFFFFF), threshold, word < int32(0), near, int32(near + 1)
"""
STREAMED = {"GROUP": 4, "TOGETHER": 4, "ROWS_PER_THREAD": 2, "LEAVES": 2}
TREES_OF_TILES = {"TOGETHER": 4, "CHUNK": 32, "SKEW": 0, "SHARE": 1}


def forest(
    features: int, trees: int, columns: int, width: int, variant: str = "rows", **overrides: int
) -> Sample:
    """x, feature, threshold, left, right, nan_left, value, root, output, base -> sums."""
    return Sample(
        f"forest.{variant}",
        [
            "float32",
            "int32",
            "float32",
            "int32",
            "int32",
            "uint8",
            "float64",
            "int32",
            "int32",
            "float64",
            "float64",
        ],
        dict(
            X="p0",
            FEATURE="p1",
            THRESHOLD="p2",
            LEFT="p3",
            RIGHT="p4",
            NAN_LEFT="p5",
            VALUE="p6",
            ROOT="p7",
            OUTPUT="p8",
            BASE="p9",
            FEATURES=features,
            TREES=trees,
            COLUMNS=columns,
            WIDTH=width,
            DEPTH=8,
            NODES=100,
            FLOAT="float64",
        ),
        ROWS.format(columns=columns) + LINKED + GO_LEFT.format(output="p10", columns=columns),
        overrides,
    )


def packed_forest(
    features: int,
    trees: int,
    columns: int,
    width: int,
    variant: str = "rows",
    x: str = "float32",
    **overrides: int,
) -> Sample:
    """x, nodes, value, root, output, base -> sums."""
    return Sample(
        f"packed_forest.{variant}",
        [x, "int32", "float64", "int32", "int32", "float64", "float64"],
        dict(
            X="p0",
            PACKED="p1",
            VALUE="p2",
            ROOT="p3",
            OUTPUT="p4",
            BASE="p5",
            FEATURES=features,
            TREES=trees,
            COLUMNS=columns,
            WIDTH=width,
            DEPTH=8,
            FLOAT="float64",
        ),
        ROWS.format(columns=columns) + PACKED + GO_LEFT.format(output="p6", columns=columns),
        overrides,
    )


SAMPLES = {
    "argmax": argmax(10),
    "conv_split": conv("split", 64, 64, 8),
    "conv_tile": conv("tile", 16, 32, 16),
    "forest": forest(28, 100, 3, 1),
    "forest_tiles": forest(28, 100, 3, 1, "tiles", **TREES_OF_TILES),
    "packed_forest": packed_forest(28, 100, 3, 3),
    "packed_forest_tiles": packed_forest(28, 100, 3, 1, "tiles", "float64", **TREES_OF_TILES),
    "gemm_tile32": gemm("tile32_jk", 100, 70),
    "gemm_tile64": gemm("tile64_kj", 100, 70),
    "gemm_tile64_float64": gemm("tile64_jk", 100, 70, "float64"),
    "gemm_terms": gemm_terms("kj", 20, 100, ACROSS=2),
    "gemm_terms_jk": gemm_terms("jk", 32, 300, ACROSS=4),
    "gemv_block": gemv("block", 9216, 100),
    "gemv_odd": gemv("rows", 30, 100, 3, "float64"),
    "gemv_rows": gemv("rows", 9216, 4096),
    "heap_forest_direct": heap_forest("direct", 784, 100, 6, columns=3),
    "heap_forest_streamed": heap_forest("streamed", 28, 100, 8, **STREAMED),
    "heap_forest_tiles": heap_forest("tiles", 28, 500, 8, **TREES_OF_TILES),
    "heap_forest_trees": heap_forest("trees", 28, 500, 8),
    "layer_norm_block": layer_norm("block", 5000, held=20),
    "layer_norm_long": layer_norm("long", 20000, "float64"),
    "layer_norm_rms": layer_norm("warp", 1000, centred=False, held=32),
    "layer_norm_warp": layer_norm("warp", 768, held=24),
    "layer_norm_fours": layer_norm("fours", 768, factor=1),
    "layer_norm_fours_block": layer_norm("fours_block", 8192, held=8),
    "layer_norm_fours_long": layer_norm("fours", 1024),
    "layer_norm_fours_short": layer_norm("fours", 96, rows=8, centred=False, factor=1),
    "map": elementwise(100),
    "map fetched": fetched(100),
    "map fours": fetched(100, "fours"),
    "perfect_forest": perfect_forest("staged", 28, 500, 8),
    "perfect_forest_classes": perfect_forest("staged", 64, 100, 6, columns=3, width=3),
    "perfect_forest_direct": perfect_forest("direct", 784, 100, 6, columns=3),
    "perfect_forest_float64": perfect_forest("staged_wide", 28, 500, 8, x="float64", columns=3),
    "perfect_forest_tiles": perfect_forest("tiles", 28, 500, 8, **TREES_OF_TILES),
    "perfect_forest_trees": perfect_forest("trees", 28, 500, 8),
    "pool_warp": reduce("pool", "warp", 16, 100),
    "recurrent_cell": lstm(),
    "recurrent_cell_wide": lstm(variant="lanes32"),
    "reduce_block": reduce("reduce", "block", 1, 5000, "float64"),
    "reduce_columns": reduce("reduce", "columns", 40, 5000, "float64"),
    "reduce_thread": reduce("reduce", "thread", 16, 9),
    "softmax_block": softmax("block", 5000, held=20),
    "softmax_fours": softmax("fours", 1024),
    "softmax_fours_block": softmax("fours_block", 8192, held=8),
    "softmax_fours_float64": softmax("fours", 512, "float64"),
    "softmax_fours_short": softmax("fours", 100, rows=8),
    "softmax_fours_long": softmax("fours_long", 20000),
    "softmax_long": softmax("long", 20000),
    "softmax_warp": softmax("warp", 1000, held=32),
}
