"""irkit's dialects as IRDL; where mlir-opt is installed, all test modules and all levels go through it.

IRKIT_NEEDS_MLIR_OPT=1 makes a missing mlir-opt a failure.
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest
from random_graphs import RandomGraph
from xdsl.dialects.builtin import ModuleOp

from irkit.context import IrkitContext
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.files.context import make_context
from irkit.driver.files.parsing import parse_module
from irkit.driver.instruments.cross_check import find_mlir_opt, refusal
from irkit.driver.instruments.timer import Timer
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.pipelines.standard import standard_pipeline
from irkit.driver.registry import all_passes, irkit_dialects, register_dialects
from irkit.driver.tools.opt import OptTool
from irkit.driver.verification.irdl_export import export_dialects, foreign_text, widest_group
from irkit.driver.verification.verifier import check_module

FILECHECK = Path(__file__).parents[1] / "filecheck"
MLIR_OPT = find_mlir_opt()
needs_mlir_opt = pytest.mark.skipif(
    MLIR_OPT is None and not os.environ.get("IRKIT_NEEDS_MLIR_OPT"), reason="no mlir-opt here"
)


def exported(widest: int = 4) -> str:
    return export_dialects((f() for f in irkit_dialects().values()), widest).text()


def test_every_op_is_exported_with_its_constraints():
    text = exported()
    for factory in irkit_dialects().values():
        for op in factory().operations:
            assert f"irdl.operation @{op.name.partition('.')[2]} {{" in text
    append = text[text.index("@append") : text.index("@buffer")]
    assert re.search(r"irdl.base @task::@token", append)
    assert "waits: variadic" in append
    assert "reads_3: optional" in append
    assert "reads_4" not in append
    # Nothing is weaker without a note.
    notes = [line for line in text.split("\n") if line.startswith("//")]
    assert all(line.startswith("// Weaker than in irkit: ") for line in notes)
    # The values of task.yield, and that of te.yield, may be anything; of the fast-math flags of five ops MLIR
    # has no IRDL, nor of what marks symmetric trees.
    assert text.count("irdl.any\n") == 4 + 1 + 5 + 1
    gradients = "te.attention_key_gradient, te.attention_query_gradient"
    of_any = f"te.attention, {gradients}, te.softmax, task.roperator"
    assert f"FastMathFlagsAttr is any attribute: {of_any}" in text


def test_emit_irdl_prints_the_dialects():
    out = io.StringIO()
    assert OptTool(stdout=out).main(["--emit-irdl"]) == 0
    assert out.getvalue() == exported(16)


APPEND = """\
task.roperator @same(%a : tensor<4xf32>) -> tensor<4xf32> attributes {grid = array<i64: 1>} {
  task.yield %a : tensor<4xf32>
}
task.program @main_schedule of @main attributes {device = @test4} {
  %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
  %y = task.buffer {space = "arena"} : tensor<4xf32>
  %t0 = task.append @same to [0:0] wave 0 reads(%x) writes(%y)
  %t1 = task.append @same to [0:0] wave 1 wait(%t0) reads(%y) writes(%x)
}
"""


def test_groups_and_optional_attributes_in_the_exported_form():
    text = foreign_text(parse_module(make_context("-"), APPEND, "m.mlir"), 2)
    # waits; reads_0, reads_1; writes_0, writes_1
    assert "operandSegmentSizes = array<i32: 0, 1, 0, 1, 0>" in text
    assert "operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>" in text
    assert '"task.buffer"() {port, offset, source, space = "arena"}' in text
    assert text.count('"irkit.end"() : () -> ()') == 2
    assert 'loc("m.mlir":8:9)' in text


def modules_of_tests() -> list[ModuleOp]:
    """Every part of every FileCheck test that is a valid module of known dialects."""
    found: list[ModuleOp] = []
    for path in sorted(FILECHECK.rglob("*.mlir")):
        for part in re.split(r"(?m)^// -----.*$", path.read_text(encoding="utf-8")):
            try:
                module = parse_module(make_context("-"), part, path.name)
                check_module(module)
            except UserError:
                continue
            found.append(module)
    return found


@needs_mlir_opt
def test_mlir_opt_takes_every_test_module():
    assert MLIR_OPT is not None
    modules = modules_of_tests()
    assert len(modules) > 100
    widest = max(map(widest_group, modules))
    texts = [foreign_text(m, widest) for m in modules]
    for what in ("dense_resource", "loc(", '"graph.', '"te.', '"task.'):
        assert any(what in text for text in texts)
    assert refusal(MLIR_OPT, texts, widest) is None


class Collector:
    """An instrument that keeps the module after each pass."""

    def __init__(self) -> None:
        self.modules: list[ModuleOp] = []

    def before(self, module, module_pass) -> None: ...

    def after(self, module, module_pass, seconds) -> None:
        self.modules.append(module.clone())

    def failed(self, module, module_pass, seconds) -> None: ...


@needs_mlir_opt
@pytest.mark.parametrize("seed", range(3))
def test_mlir_opt_takes_every_level(seed: int):
    assert MLIR_OPT is not None
    model = RandomGraph(seed, 12, batch=seed % 2 == 0).model()
    ctx = IrkitContext(weights=model.weights)
    register_dialects(ctx)
    passes = build_pipeline(standard_pipeline("graph", "schedule", "test4"), all_passes())
    collector = Collector()
    PipelineRunner(ctx, Timer(), [collector]).run(model.module, passes)
    assert len(collector.modules) == len(passes)
    widest = max(map(widest_group, collector.modules))
    texts = [foreign_text(m, widest) for m in collector.modules]
    assert refusal(MLIR_OPT, texts, widest) is None


RELU = (
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {0} func.return %y : tensor<4xf32> }}"
)
WRONG = [
    ('%y = "graph.relu"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>', "operand"),
    ('%y = "graph.expand"(%x) {shape = "4"} : (tensor<4xf32>) -> tensor<4xf32>', "expected base"),
    ('%y = "graph.expand"(%x) : (tensor<4xf32>) -> tensor<4xf32>', '"shape" is expected'),
    ('%y = "graph.reduce"(%x) {axes = array<i64: 0>, kind = "sum", keepdims = 1 : i32}'
     ' : (tensor<4xf32>) -> tensor<4xf32>', "does not satisfy the constraint"),
]  # fmt: skip


@needs_mlir_opt
@pytest.mark.parametrize(("op", "message"), WRONG)
def test_mlir_opt_refuses_what_the_definitions_refuse(op: str, message: str, tmp_path: Path):
    path = tmp_path / "wrong.mlir"
    path.write_text(RELU.format(op))
    err = io.StringIO()
    status = OptTool(stdout=io.StringIO(), stderr=err).main(
        [str(path), "--disable-verify", "--cross-check"]
    )
    assert status == 1
    assert (
        f"wrong.mlir:1:{RELU.index('{0}') + len('%y = ')}: error: mlir-opt refuses"
        in err.getvalue()
    )
    assert message in err.getvalue()


def test_cross_check_without_mlir_opt_says_what_to_install(monkeypatch, tmp_path: Path):
    monkeypatch.delenv("IRKIT_MLIR_OPT", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    err = io.StringIO()
    status = OptTool(io.StringIO(""), io.StringIO(), err).main(["--cross-check"])
    assert status == 1
    assert "--cross-check needs mlir-opt (Debian: mlir-22-tools)" in err.getvalue()
