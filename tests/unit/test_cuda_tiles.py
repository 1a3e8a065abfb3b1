"""Contractions and convolutions in tiles: emitted for a small block and run thread by thread on a CPU."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import cuda_emulator
import numpy as np
import pytest
from emulated_bulk import BoxMap
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from xdsl.dialects.builtin import StringAttr

from benchmarks.products import Case, Job, program
from irkit.context import IrkitContext
from irkit.dialects.precision import PRECISION
from irkit.dialects.roperator_body import find_root
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import int_array, tensor_type
from irkit.driver.compiler.models import read_model
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.module import ImportedModel
from irkit.lower.task_to_numba.emit import emit_module
from irkit.lower.task_to_numba.walkers_cuda import ranked
from irkit.rkernels import families, registry
from irkit.rkernels.binding.binder import Binder, Binding
from irkit.rkernels.cuda import product as product_tiles
from irkit.rkernels.cuda import product_fed, product_mma, product_wgmma, product_wgmma_halves
from irkit.rkernels.templates import specialise, template_source
from irkit.runtime.cuda import compiling

LEVELS = ("graph", "tensor", "task", "schedule")
# 32 threads: the two groups of them share the terms.
TILE = {"BM": 16, "BN": 16, "BK": 8, "TM": 4, "TN": 4, "KG": 2, "TERMS": 4, "THREADS": 32}


def conv(x: tuple[int, ...], w: tuple[int, ...], relu: str = "behind", **attributes: Any) -> Any:
    """Conv with bias, and a ReLU "behind" it or "none"."""
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal(w).astype(np.float32),
        "b": random.standard_normal(w[0]).astype(np.float32),
    }
    result = "c" if relu == "behind" else "y"
    nodes = [helper.make_node("Conv", ["x", "w", "b"], [result], **attributes)]
    if relu == "behind":
        nodes.append(helper.make_node("Relu", ["c"], ["y"]))
    return model(nodes, x, (None,) * 4, weights)


def model(nodes: list[Any], x: tuple[int, ...], y: tuple[Any, ...], weights: dict[str, Any]) -> Any:
    ports = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", x), ("y", y))
    ]
    constants = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def product(m: int = 18, k: int = 21, n: int = 30, transposed: bool = False) -> Any:
    """x times weights, which lie transposed or not."""
    w = np.random.default_rng(1).standard_normal((n, k) if transposed else (k, n))
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    if transposed:
        node = helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)
    return model([node], (m, k), (m, n), {"w": w.astype(np.float32)})


CASES = {
    "padded": conv((1, 3, 7, 9), (20, 3, 3, 3), pads=[1, 2, 1, 0]),
    "strided": conv((1, 2, 11, 10), (17, 2, 5, 3), strides=[3, 2], pads=[2, 1, 0, 1]),
    "one by one": conv((2, 9, 4, 6), (18, 9, 1, 1)),
    "as wide as the image": conv((1, 4, 12, 3), (18, 4, 2, 3)),
    "grouped": conv((1, 8, 5, 6), (16, 4, 3, 3), "none", group=2),
    "depthwise": conv((1, 6, 5, 7), (6, 1, 3, 3), "none", group=6, pads=[1, 1, 1, 1]),
    "grouped and padded": conv((1, 8, 4, 4), (16, 4, 3, 3), "none", group=2, pads=[1, 0, 1, 2]),
    "dilated": conv((1, 2, 9, 9), (4, 2, 3, 3), dilations=[2, 2], pads=[2, 2, 2, 2]),
    "matrices": product(),
    "whole fours": product(17, 24, 32),
    "terms side by side": product(10, 20, 40, transposed=True),
    "terms side by side, no fours": product(10, 19, 35, transposed=True),
}
SEEN_BY_TENSOR_CORES = [n for n in CASES if n not in ("depthwise", "after relu", "dilated")]


def for_a_gpu(onnx_model: Any) -> ImportedModel:
    """The model, scheduled for a GPU."""
    imported = read_model(onnx_model, "float32")
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for level in LEVELS:
        run_level(ctx, imported.module, level, "h200")
    return imported


def scheduled(onnx_model: Any) -> ROperatorOp:
    """The one rOperator that is a product, scheduled for a GPU."""
    ops = [op for op in for_a_gpu(onnx_model).module.ops if isinstance(op, ROperatorOp)]
    (op,) = (o for o in ops if find_root(o.body.block).family in ("conv", "gemm"))
    return op


def operands(op: ROperatorOp, onnx_model: Any, x: Any) -> list[Any]:
    """The arrays that the rOperator reads, told apart by their sizes."""
    arrays = [x, *(numpy_helper.to_array(i) for i in onnx_model.graph.initializer)]
    by_size = {a.size: np.ascontiguousarray(a) for a in arrays}
    assert len(by_size) == len(arrays)
    return [by_size[np.prod(tensor_type(a).get_shape())] for a in op.body.block.args]


@pytest.mark.parametrize("name", CASES)
def test_tiles_compute_what_onnx_says(name: str) -> None:
    check(CASES[name], "product.direct" if name == "depthwise" else "product.tile32x32", TILE)


def test_direct_sums_of_infinite_weights() -> None:
    """Nine terms in passes of four: what fills the last pass must not make NaN of an infinite last weight."""
    given = conv((1, 6, 5, 7), (6, 1, 3, 3), "none", group=6)
    weight = given.graph.initializer[0]
    array = numpy_helper.to_array(weight).copy()
    array[:, :, -1, -1] = np.inf
    weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    with np.errstate(invalid="ignore"):
        check(given, "product.direct", TILE)


FLAT = {"BM": 16, "BN": 64, "BK": 16, "TM": 4, "TN": 4, "KG": 1, "THREADS": 64}


@pytest.mark.parametrize("name", ["padded", "strided", "grouped and padded", "matrices"])
def test_flat_tiles_compute_what_onnx_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of the tiles of 16x256: a row of threads is one of columns, and all terms are one group's."""
    monkeypatch.setattr(product_tiles, "_MANY_COLUMNS", 0)
    monkeypatch.setattr(product_tiles, "_FEW_ROWS", 64)
    check(CASES[name], "product.tile16x256", FLAT)


