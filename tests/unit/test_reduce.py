"""irkit-reduce: delta debugging, edits, what counts as the same failure, and modules of every level."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from passes_for_tests import TEST_PASSES
from xdsl.dialects.builtin import i8

from irkit.context import IrkitContext
from irkit.dialects.graph import ReluOp
from irkit.driver.compiler.models import parse
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.reducing import edits, shapes
from irkit.driver.reducing.delta import minimal
from irkit.driver.reducing.failure import CommandFailure, PipelineFailure, failure_of
from irkit.driver.reducing.reducer import Reducer
from irkit.driver.registry import register_dialects
from irkit.driver.tools.reduce import ReduceTool
from irkit.errors import UnsupportedError
from irkit.weights import WeightStore

CHAIN = """
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = graph.exp %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = graph.relu %0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = graph.neg %1 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %2 : tensor<4x6xf32>
}
"""


@pytest.mark.parametrize(
    "needed", [set(), {0}, {99}, {3, 4}, {0, 50, 99}, set(range(0, 100, 9)), set(range(100))]
)
def test_minimal_is_what_is_needed(needed):
    tests = 0

    def holds(items):
        nonlocal tests
        tests += 1
        return needed <= set(items)

    assert set(minimal(range(100), holds)) == needed
    assert tests < 250


def test_minimal_where_items_need_one_another():
    """Pairs: what is left cannot be made smaller by one, whatever order it takes."""
    found = minimal(range(16), lambda s: len(s) >= 2 and all((n ^ 1) in s for n in s))
    assert len(found) == 2


def has_relu(module):
    return any(isinstance(op, ReluOp) for op in module.walk())


def test_a_module_becomes_the_op_that_matters():
    module = parse(CHAIN)
    reducer = Reducer(has_relu, WeightStore())
    small = reducer.reduce(module)
    small.verify()
    assert [op.name for op in small.walk()] == [
        "builtin.module", "func.func", "graph.relu", "func.return",
    ]  # fmt: skip
    assert "tensor<1x1xf32>" in str(small)
    assert str(module) == str(parse(CHAIN)), "the module itself stays"
    assert reducer.tests < 40


def test_it_ends_when_tests_are_used_up():
    reducer = Reducer(has_relu, WeightStore(), most_tests=1)
    assert has_relu(reducer.reduce(parse(CHAIN)))
    assert reducer.tests == 1


def test_what_a_body_reads_stays_in_it():
    """Ops in regions go too; a scalar becomes another of the body, or a zero."""
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xi1> {
      %e = tensor.empty() : tensor<4xi1>
      %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xi1>) {
      ^bb0(%a: f32, %o: i1):
        %t = math.tanh %a : f32
        %n = arith.cmpf une, %t, %t : f32
        linalg.yield %n : i1
      } -> tensor<4xi1>
      func.return %0 : tensor<4xi1>
    }
    """
    small = Reducer(lambda m: "linalg.generic" in str(m), WeightStore()).reduce(parse(text))
    assert "math.tanh" not in str(small)
    assert "arith.cmpf" not in str(small)
    small.verify()


def test_constants_become_plain_and_weights_fit():
    weights = WeightStore()
    name = weights.add(np.arange(24, dtype=np.int8).reshape(4, 6))
    text = f"""
    func.func @main(%x: tensor<4x6xi8>) -> tensor<4x6xi8> {{
      %w = arith.constant dense_resource<{name}> : tensor<4x6xi8>
      %0 = graph.add %x, %w : (tensor<4x6xi8>, tensor<4x6xi8>) -> tensor<4x6xi8>
      func.return %0 : tensor<4x6xi8>
    }}
    """
    plain = Reducer(lambda m: "arith.constant" in str(m), weights).reduce(parse(text))
    assert "dense<0> : tensor<1x1xi8>" in str(plain)
    kept = Reducer(lambda m: "dense_resource" in str(m), weights).reduce(parse(text))
    (constant,) = (op for op in kept.walk() if op.name == "arith.constant")
    assert constant.result.type.get_shape() == (1, 1)
    assert constant.result.type.element_type == i8
    assert any(array.shape == (1, 1) for array in weights.values())


