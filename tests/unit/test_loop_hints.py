"""Loops of rKernels that LLVM is told to take several vectors at a time."""

# pyright: basic, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false

from __future__ import annotations

import re
import zlib
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

import irkit
from irkit.runtime import machine_code
from irkit.runtime.intrinsics.loop_hints import hint_loops

HEADER = """
from irkit.runtime.intrinsics.cpu import float32p
from irkit.runtime.intrinsics.cpu_approximations import exp_float32
from irkit.runtime.intrinsics.engine import cfunc
from irkit.runtime.intrinsics.loop_hints import four_vectors_at_a_time, last_vector_of_fewer_lanes

@cfunc("void(int64, int64)", error_model="numpy")
def kernel(count, at):
    p = float32p(at)
"""
INNERMOST = """
    for r in range(count):
        for j in range(count):
            four_vectors_at_a_time()
            p[r * count + j] = exp_float32(p[r * count + j])
"""
WITH_A_CHOICE = """
    for j in range(count):
        four_vectors_at_a_time()
        if p[j] > 0:
            p[j] = exp_float32(p[j])
    for j in range(count):
        p[j] += 1
"""
OF_NO_LOOP = """
    four_vectors_at_a_time()
    for j in range(count):
        p[j] = exp_float32(p[j])
"""
SAYS = re.compile(r"br .*!llvm\.loop")


def lowered(body: str) -> str:
    return zlib.decompress(machine_code.lower(HEADER + body).partition(b"\0")[2]).decode()


@pytest.mark.parametrize(
    ("body", "loops"),
    [(INNERMOST, 1), (WITH_A_CHOICE, 1), (OF_NO_LOOP, 0)],
    ids=["nested", "with a choice", "of no loop"],
)
def test_the_loop_that_says_so_is_told(body: str, loops: int) -> None:
    text = lowered(body)
    assert len(SAYS.findall(text)) == loops
    assert text.count('"llvm.loop.interleave.count", i32 4') == loops


def test_the_end_of_a_row_is_a_vector_too() -> None:
    text = lowered(INNERMOST.replace("four_vectors_at_a_time", "last_vector_of_fewer_lanes"))
    assert len(SAYS.findall(text)) == 1
    assert text.count('"llvm.loop.vectorize.predicate.enable", i1 true') == 1
    assert text.count('"llvm.loop.unroll.disable"') == 1


def test_the_innermost_loop_around_a_mark_is_the_one() -> None:
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.IntType(1)]), "nest")
    names = ("entry", "outer", "inner", "choice", "inner_latch", "outer_latch", "done")
    blocks = {name: function.append_basic_block(name) for name in names}
    (again,) = function.args
    jumps = [("entry", "outer"), ("outer", "inner"), ("choice", "inner_latch")]
    branches = [
        ("inner", "choice", "inner_latch"),
        ("inner_latch", "inner", "outer_latch"),
        ("outer_latch", "outer", "done"),
    ]
    ir.IRBuilder(blocks["choice"]).comment("irkit: four vectors at a time")
    for name, target in jumps:
        ir.IRBuilder(blocks[name]).branch(blocks[target])
    for name, *targets in branches:
        ir.IRBuilder(blocks[name]).cbranch(again, *(blocks[t] for t in targets))
    ir.IRBuilder(blocks["done"]).ret_void()
    hint_loops(module)
    told = [name for name, block in blocks.items() if "llvm.loop" in block.terminator.metadata]
    assert told == ["inner_latch"]
    llvm.parse_assembly(str(module)).verify()


def network(op: str, shape: list[int | str]) -> Any:
    onnx = pytest.importorskip("onnx")
    ports = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n in "xy"]
    node = onnx.helper.make_node(op, ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", ports[:1], ports[1:])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])


@pytest.mark.parametrize("op", ["Exp", "Sigmoid", "Tanh", "Sin"])
def test_every_length_of_what_is_interleaved(op: str) -> None:
    program = irkit.compile(network(op, ["N"]), "cpu")
    strict = irkit.compile(network(op, ["N"]), "cpu", fastmath=())
    assert 'rkernel = "map.interleaved"' in program.ir("schedule")
    assert 'rkernel = "map.rows"' in strict.ir("schedule")
    rng = np.random.default_rng(0)
    for length in (*range(1, 140), 1000, 4097):
        x = rng.standard_normal(length).astype(np.float32)
        np.testing.assert_allclose(program(x), strict(x), rtol=1e-6, atol=1e-7)


def test_what_has_no_polynomial_is_as_before() -> None:
    assert 'rkernel = "map.rows"' in irkit.compile(network("Relu", ["N", 80]), "cpu").ir("schedule")