MMA = {"BM": 32, "BN": 32, "BK": 16, "WM": 16, "WN": 16, "STAGES": 3, "THREADS": 128}


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("name", SEEN_BY_TENSOR_CORES)
def test_tensor_cores_compute_what_onnx_says(name: str, kind: int) -> None:
    tolerance = (1e-5, 1e-2, 5e-2, 1e-2)[kind]
    check(CASES[name], "product.mma32x32", {**MMA, "KIND": kind}, tolerance)


GROUPS = {"BM": 64, "BN": 64, "BK": 32, "WN": 32, "STAGES": 2}


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16", "f16"])
@pytest.mark.parametrize("name", ["strided", "whole fours", "terms side by side, no fours"])
def test_warp_groups_compute_what_onnx_says(name: str, precision: str) -> None:
    tolerance = {"float32": 1e-5, "tf32": 1e-2, "bf16": 5e-2, "f16": 1e-2}[precision]
    parameters_of = partial(product_wgmma.parameters_of, GROUPS)
    run_in_groups("product.wgmma64x64", parameters_of, CASES[name], precision, tolerance)


def run_in_groups(
    variant: str,
    parameters_of: Any,
    onnx_model: Any,
    precision: str,
    tolerance: float,
    ranks: int = 1,
) -> None:
    """Emulate one rKernel of warp groups with small tiles, in one rTask and in several, each shared by so
    many blocks."""
    op = scheduled(onnx_model)
    root = find_root(op.body.block)
    assert root.op is not None
    root.op.attributes[PRECISION] = StringAttr(precision)
    rkernel = registry.find("cuda", variant)
    assert rkernel.legal(root)
    assert rkernel.grid is not None
    shape = [d.dim_value for d in onnx_model.graph.input[0].type.tensor_type.shape.dim]
    kind = helper.tensor_dtype_to_np_dtype(onnx_model.graph.input[0].type.tensor_type.elem_type)
    x = np.random.default_rng(3).standard_normal(shape).astype(kind)
    want = np.asarray(ReferenceEvaluator(onnx_model).run(None, {"x": x})[0])
    for tasks in (1, 3):
        op.grid = int_array(rkernel.grid(root, tasks))
        binding = bound(op, root)
        given = {"THREADS": 256, "VECTOR": 1, **parameters_of(root)}
        names = {**binding.names, **ranked(ranks), **{k: str(v) for k, v in given.items()}}
        named = {name: f"map{n}" for n, name in enumerate(rkernel.maps)}
        names |= {**named, "MAPS": ", ".join(named.values())}
        body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
        text = "\n".join([*binding.functions, *binding.parts.values(), body])
        y = np.zeros(want.shape, kind)
        arrays = [*operands(op, onnx_model, x), y]
        boxed = [made(root, given) for made in rkernel.maps.values()]
        arrays += [BoxMap(arrays[one.operand], one) for one in boxed]
        cuda_emulator.run_text(text, "kernel", arrays, op.tasks, 1, 256, 1 << 18, ranks=ranks)
        scale = float(abs(want.astype(np.float64)).max())
        off = abs(y.astype(np.float64) - want.astype(np.float64)).max()
        assert off <= tolerance * scale


