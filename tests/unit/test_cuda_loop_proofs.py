"""Loops on GPUs, compiled for those that are not at hand: what is proved, what is refused, and their code."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from emulated_loops import parsed
from test_composite_proof import LOOPS
from test_cuda_loops import jacobi_2d, recurrence
from test_loops import jacobi

import irkit
from irkit.context import IrkitContext
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.pipelines.lowering import bring_to_level
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import ScheduleError
from irkit.lower.task_to_numba.emit import emit_module
from irkit.passes.task.composite_text import composite_of, read_composite
from irkit.passes.task.program_text import programs_of, read_program
from irkit.runtime.cuda import compiling, ptx
from irkit.runtime.cuda.facts import read_facts
from irkit.schedule.composite_blocks import block_memory, check_blocks
from irkit.schedule.model import Resident

pytest.importorskip("numba_cuda")

ARCHITECTURES = {"a100": "sm_80", "h200": "sm_90a", "b200": "sm_100a", "rtx5090": "sm_120"}


def scheduled(text: str, device: str):
    ctx = IrkitContext()
    register_dialects(ctx)
    module = parsed(text)
    bring_to_level(ctx, module, "schedule", device)
    return ctx, module


@pytest.mark.parametrize("device", ARCHITECTURES)
def test_loops_become_machine_code(device: str):
    ctx, module = scheduled(LOOPS, device)
    source = emit_module(module, ctx.weights)
    program, facts = read_facts(source)
    assert facts.entries[:3] == ["persistent", "wave", "place"]
    compiled = compiling.compile_module_with_ptx(
        source, facts.entries, facts.threads, ARCHITECTURES[device]
    )
    assert ptx.forbidden_forms(compiled.ptx) == []
    kernel = ptx.functions(compiled.ptx)["persistent"]
    # A wait within a run and a meeting between two, and what each waits for is signalled.
    assert kernel.count("ld.acquire.gpu") >= 1 + any(a.waits for a in program.appends)
    assert "red.release.gpu" in kernel
    resources = compiled.resources()
    assert resources["persistent"]["spill_stores"] == resources["persistent"]["stack"] == 0
    assert facts.shared_bytes == len_of_blocks(module)


def len_of_blocks(module) -> int:
    """The shared memory that the proof of a composite counts with."""
    op = composite_of(module)
    assert op is not None
    schedules = [read_program(module, p) for p in programs_of(module)]
    return block_memory(read_composite(op), schedules).nbytes


def test_functions_of_arrays_compile_for_gpus_that_are_not_here():
    rng = np.random.default_rng(0)
    jit = irkit.jit(target="cuda", device="h200", cache=False)
    a = rng.normal(size=(200, 200))
    stencil = jit(jacobi_2d).compile(50, a, a.copy())
    assert re.search(r"task.repeat \d+ \{", stencil.ir("schedule"))
    assert "def persistent(records, bases, counters, meeting, steps" in stencil.source
    x = rng.normal(size=300)
    moving = jit(recurrence).compile(x, x.copy())
    # Slices of one element are no multiple of 16 bytes apart.
    assert "step [8]" in moving.ir("schedule")
    assert "def place(" in moving.source


def prove(text: str) -> None:
    ctx = IrkitContext()
    register_dialects(ctx)
    PipelineRunner(ctx).run(parsed(text), build_pipeline("verify-schedule", all_passes()))


def test_what_reads_in_vectors_is_where_vectors_are():
    """A row that moves by 128 bytes is read in vectors; where it moves by 8 bytes, that is refused."""
    loops = """
func.func @main(%x: tensor<9x32xf32>, %v: tensor<1x32xf32>, %w: tensor<32x32xf32>) -> tensor<1x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r, %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %v, %m = %w)
      -> (tensor<1x32xf32>, tensor<32x32xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 32] [1, 1] : tensor<9x32xf32> to tensor<1x32xf32>
    %p = graph.gemm %row, %m {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64}
        : (tensor<1x32xf32>, tensor<32x32xf32>) -> tensor<1x32xf32>
    %t = graph.add %s, %p : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %n = graph.tanh %m : (tensor<32x32xf32>) -> tensor<32x32xf32>
    scf.yield %t, %n : tensor<1x32xf32>, tensor<32x32xf32>
  }
  func.return %r : tensor<1x32xf32>
}
"""
    _, module = scheduled(loops, "h200")
    text = str(module)
    assert "vector_bytes = 16" in text
    prove(text)
    assert text.count("%x at 0 step [128]") == 1
    with pytest.raises(UserError, match="vectors of 16 bytes of what no append places"):
        prove(text.replace("%x at 0 step [128]", "%x at 0 step [8]"))


def test_programs_that_take_turns_keep_nothing_in_shared_memory():
    _, module = scheduled(jacobi(400, 9), "h200")
    op = composite_of(module)
    assert op is not None
    schedules = {p.sym_name.data: read_program(module, p) for p in programs_of(module)}
    composite, device = read_composite(op), next(iter(schedules.values())).device
    check_blocks(composite, schedules, device)
    name, schedule = next(iter(schedules.items()))
    kept = replace(schedule.appends[0], residents=(Resident(0, 0),))
    schedules[name] = replace(schedule, appends=[kept, *schedule.appends[1:]])
    with pytest.raises(ScheduleError, match=r"'shared'.*keeps operands in memory in which other"):
        check_blocks(composite, schedules, device)


def test_tables_of_many_steps_must_fit_a_block():
    _, module = scheduled(jacobi(400, 9), "h200")
    op = composite_of(module)
    assert op is not None
    schedules = {p.sym_name.data: read_program(module, p) for p in programs_of(module)}
    composite, device = read_composite(op), next(iter(schedules.values())).device
    needed = block_memory(composite, list(schedules.values())).nbytes
    check_blocks(composite, schedules, replace(device, shared_bytes=needed))
    with pytest.raises(ScheduleError, match="'shared': a block needs"):
        check_blocks(composite, schedules, replace(device, shared_bytes=needed - 1))
    composite.steps *= 2000
    with pytest.raises(ScheduleError, match="the tables of all steps"):
        check_blocks(composite, schedules, device)
