"""What ties a proof to what runs: digests of the IR and of the emitted tables."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import irkit
from irkit.context import IrkitContext
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.errors import ArtifactError, ScheduleError
from irkit.lower.task_to_numba.emit import emit_module
from irkit.passes.task.pin_residents import PinResidents
from irkit.passes.task.plan_memory import PlanMemory
from irkit.passes.task.program_text import program_of
from irkit.passes.task.verify_schedule import VerifySchedule
from irkit.runtime.artifact import Artifact
from irkit.runtime.program import Variant
from irkit.schedule.tables import build_tables

NET = """
func.func @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = graph.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = graph.relu %0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = graph.matmul %1, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = graph.matmul %2, %2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %3, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}
"""


def parsed(text: str) -> tuple[IrkitContext, ModuleOp]:
    ctx = IrkitContext()
    register_dialects(ctx)
    return ctx, Parser(ctx, text).parse_module()


@pytest.fixture(scope="module")
def proved() -> str:
    ctx, module = parsed(NET)
    for level in ("tensor", "task", "schedule"):
        run_level(ctx, module, level, "test4")
    return str(module)


def emitted(text: str) -> str:
    ctx, module = parsed(text)
    return emit_module(module, ctx.weights, "cpu")


def test_a_proof_survives_printing_parsing_and_other_names(proved: str) -> None:
    assert emitted(proved)
    assert emitted(str(parsed(proved)[1]))
    assert emitted(re.sub(r"%(\w+)", r"%n\1", proved))


# A change of each thing that the digest covers, as a pattern and what takes its place.
CHANGES = {
    "device": (r"veus = 4 ", "veus = 3 "),
    "rate": (r"wait_ns = 1.000000e\+02", "wait_ns = 2.0"),
    "body": (r"arith.mulf", "arith.addf"),
    "rkernel": (r'rkernel = "[a-z_]+\.[a-z0-9_]+"', 'rkernel = "map.rows"'),
    "grid": (r"grid = array<i64: \d, \d>", "grid = array<i64: 4, 4>"),
    "offset": (r"offset = 0", "offset = 512"),
    "port": (r"port = 1", "port = 7"),
    "placement": (r"to \[0:3\]", "to [0:2]"),
    "wave": (r"wave 1", "wave 2"),
    "modes": (r'modes = \["serial"', 'modes = ["persistent"'),
    "size": (r"arena_bytes = \d+", "arena_bytes = 65536"),
    "function": (r"func.return %(\w+), %(\w+)", r"func.return %\2, %\1"),
    "launch": (r"task.launch @(\w+)\(%(\w+), %(\w+)\)", r"task.launch @\1(%\3, %\2)"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_stale_proof_is_refused_by_name(proved: str, what: str) -> None:
    pattern, text = CHANGES[what]
    changed = re.sub(pattern, text, proved, count=1)
    assert changed != proved
    with pytest.raises(ScheduleError, match="@main_schedule is not what was proved"):
        emitted(changed)


def test_another_proof_is_not_taken_for_this_one(proved: str) -> None:
    forged = re.sub(r"sha256:[0-9a-f]{8}", "sha256:00000000", proved)
    with pytest.raises(ScheduleError, match="the proof is of sha256:00000000"):
        emitted(forged)
    bare = re.sub(r', verified = "[^"]*"', "", proved)
    with pytest.raises(ScheduleError, match="was not proved: run verify-schedule"):
        emitted(bare)


@pytest.mark.parametrize("made", [PlanMemory(), PinResidents()])
def test_passes_that_change_a_program_take_its_proof_back(proved: str, made) -> None:
    ctx, module = parsed(proved)
    made.apply(ctx, module)
    program = program_of(module)
    assert program.verified is None
    assert program.modes is None
    with pytest.raises(ScheduleError, match="was not proved"):
        emit_module(module, ctx.weights)
    VerifySchedule().apply(ctx, module)
    assert emit_module(module, ctx.weights)


@pytest.fixture(scope="module")
def compiled():
    return irkit.compile(parsed(NET)[1], "cpu")


def test_modes_and_digest_reach_the_program(compiled) -> None:
    report = compiled.report()
    assert f'verified = "{report["proved"]}"' in compiled.ir("schedule")
    assert set(report["modes"]) == {"serial", "per-op", "per-wave", "persistent"}


# A change of each thing that the emitted table says.
TABLE = [
    (r"Appended\(0, (\d+), 0, ", r"Appended(0, \1, 1, "),
    (r"Operand\(0, 0, 0\)", "Operand(0, 64, 0)"),
    (r"arena_bytes=\d+", "arena_bytes=64"),
    (r"modes=\('serial'", "modes=('serial', 'per-op'"),
    (r"verified='sha256:", "verified='sha256:0"),
    (r"veus=(\d+)", r"veus=1\1"),
]


@pytest.mark.parametrize(("pattern", "text"), TABLE)
def test_a_changed_table_is_refused(compiled, tmp_path, pattern: str, text: str) -> None:
    path = tmp_path / "program.irkit"
    compiled.save(path)
    artifact = Artifact.load(path)
    changed = re.sub(pattern, text, artifact.source, count=1)
    assert changed != artifact.source
    with pytest.raises(ArtifactError, match="not the one that was proved"):
        Variant(replace(artifact, source=changed))


def test_a_saved_program_carries_its_proof(compiled, tmp_path) -> None:
    path = tmp_path / "program.irkit"
    compiled.save(path)
    x, w = (np.random.default_rng(n).random((4, 4), np.float32) for n in range(2))
    for a, b in zip(irkit.load(path)(x, w), compiled(x, w), strict=True):
        assert np.array_equal(a, b)
    artifact = Artifact.load(path)
    ir = dict(artifact.ir, schedule=artifact.ir["schedule"].replace("sha256:", "sha256:0"))
    with pytest.raises(ArtifactError, match="which is not that of its IR"):
        Variant(replace(artifact, ir=ir))


def test_tables_are_not_built_without_their_digest(compiled) -> None:
    program = compiled._first.executor.program
    assert build_tables(program)
    with pytest.raises(ArtifactError):
        build_tables(replace(program, tables=""))


def test_programs_of_the_format_without_proofs_are_refused(compiled, tmp_path, monkeypatch) -> None:
    path = tmp_path / "program.irkit"
    with monkeypatch.context() as older:
        older.setattr("irkit.runtime.artifact.VERSION", 1)
        compiled.save(path)
    with pytest.raises(ArtifactError, match="is of format irkit-program 1; this irkit reads"):
        irkit.load(path)