def test_sizes_are_of_tensors_alone():
    module = parse(CHAIN)
    assert shapes.sizes(module) == [6, 4]
    assert shapes.smaller_than(6) == [1, 2, 3, 5]
    assert shapes.smaller_than(2) == [1]
    assert "tensor<4x2xf32>" in shapes.resized(module, 6, 2, WeightStore())


def test_an_edit_that_cannot_be_is_none():
    module = parse(CHAIN)
    assert edits.with_inputs(module, 0, []) is None
    assert edits.with_outputs(module, 0, []) is not None


def pipeline(text):
    from irkit.driver.pipelines.specification import build_pipeline
    from irkit.driver.registry import all_passes

    return build_pipeline(text, all_passes(TEST_PASSES))


def test_alike_is_the_same_function_or_the_same_words():
    test = PipelineFailure(pipeline("test-crash-on-relu"), WeightStore())
    other = CHAIN.replace("4x6", "9")
    assert test(parse(CHAIN)) == test(parse(other)) is not None
    assert test(parse(CHAIN)) != PipelineFailure(pipeline("test-crash"), WeightStore())(
        parse(CHAIN)
    )
    assert test(parse(CHAIN.replace("relu", "abs"))) is None
    a, b, c = (
        failure_of(UnsupportedError(text))
        for text in ("@map_0 of tensor<4xf32>: 3 rows", "@map_7 of tensor<1xf32>: 12 rows", "rows")
    )
    assert a == b != c


@pytest.mark.parametrize("level", ["tensor", "task", "schedule"])
def test_modules_of_every_level_shrink(level):
    ctx = IrkitContext()
    register_dialects(ctx)
    module = parse(CHAIN)
    for name in ("graph", "tensor", "task", "schedule"):
        from irkit.driver.pipelines.lowering import run_level

        run_level(ctx, module, name, "test4")
        if name == level:
            break
    before = sum(1 for _ in module.walk())
    small = Reducer(lambda m: "math.exp" in str(m), ctx.weights).reduce(module)
    small.verify()
    assert "math.exp" in str(small)
    assert sum(1 for _ in small.walk()) < before


def run_tool(path, *arguments):
    out, err = io.StringIO(), io.StringIO()
    status = ReduceTool(io.StringIO(), out, err, TEST_PASSES).main([str(path), *arguments])
    return status, out.getvalue(), err.getvalue()


def test_a_command_that_fails_alike(tmp_path):
    """Code 3 is another failure than 4; the file that a command gets has its weights beside it."""
    script = tmp_path / "interesting.py"
    script.write_text(
        "import sys\ntext = open(sys.argv[1]).read()\n"
        "sys.exit(3 if 'graph.relu' in text else 4 if 'graph' in text else 0)\n"
    )
    module = tmp_path / "module.mlir"
    module.write_text(CHAIN)
    small = tmp_path / "small.mlir"
    command = f"{sys.executable} {script}"
    status, out, err = run_tool(module, "--test", command, "-o", str(small), "--max-tests=8")
    assert (status, out) == (0, "")
    assert "exit code 3" in err
    assert "graph.relu" in small.read_text()
    assert "graph.exp" not in small.read_text()
    module.write_text("func.func @main() {\n  func.return\n}\n")
    status, _, err = run_tool(module, "--test", command)
    assert status == 1
    assert "does not fail" in err


def test_a_command_needs_a_word():
    with pytest.raises(UserError, match="expects a command"):
        CommandFailure("  ", WeightStore())


def test_weights_are_written_beside_the_result(tmp_path):
    weights = WeightStore()
    name = weights.add(np.arange(24, dtype=np.float32).reshape(4, 6))
    path = tmp_path / "module.mlir"
    path.write_text(f"""
    func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {{
      %w = arith.constant dense_resource<{name}> : tensor<4x6xf32>
      %0 = graph.add %x, %w : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
      func.return %0 : tensor<4x6xf32>
    }}
    """)
    weights.save(path.with_suffix(".safetensors"))
    small = tmp_path / "small.mlir"
    status, _, err = run_tool(path, "-p", "test-crash-on-weights", "-o", str(small))
    assert status == 0, err
    assert "dense_resource" in small.read_text()
    assert len(WeightStore.load(small.with_suffix(".safetensors"))) == 1
    # The small module fails alike.
    assert run_tool(small, "-p", "test-crash-on-weights")[0] == 0
