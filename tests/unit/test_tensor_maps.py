"""Operands that a GPU copies in boxes: their maps in the program, in records and on the device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_cuda import FakeDriver

import irkit
from benchmarks.products import Case, Job, program
from benchmarks.rtask_times import Prepared
from irkit.context import IrkitContext
from irkit.dialects.product_memory import MatrixInMemory, matrices_of_b
from irkit.dialects.products import as_product
from irkit.dialects.task import ROperatorOp
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.errors import ArtifactError
from irkit.lower.task_to_numba.emit import print_program
from irkit.lower.task_to_numba.walkers_cuda import layout_of
from irkit.passes.task.program_text import programs_of, read_program
from irkit.rkernels import registry
from irkit.rkernels.cuda import product_boxes, product_boxes_maps
from irkit.rkernels.legality import root_of, why_illegal
from irkit.row_ranges import NO_END
from irkit.runtime.cuda import compiling, driver, tensor_maps
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.cuda.ptx import forbidden_forms
from irkit.schedule.block_memory import walker_bytes
from irkit.schedule.devices import device as find_device
from irkit.schedule.tables import FIRST_INPUT, MAP_BYTES, TensorMap, build_tables

CASE = Case("boxes", (192, 320), (320, 256), element="bf16")
RKERNEL = "product.boxes64x64"


@pytest.fixture(scope="module")
def source() -> str:
    """The module of one product whose operands are copied in boxes."""
    built = program(Job(CASE, "bf16", "h200", RKERNEL))
    assert built is not None
    return built.artifact.source


def test_a_program_says_what_is_copied_in_boxes(source: str) -> None:
    found, _ = read_facts(source)
    x, w = found.maps
    assert (x.base, w.base) == (FIRST_INPUT, FIRST_INPUT + 1)
    assert (x.sizes, x.steps, x.box) == ((320, 192, 1), (640, 640 * 192), (64, 64, 1))
    # Terms of columns: boxes of 64 columns.
    assert (w.sizes, w.steps, w.box) == ((256, 320, 1), (512, 512 * 320), (64, 64, 1))
    (append,) = found.appends
    last = FIRST_INPUT + len(found.ports)
    assert [tuple(o) for o in append.operands[-2:]] == [(last, 0, 0), (last, MAP_BYTES, 0)]
    # What is not the proved program's is refused.
    other = replace(found, maps=(x, w._replace(offset=64)))
    with pytest.raises(ArtifactError, match="not the one that was proved"):
        build_tables(other)


def test_each_plan_has_maps_of_its_own(source: str) -> None:
    found, _ = read_facts(source)
    first = replace(found, rows=(0, 4)).sealed()
    (append,) = found.appends
    plain = append._replace(operands=append.operands[:-2])
    moved = tuple(one._replace(offset=512) for one in found.maps)
    for maps, appends in (((), (plain,)), (moved, found.appends)):
        other = replace(found, rows=(5, NO_END), maps=maps, appends=appends).sealed()
        whole = first.planned((first, other))
        read, _ = read_facts(f"{print_program(whole)}\nLAUNCH = {LAUNCH}")
        assert [plan.maps for plan in read.plans] == [found.maps, maps]
        for plan in read.plans:
            build_tables(plan, read.plans)


LAUNCH = """{
    "arch": "sm_90a", "threads": 256, "shared_bytes": 0, "record_words": 16,
    "scratch": (0,), "batch": (False,),
}"""


def test_the_proof_counts_what_the_walker_keeps_of_maps(source: str) -> None:
    prepared = Prepared.of("boxes", irkit.parse(CASE.text("bf16")), "h200", False)
    (op,) = prepared.roperators()
    op.choose(next(a for a in op.alternatives or () if a.rkernel.startswith("product.boxes")))
    prepared.schedule()
    (scheduled,) = programs_of(prepared.module)
    schedule = read_program(prepared.module, scheduled)
    assert schedule.launches[0].maps == 2
    found, facts = read_facts(source)
    assert walker_bytes(schedule) == layout_of(replace(found, shared_bytes=0)).memory.nbytes
    assert facts.record_words >= 6 + 3 * 5


def test_maps_lie_behind_the_bases(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    found, _ = read_facts(source)
    seen: list[tuple[TensorMap, int]] = []

    def encoded(one: TensorMap, address: int) -> Any:
        seen.append((one, address))
        return np.full(MAP_BYTES // 8, len(seen))

    monkeypatch.setattr(tensor_maps, "encoded", encoded)
    table = np.zeros(tensor_maps.room(found.bases, found.maps) + 1, np.int64)
    table[FIRST_INPUT : FIRST_INPUT + 2] = 4096, 1 << 20
    tensor_maps.put(table, found.bases, found.maps, 1 << 30)
    first = int(table[found.bases - 1]) - (1 << 30)
    assert first % 64 == 0
    assert first >= 8 * found.bases
    assert [address for _, address in seen] == [4096, 1 << 20]
    words = table[first // 8 : first // 8 + 2 * MAP_BYTES // 8]
    assert words.tolist() == [1] * (MAP_BYTES // 8) + [2] * (MAP_BYTES // 8)


def test_what_the_driver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def called(name: str, *arguments: Any) -> Any:
        given.extend((name, *arguments))
        made = np.arange(MAP_BYTES // 8)

        class Made:
            @staticmethod
            def getPtr() -> int:
                return made.ctypes.data

        return Made()

    class Bindings(FakeDriver):
        cuuint64_t = cuuint32_t = int

        class CUtensorMapDataType:
            CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 = "tfloat32"

        class CUtensorMapInterleave:
            CU_TENSOR_MAP_INTERLEAVE_NONE = "none"

        class CUtensorMapSwizzle:
            CU_TENSOR_MAP_SWIZZLE_128B = "128"

        class CUtensorMapL2promotion:
            CU_TENSOR_MAP_L2_PROMOTION_L2_256B = "256"

        class CUtensorMapFloatOOBfill:
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = "zeros"

    monkeypatch.setattr(tensor_maps, "call", called)
    monkeypatch.setattr(tensor_maps, "api", Bindings)
    assert driver.api is not Bindings
    one = TensorMap(0, 0, "tfloat32", (40, 30, 2), (160, 4800), (32, 64, 1))
    assert tensor_maps.encoded(one, 4096).tolist() == list(range(16))
    assert given == [
        "cuTensorMapEncodeTiled", "tfloat32", 3, 4096, [40, 30, 2], [160, 4800], [32, 64, 1], [1, 1, 1],
        "none", "128", "256", "zeros",
    ]  # fmt: skip
    # What does not start at 16 bytes is read without.
    assert not tensor_maps.encoded(one, 4100).any()


@pytest.mark.parametrize(
    ("rkernel", "precision", "case"),
    [
        ("product.boxes128x256", "bf16", CASE),
        ("product.boxes128x128", "float32", replace(CASE, w=(256, 320), transposed=True)),
        ("product.boxes64x64_deep", "float32", CASE),
        ("product.boxes128x64_fed_by2", "float32", CASE),
        ("product.boxes128x64_fed", "float32", CASE),
        ("product.boxes128x128_fed", "bf16", CASE),
        ("product.boxes128x128_fed_by2", "bf16", CASE),
        (
            "product.boxes128x256_words",
            "tf32",
            Case("words", (192, 320), (256, 320), transposed=True),
        ),
    ],
)
def test_they_become_cubins_without_spills(rkernel: str, precision: str, case: Case) -> None:
    built = program(Job(case, precision, "h200", rkernel))
    assert built is not None
    entries = ["persistent", "op_0"]
    made = compiling.compile_module_with_ptx(built.artifact.source, entries, 256, "sm_90a")
    assert not forbidden_forms(made.ptx)
    # Nothing runs one product after another for want of knowing better.
    assert "C75" not in made.log
    for name, resources in made.resources().items():
        assert resources["spill_stores"] == resources["spill_loads"] == 0, name


LOOP = """
func.func private @body(%i: tensor<i64>, %x: tensor<192x320xbf16>, %w: tensor<320x256xbf16>) -> tensor<192x256xbf16> attributes {irkit.precision = "bf16"} {
  %y = graph.matmul %x, %w : (tensor<192x320xbf16>, tensor<320x256xbf16>) -> tensor<192x256xbf16>
  func.return %y : tensor<192x256xbf16>
}
func.func @main(%x: tensor<192x320xbf16>, %w: tensor<320x256xbf16>) -> tensor<192x256xbf16> attributes {irkit.precision = "bf16"} {
  %i = arith.constant dense<0> : tensor<i64>
  %y = func.call @body(%i, %x, %w) : (tensor<i64>, tensor<192x320xbf16>, tensor<320x256xbf16>) -> tensor<192x256xbf16>
  func.return %y : tensor<192x256xbf16>
}
"""  # noqa: E501


def test_operands_that_may_move_are_not_copied_in_boxes() -> None:
    prepared = Prepared.of("boxes", irkit.parse(CASE.text("bf16")), "h200", False)
    (op,) = prepared.roperators()
    chosen = next(a for a in op.alternatives or () if a.rkernel.startswith("product.boxes"))
    op.choose(chosen)
    device = find_device("h200")
    assert why_illegal(op, device) is None
    calls = irkit.parse(LOOP)
    op.detach()
    calls.body.block.add_op(op)
    reason = why_illegal(op, device)
    assert reason is not None
    assert "do not move with the turns of loops" in reason


@pytest.mark.parametrize(
    ("text", "between"),
    [
        # Of a batch of matrices, which lie one behind another.
        ("tensor<3x64x80xbf16>, tensor<3x80x96xbf16>) -> tensor<3x64x96xbf16>", 80 * 96),
        ("tensor<64x80xbf16>, tensor<80x96xbf16>) -> tensor<64x96xbf16>", 0),
    ],
)
def test_matrices_in_memory(text: str, between: int) -> None:
    x, rest = text.split(", ", 1)
    w, y = rest.split(") -> ")
    main = (
        f'func.func @main(%x: {x}, %w: {w}) -> {y} attributes {{irkit.precision = "bf16"}} {{\n'
        f"  %y = graph.matmul %x, %w : ({x}, {w}) -> {y}\n  func.return %y : {y}\n}}\n"
    )
    module = irkit.parse(main)
    ctx = IrkitContext()
    register_dialects(ctx)
    for level in ("graph", "tensor", "task"):
        run_level(ctx, module, level, "h200")
    (op,) = (o for o in module.ops if isinstance(o, ROperatorOp))
    root = root_of(op)
    product = as_product(root)
    assert product is not None
    found = matrices_of_b(product)
    assert found is not None
    assert (found.first, found.pitch, found.between) == (0, 96, between)
    rkernel = registry.find("cuda", RKERNEL)
    assert rkernel.legal(root)
    _, w_map = (made(root, rkernel.literals(root)) for made in rkernel.maps.values())
    assert w_map.sizes == (96, 80, 3 if between else 1)


@pytest.mark.parametrize(
    ("pitch", "between", "taken"),
    [
        (96, 80 * 96, True),
        # Terms first, then matrices: these are nearer to one another than terms are.
        (3 * 96, 96, False),
        # Runs that have terms in common.
        (48, 80 * 96, False),
    ],
)
def test_matrices_that_lie_in_one_another_are_not_copied_in_boxes(
    monkeypatch: pytest.MonkeyPatch, pitch: int, between: int, taken: bool
) -> None:
    x, w, y = (f"tensor<{s}xbf16>" for s in ("3x64x80", "3x80x96", "3x64x96"))
    text = (
        f'func.func @main(%x: {x}, %w: {w}) -> {y} attributes {{irkit.precision = "bf16"}} {{\n'
        f"  %y = graph.matmul %x, %w : ({x}, {w}) -> {y}\n  func.return %y : {y}\n}}\n"
    )
    (op,) = Prepared.of("matrices", irkit.parse(text), "h200", False).roperators()
    lies = MatrixInMemory(0, pitch, between)
    for module in (product_boxes, product_boxes_maps):
        monkeypatch.setattr(module, "matrices_of_b", lambda product: lies)
    assert registry.find("cuda", RKERNEL).legal(root_of(op)) == taken
