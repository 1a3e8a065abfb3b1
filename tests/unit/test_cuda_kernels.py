"""What PTX of CUDA rKernel templates has and has not. No GPU needed."""

from __future__ import annotations

import pytest

pytest.importorskip("numba_cuda")

import cuda_samples as cs

from irkit.lower.task_to_numba.walkers_cuda import Layout
from irkit.runtime.cuda import compiling, ptx
from irkit.schedule.block_memory import BlockMemory

ARCH = "sm_90a"
LAYOUT = Layout(256, BlockMemory(bases=8, max_waits=4, max_operands=10))


def test_float32_kernels_compute_in_float32() -> None:
    samples = [
        cs.SAMPLES[n] for n in ("recurrent_cell", "gemm_tile64", "conv_tile", "softmax_warp")
    ]
    text, entries = cs.module_text(samples, LAYOUT, walkers=False)
    assert ptx.warnings(compiling.module_ptx(compiling.load_module(text), entries, 256, ARCH)) == []


def test_weights_and_nodes_are_read_in_wide_accesses() -> None:
    text, entries = cs.module_text(
        [cs.lstm(resident=1), cs.perfect_forest("staged", 28, 500, 8)], LAYOUT, walkers=False
    )
    entry = ptx.functions(compiling.module_ptx(compiling.load_module(text), entries, 256, ARCH))
    assert "ld.shared.v4.f32" in entry["op_0"]
    assert "ld.shared.v2" in entry["op_1"]


@pytest.mark.parametrize(("terms", "chosen"), [(256, 0), (300, 8)])
def test_lanes_without_a_piece_of_a_row_multiply_zeros(terms: int, chosen: int) -> None:
    """Not what another lane has, which times zero is NaN where it is infinite."""
    text, entries = cs.module_text([cs.gemv("rows", terms, 64)], LAYOUT, walkers=False)
    found = compiling.module_ptx(compiling.load_module(text), entries, 256, ARCH)
    count = ptx.functions(found)["op_0"].count("selp.f32")
    assert count >= chosen
    assert count == 0 or chosen > 0


def test_the_walkers_wait_with_acquire_and_signal_with_release() -> None:
    text, entries = cs.module_text([cs.lstm(), cs.SAMPLES["map"]], LAYOUT)
    compiled = compiling.compile_module_with_ptx(text, entries, 256, ARCH)
    persistent = ptx.functions(compiled.ptx)["persistent"]
    assert "ld.acquire.gpu" in persistent
    assert "red.release.gpu" in persistent
    assert "cp.async" in persistent
    assert ptx.forbidden_forms(compiled.ptx) == []
    assert compiled.resources()["persistent"]["spill_stores"] == 0


@pytest.mark.parametrize("tile", ["rows4", "rows16"])
def test_cells_of_several_rows_keep_their_tiles_in_registers(tile: str) -> None:
    one = cs.lstm(1, tile)
    names = {**one.names, "B": 16, "BATCH": 16}
    sample = cs.Sample(one.rkernel, one.pointers, names, one.functions, scratch_bytes=48 * 1024)
    text, entries = cs.module_text([sample], LAYOUT, walkers=False)
    compiled = compiling.compile_module_with_ptx(text, entries, 256, ARCH)
    assert "ld.shared.v4.f32" in compiled.ptx
    assert "st.shared.v4.f32" in compiled.ptx
    assert compiled.resources()["op_0"]["stack"] == 0
    assert compiled.resources()["op_0"]["spill_stores"] == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("$L__1:\nld.u32 %r1, [%rd1];\nsetp.lt.u32 %p1, %r1, 3;\n@%p1 bra $L__1;\n", "only waits"),
        ("ld.acquire.gpu.global.u32 %r1, [%rd1];\nret;\n", "never signals"),
        ("ld.global.nc.f32 %f1, [%rd1];\nret;\n", "ld.global.nc"),
    ],
)
def test_forbidden_forms_are_found(body: str, message: str) -> None:
    found = ptx.forbidden_forms(f".visible .entry persistent(\n)\n{{\n{body}}}\n")
    assert len(found) == 1
    assert message in found[0]


_RECORD = "ld.param.u64 %rd1, [op_0_param_0];\nld.global.u64 %rd2, [%rd1+8];\n"
_BEGIN, _WAIT = "griddepcontrol.launch_dependents;\n", "griddepcontrol.wait;\n"


@pytest.mark.parametrize(
    ("body", "sound"),
    [
        (_BEGIN + _RECORD + _WAIT + "ld.global.f32 %f1, [%rd2];\nret;\n", True),
        (_BEGIN + _RECORD + "ld.relaxed.gpu.global.u64 %rd3, [%rd2];\n" + _WAIT + "ret;\n", True),
        (_BEGIN + "cp.async.bulk.prefetch.L2.global [%rd2], 64;\n" + _WAIT + "ret;\n", True),
        (_BEGIN + _RECORD + "@%p1 bra $L__1;\n$L__1:\n" + _WAIT + "ret;\n", True),
        (_BEGIN + _RECORD + "ld.global.f32 %f1, [%rd2];\n" + _WAIT + "ret;\n", False),
        (_BEGIN + _RECORD + "st.global.f32 [%rd2], %f1;\n" + _WAIT + "ret;\n", False),
        (_BEGIN + "cp.async.cg.shared.global [%r1], [%rd2], 16;\n" + _WAIT + "ret;\n", False),
        (_BEGIN + "@%p1 bra $L__1;\n" + _WAIT + "$L__1:\nret;\n", False),
        (_BEGIN + "@%p1 ret;\n" + _WAIT + "ret;\n", False),
        (_BEGIN + _RECORD + "ret;\n", False),
    ],
)
def test_a_kernel_that_begins_early_waits_before_it_touches_anything(
    body: str, sound: bool
) -> None:
    found = ptx.forbidden_forms(f".visible .entry op_0(\n)\n{{\n{body}}}\n")
    assert [m for m in found if "before it has waited" in m] == found
    assert (found == []) == sound


def test_records_are_laid_out_as_documented() -> None:
    memory = BlockMemory(bases=5, max_waits=3, max_operands=4, planned=100)
    assert memory.operands_at == 12
    assert memory.record_words == 24
    assert memory.tables == 112
    assert memory.nbytes == 112 + 8 * (10 + 48)
