"""Convolutions over planes in shared memory: emulated as ONNX says, and compiled without spills."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import cuda_emulator
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from test_cuda_tiles import conv, for_a_gpu, model, operands, scheduled
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, i64

from irkit.dialects.planes import Plane, as_plane
from irkit.dialects.roperator_body import find_root
from irkit.dialects.types import int_array
from irkit.driver.pipelines import standard
from irkit.lower.task_to_numba.emit import emit_module
from irkit.rkernels import families, registry
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.plane_blocks import printed_loops, spread
from irkit.rkernels.templates import specialise, template_source

THREADS = 32
CASES: dict[str, Any] = {
    "padded": conv((2, 3, 7, 9), (20, 3, 3, 3), pads=[1, 2, 1, 0]),
    "strided": conv((1, 2, 11, 10), (17, 2, 5, 3), strides=[3, 2], pads=[2, 1, 0, 1]),
    "one by one": conv((2, 9, 4, 6), (18, 9, 1, 1)),
    "grouped": conv((1, 8, 5, 6), (16, 4, 3, 3), "none", group=2),
    "grouped and padded": conv((3, 8, 4, 4), (16, 4, 3, 3), "none", group=2, pads=[1, 0, 1, 2]),
    "dilated": conv((1, 2, 9, 9), (4, 2, 3, 3), dilations=[2, 2], pads=[2, 2, 2, 2]),
    "many taps, strided": conv((1, 2, 13, 14), (8, 2, 7, 7), strides=[2, 2], pads=[3, 3, 3, 3]),
}


def emulated(name: str, tasks: int, rows: int = 4, **more: int) -> None:
    given = CASES[name]
    op = scheduled(given)
    root = find_root(op.body.block)
    rkernel = registry.find("cuda", f"planes.rows{rows}")
    assert families.find("planes").refuses(root) is None
    assert rkernel.legal(root)
    assert rkernel.grid is not None
    parameters = {**rkernel.literals(root), **more}
    assert rkernel.refuses_parameters(root, parameters) is None
    op.grid = int_array(rkernel.grid(root, tasks))
    numbers = {name: IntegerAttr(value, i64) for name, value in parameters.items()}
    op.parameters = DictionaryAttr(numbers)
    binder = Binder(op, root, "cuda")
    families.find("planes").bind(binder)
    names = {**binder.binding.names, **{k: str(v) for k, v in parameters.items()}}
    names["THREADS"] = str(THREADS)
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    text = "\n".join([*binder.binding.functions, *binder.binding.parts.values(), body])
    shape = [d.dim_value for d in given.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(tasks).standard_normal(shape).astype(np.float32)
    judge: Any = ReferenceEvaluator(given)
    want = np.asarray(judge.run(None, {"x": x})[0])
    y = np.full(want.shape, np.nan, np.float32)
    arrays: list[Any] = [*operands(op, given, x), y]
    scratch = rkernel.scratch(root, parameters)
    cuda_emulator.run_text(text, "kernel", arrays, op.tasks, 1, THREADS, scratch)
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5 * abs(want).max())


@pytest.mark.parametrize("tasks", [1, 7])
@pytest.mark.parametrize("name", CASES)
def test_blocks_compute_what_onnx_says(name: str, tasks: int) -> None:
    emulated(name, tasks, KG=1)


@pytest.mark.parametrize(("name", "chunk"), [("padded", 1), ("one by one", 3), ("grouped", 2)])
def test_channels_that_do_not_fit_come_one_after_another(name: str, chunk: int) -> None:
    emulated(name, 2, CHUNK=chunk, KG=1)


@pytest.mark.parametrize(
    ("name", "groups"), [("padded", 2), ("many taps, strided", 8), ("grouped", 4)]
)
def test_groups_of_threads_share_the_terms(name: str, groups: int) -> None:
    emulated(name, 3, KG=groups)


def test_sixteen_filters_of_a_thread() -> None:
    emulated("padded", 3, rows=16, KG=1)


def test_terms_are_printed_of_the_loops_inside() -> None:
    op = scheduled(CASES["many taps, strided"])
    plane = as_plane(find_root(op.body.block))
    assert plane is not None
    assert printed_loops(plane) == plane.product.k[-1:]


def test_gaps_put_neighbouring_columns_in_different_banks() -> None:
    """Of a window of 3x3 over planes of 16x16, whose columns are channels and taps."""
    plane = as_plane(find_root(scheduled(CASES["padded"]).body.block))
    assert plane is not None
    taps = [replace(axis, extent=16) for axis in plane.axes]
    channel = replace(taps[0], stride=1)
    product = replace(plane.product, sizes=(1, 32, 16, 3, 3, 196), columns=(2, 3, 4))
    given = replace(plane, product=product, axes=(channel, *taps))
    found = spread(given)
    assert found.strides[-1] == 1
    assert worst(found, 32) <= 2 < 4 < worst(given, 32)
    whole = replace(product, sizes=(1, 32, 1, 32, 32, 25), columns=(3, 4))
    assert spread(replace(plane, product=whole, axes=tuple(taps))).strides == (16, 1)


def worst(plane: Plane, count: int) -> int:
    """Elements of one bank that the first columns read."""
    extents = plane.product.extents(plane.product.columns)
    points = list(itertools.product(*map(range, extents)))[:count]
    places = {p: sum(i * s for i, s in zip(p, plane.strides, strict=True)) for p in points}
    return max(Counter(place % 32 for place in places.values()).values())


def test_what_lacks_filters_or_known_sizes_is_not_taken() -> None:
    root = find_root(scheduled(CASES["dilated"]).body.block)
    assert registry.find("cuda", "planes.rows4").legal(root)
    assert not registry.find("cuda", "planes.rows8").legal(root)


@pytest.mark.parametrize("rows", [8, 16])
def test_a_convolution_of_few_channels_becomes_a_cubin_without_spills(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba_cuda")
    from irkit.runtime.cuda import compiling, ptx

    kernel = registry.find("cuda", f"planes.rows{rows}")
    monkeypatch.setitem(registry.__dict__["_REGISTERED"], ("cuda", "planes"), [kernel])
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    given = model([node], (128, 16, 14, 14), (None,) * 4, {})
    # As in a function of which parts read images otherwise.
    passes = [name for name in standard.STANDARD["tensor"] if name != "put-channels-last"]
    monkeypatch.setitem(standard.STANDARD, "tensor", passes)
    shape = (32, 16, 3, 3)
    given.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, shape))
    imported = for_a_gpu(given)
    source = emit_module(imported.module, imported.weights, "cuda")
    assert f"rKernel planes.rows{rows}" in source
    compiled = compiling.compile_module_with_ptx(source, ["op_0"], 256, "sm_90a")
    resources = compiled.resources()["op_0"]
    assert resources["stack"] == resources["spill_stores"] == 0
    assert ptx.warnings(compiled.ptx) == []
