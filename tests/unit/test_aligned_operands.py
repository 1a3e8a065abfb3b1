"""What a GPU's compiler is told of operands at multiples of 16 bytes, and what it makes of that."""

from __future__ import annotations

import re

import cuda_samples as cs
import pytest

import irkit
from irkit.lower.task_to_numba.dispatch_cuda import Kernel, run_task
from irkit.lower.task_to_numba.walkers_cuda import Layout, op_kernel
from irkit.runtime.cuda import compiling, ptx
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.cuda.unit_code import called
from irkit.schedule.block_memory import BlockMemory

LAYOUT = Layout(256, BlockMemory(bases=8, max_waits=4, max_operands=10))


def test_it_is_told_of_all_operands_or_of_none() -> None:
    told, untold = (Kernel("f", ["float32", "float64"], aligned=a) for a in (True, False))
    assert "f32p(a0 & -16), f64p(a1 & -16)" in op_kernel(0, told)
    assert "f32p(a0), f64p(a1)" in op_kernel(0, untold)
    assert "f32p(addresses[0] & -16), f64p(addresses[1] & -16)" in run_task([told])
    assert "-16" not in run_task([untold])


@pytest.mark.parametrize(("columns", "wide"), [(100, True), (7, False)])
def test_fours_of_rows_of_fours_are_read_and_stored_at_once(columns: int, wide: bool) -> None:
    text, entries = cs.module_text([cs.fetched(columns, "fours")], LAYOUT, walkers=False)
    text = re.sub(r"(f32p\(a\d)\)", r"\1 & -16)", text)
    made = compiling.compile_module_with_ptx(text, entries, 256, "sm_90a")
    assert ("ld.v4.f32" in made.ptx) is wide
    assert ("st.v4.f32" in made.ptx) is wide
    assert made.resources()["op_0"]["spill_stores"] == 0


SQUARES = """func.func @main(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %y = graph.mul %x, %x : (tensor<?x1024xf32>, tensor<?x1024xf32>) -> tensor<?x1024xf32>
  func.return %y : tensor<?x1024xf32>
}"""


def test_a_map_of_a_batch_is_in_vectors_in_every_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "irkit.runtime.cuda.compiling.compile_module", lambda *_: b"machine code of nobody's"
    )
    monkeypatch.setattr("irkit.runtime.cuda.availability.why_not", lambda: "no CUDA device")
    source = irkit.compile(irkit.parse(SQUARES), device="h200").source
    _, facts = read_facts(source)
    made = compiling.compile_module_with_ptx(source, facts.entries, facts.threads, facts.arch)
    texts = ptx.functions(made.ptx)
    for entry in facts.entries:
        assert made.resources()[entry]["spill_stores"] == 0
        assert re.search(r"ld\.v4\.f32", texts[entry]), entry
        assert re.search(r"st\.v4\.f32", texts[entry]), entry


def test_calls_are_found_by_all_forms_of_pointers() -> None:
    told = Kernel("f", ["float32", "float64"], aligned=True)
    assert called(op_kernel(0, told)) == {"f": ("f32p", "f64p")}
    assert called(run_task([told])) == {"f": ("f32p", "f64p")}