@pytest.mark.parametrize("precision", ["float32", "f16"])
@pytest.mark.parametrize("transposed", [False, True])
def test_warp_groups_multiply_16_bit_floats(transposed: bool, precision: str) -> None:
    variant = "product.wgmma64x64_halves"
    own = halved(product(19, 72, 80, transposed))
    parameters_of = partial(product_wgmma_halves.parameters_of, {**GROUPS, "BK": 64, "STAGES": 4})
    run_in_groups(variant, parameters_of, own, precision, 2e-3)


@pytest.mark.parametrize(
    "tile", ["128x64", "64x64", "64x32", "64x64_deep", "128x64_fed", "128x128_fed"]
)
@pytest.mark.parametrize(
    ("rows", "terms", "columns", "transposed", "precision"),
    [
        (19, 72, 80, False, "float32"),
        (130, 200, 136, False, "f16"),
        (19, 328, 83, True, "float32"),
        (66, 328, 24, True, "f16"),
        # Parts of the columns begin anywhere.
        (36, 104, 56, False, "float32"),
    ],
)
def test_boxes_of_16_bit_floats(
    tile: str, rows: int, terms: int, columns: int, transposed: bool, precision: str
) -> None:
    own = halved(product(rows, terms, columns, transposed))
    variant = f"product.boxes{tile}"
    if tile == "128x128_fed":
        # Of more sums registers hold no second set.
        precision = "f16"

    # Few stages are filled again and again.
    def parameters_of(root: Any) -> Any:
        return {**registry.find("cuda", variant).literals(root), "STAGES": 4}

    run_in_groups(variant, parameters_of, own, precision, 3e-3)


@pytest.mark.parametrize("tile", ["64x64", "64x64_deep", "64x128", "128x64_fed"])
@pytest.mark.parametrize(
    ("rows", "terms", "columns", "transposed", "precision"),
    [
        # An odd number of stages: one block has more of them. Two tiles, one behind the other.
        (70, 264, 40, False, "f16"),
        (19, 264, 35, True, "float32"),
    ],
)
def test_blocks_of_a_cluster_share_a_tile(
    tile: str, rows: int, terms: int, columns: int, transposed: bool, precision: str
) -> None:
    variant = f"product.boxes{tile}_by2"

    # Few stages are filled again and again.
    def parameters_of(root: Any) -> Any:
        return {**registry.find("cuda", variant).literals(root), "STAGES": 4}

    own = halved(product(rows, terms, columns, transposed))
    run_in_groups(variant, parameters_of, own, precision, 3e-3, 2)


def test_a_block_that_runs_beside_others_has_a_tile_of_its_own() -> None:
    """In the persistent kernel there are no clusters."""
    parameters_of = registry.find("cuda", "product.boxes64x64_by2").literals
    own = halved(product(34, 264, 40))
    run_in_groups("product.boxes64x64_by2", parameters_of, own, "f16", 3e-3)


@pytest.mark.parametrize(
    ("tile", "columns", "over"),
    # Of large tiles all sums lie over the stages, where those of the next tile come.
    [("64x64", 40, 0), ("128x128_fed", 200, 1)],
)
def test_blocks_of_a_cluster_share_a_tile_in_tf32(tile: str, columns: int, over: int) -> None:
    variant, own = f"product.boxes{tile}_by2_words", product(34, 140, columns, True)
    parameters_of = registry.find("cuda", variant).literals

    def asked(root: Any) -> Any:
        found = parameters_of(root)
        assert found["OVER"] == over
        return found

    run_in_groups(variant, asked, own, "tf32", 2e-3, 2)


def test_narrow_tiles_that_blocks_share_are_summed_stage_by_stage() -> None:
    """In any precision; of 128 rows by one group no second set of sums fits."""
    root = find_root(scheduled(halved(product(34, 264, 40))).body.block)
    assert root.op is not None
    root.op.attributes[PRECISION] = StringAttr("f16")
    tiles = ("64x64_by2", "64x64_deep_by2", "64x64", "128x64_fed_by2")
    fresh = [registry.find("cuda", f"product.boxes{t}").literals(root)["FRESH"] for t in tiles]
    assert fresh == [1, 1, 0, 0]
    root.op.attributes[PRECISION] = StringAttr("float32")
    assert registry.find("cuda", "product.boxes128x64_fed").legal(root)
    assert not registry.find("cuda", "product.boxes128x128_fed").legal(root)


def test_few_terms_are_not_shared() -> None:
    op = scheduled(halved(product(34, 64, 40)))
    root = find_root(op.body.block)
    assert registry.find("cuda", "product.boxes64x64").legal(root)
    assert not registry.find("cuda", "product.boxes64x64_by2").legal(root)


@pytest.mark.parametrize("tile", ["128x64", "64x64", "128x64_fed"])
def test_boxes_of_float32_are_multiplied_in_tf32(tile: str) -> None:
    variant = f"product.boxes{tile}_words"
    parameters_of = registry.find("cuda", variant).literals
    run_in_groups(variant, parameters_of, product(70, 140, 90, True), "tf32", 2e-3)


@pytest.mark.parametrize("tile", product_fed.TILES)
@pytest.mark.parametrize(
    ("rows", "terms", "columns", "transposed", "precision"),
    [
        (19, 72, 80, False, "float32"),
        (66, 200, 24, False, "f16"),
        (19, 72, 83, True, "float32"),
        (9, 328, 24, True, "f16"),
    ],
)
def test_half_of_the_warps_feed_the_other(
    tile: str, rows: int, terms: int, columns: int, transposed: bool, precision: str
) -> None:
    own = halved(product(rows, terms, columns, transposed))
    # Two stages are filled again and again.
    parameters_of = partial(product_fed.parameters_of, {**product_fed.TILES[tile], "STAGES": 2})
    run_in_groups(f"product.fed{tile}", parameters_of, own, precision, 3e-3)


def test_rows_that_are_fed_are_as_far_apart_as_16_bit_floats() -> None:
    """What the emulator does not see: addresses in bytes."""
    case = Case("test", (128, 768), (768, 2304), element="bf16")
    built = program(Job(case, "bf16", "h200", "product.fed64x64"))
    assert built is not None
    source = built.artifact.source
    made = compiling.compile_module_with_ptx(source, ["op_0"], 256, "sm_90a")
    # Sixteen rows of A, and of B.
    for apart in (16 * 768 * 2, 16 * 2304 * 2):
        assert re.search(rf"add.s64 .*, {apart};", made.ptx)


def halved(onnx_model: Any) -> Any:
    """The model in float16."""
    for value in (*onnx_model.graph.input, *onnx_model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    constants = onnx_model.graph.initializer
    arrays = [numpy_helper.to_array(i).astype(np.float16) for i in constants]
    made = [numpy_helper.from_array(a, i.name) for a, i in zip(arrays, constants, strict=True)]
    del constants[:]
    constants.extend(made)
    return onnx_model


def test_what_cannot_be_split_is_summed_plainly() -> None:
    """Infinities, NaN, the largest and the least values: as float32 sums have them."""
    case = CASES["whole fours"]
    op = scheduled(case)
    root = find_root(op.body.block)
    rkernel = registry.find("cuda", "product.mma32x32")
    assert rkernel.grid is not None
    op.grid = int_array(rkernel.grid(root, 1))
    binding = bound(op, root)
    given = product_mma.parameters_of({"VECTOR": 1, **MMA}, root)
    names = {**binding.names, **{k: str(v) for k, v in given.items()}}
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    x = np.random.default_rng(0).standard_normal((17, 24)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((24, 32)).astype(np.float32)
    x[3, 5], x[7, 1], x[9, 2], x[11, 3] = np.inf, -np.inf, np.nan, np.finfo(np.float32).max
    x[13], w[:, 17] = 1e-42, 1e30
    y = np.full((17, 32), 77, np.float32)
    text = "\n".join([*binding.functions, *binding.parts.values(), body])
    cuda_emulator.run_text(text, "kernel", [x, w, y], 1, 1, 128)
    with np.errstate(all="ignore"):
        want = (x.astype(np.float64) @ w.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


def bound(op: ROperatorOp, root: Root) -> Binding:
    """What the product family's placeholders are on a GPU."""
    binder = Binder(op, root, "cuda")
    families.find("product").bind(binder)
    return binder.binding


def check(
    onnx_model: Any, variant: str, parameters: dict[str, int], tolerance: float = 1e-5
) -> None:
    op = scheduled(onnx_model)
    root = find_root(op.body.block)
    rkernel = registry.find("cuda", variant)
    assert rkernel.legal(root)
    assert rkernel.grid is not None
    for tasks in (1, 7, 132):
        op.grid = int_array(rkernel.grid(root, tasks))
        binding = bound(op, root)
        given = {"VECTOR": int(variant.startswith("product.mma")), **parameters}
        if "STAGES" in given:
            given = dict(product_mma.parameters_of(given, root))
        names = {**binding.names, **{k: str(v) for k, v in given.items()}}
        body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
        text = "\n".join([*binding.functions, *binding.parts.values(), body])
        shape = [d.dim_value for d in onnx_model.graph.input[0].type.tensor_type.shape.dim]
        x = np.random.default_rng(tasks).standard_normal(shape).astype(np.float32)
        want = np.asarray(ReferenceEvaluator(onnx_model).run(None, {"x": x})[0])
        y = np.full(want.shape, np.nan, np.float32)
        arrays = [*operands(op, onnx_model, x), y]
        cuda_emulator.run_text(text, "kernel", arrays, op.tasks, 1, parameters["THREADS"])
        scale = float(abs(want[np.isfinite(want)]).max(initial=0))
        np.testing.assert_allclose(y, want, rtol=10 * tolerance, atol=tolerance * scale)


def test_a_convolution_becomes_a_cubin_of_tiles_without_spills() -> None:
    pytest.importorskip("numba_cuda")
    from irkit.runtime.cuda import compiling, ptx

    imported = for_a_gpu(conv((1, 64, 16, 16), (96, 64, 3, 3), pads=[1, 1, 1, 1]))
    source = emit_module(imported.module, imported.weights, "cuda")
    compiled = compiling.compile_module_with_ptx(source, ["op_0"], 256, "sm_90a")
    resources = compiled.resources()["op_0"]
    assert "rKernel product." in source
    assert resources["stack"] == resources["spill_stores"] == 0
    assert ptx.warnings(compiled.ptx) == []
