"""Copies between host and device: what is copied, that none is missing, and that none is made twice."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp
from xdsl.parser import Parser
from xdsl.rewriter import Rewriter

from irkit.context import IrkitContext
from irkit.dialects.bufferization import MaterializeInDestinationOp
from irkit.dialects.program import CallOp as HostCall
from irkit.dialects.program.check import program_faults
from irkit.dialects.program.spaces import CPU, CUDA, DEVICE, on_device
from irkit.driver.registry import register_dialects
from irkit.errors import InvalidModelError
from irkit.interp import program as interpreter
from irkit.interp.program import run_program
from irkit.passes.program.form_regions import FormRegions
from irkit.passes.program.insert_transfers import InsertTransfers
from tools.fuzz.effects.attempt import HOST
from tools.fuzz.effects.programs import random_program

NEGATE = """
func.func @negate(%x: memref<4xf64>, %y: memref<4xf64>) {
  %0 = bufferization.to_tensor %x : memref<4xf64> to tensor<4xf64>
  %1 = graph.neg %0 : (tensor<4xf64>) -> tensor<4xf64>
  bufferization.materialize_in_destination %1 in writable %y : (tensor<4xf64>, memref<4xf64>) -> ()
  func.return
}
"""


def parsed(text: str) -> tuple[IrkitContext, ModuleOp]:
    context = IrkitContext()
    register_dialects(context)
    return context, Parser(context, text).parse_module()


def placed(text: str) -> ModuleOp:
    context, module = parsed(text)
    InsertTransfers().apply(context, module)
    module.verify()
    assert not [f.text for f in program_faults(module)]
    return module


def copies(module: ModuleOp) -> list[str]:
    """Of every copy: which side it goes to."""
    found = [op for op in module.walk() if isinstance(op, memref.CopyOp)]
    return ["back" if on_device(op.source) else "in" for op in found]


def test_what_is_between_regions_of_the_device_stays_there():
    module = placed(
        NEGATE
        + """
func.func @main(%x: memref<4xf64>) -> memref<4xf64> {
  %y = memref.alloc() : memref<4xf64>
  %z = memref.alloc() : memref<4xf64>
  func.call @negate(%x, %y) {irkit.device = "cuda"} : (memref<4xf64>, memref<4xf64>) -> ()
  func.call @negate(%y, %z) {irkit.device = "cuda"} : (memref<4xf64>, memref<4xf64>) -> ()
  func.return %z : memref<4xf64>
}"""
    )
    assert copies(module) == ["in", "back"]
    allocs = [op for op in module.walk() if isinstance(op, memref.AllocOp)]
    assert len(allocs) == 4, "x, y and z on the device, and z where it is returned"
    x = np.arange(4.0)
    np.testing.assert_array_equal(run_program(module, IrkitContext().weights, [x])[0], x)


def test_what_a_loop_only_reads_is_copied_before_it():
    module = placed(
        NEGATE
        + """
func.func @main(%x: memref<4xf64>, %y: memref<4xf64>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %9 = arith.constant 9 : index
  scf.for %i = %0 to %9 step %1 {
    func.call @negate(%x, %y) {irkit.device = "cuda"} : (memref<4xf64>, memref<4xf64>) -> ()
    program.call @bump(%y) : memref<4xf64>
  }
  func.return
}"""
    )
    loop = next(op for op in module.walk() if op.name == "scf.for")
    inside = [op for op in loop.walk() if isinstance(op, memref.CopyOp)]
    assert copies(module) == ["in", "back"]
    assert len(inside) == 1, "y comes back for the host, x went before"
    found = run_program(module, IrkitContext().weights, [np.ones(4), np.zeros(4)], HOST)
    np.testing.assert_array_equal(found[0], np.zeros(4))


@pytest.mark.parametrize("missing", [0, 1])
def test_a_copy_that_is_missing_shows(missing: int):
    module = placed(
        NEGATE
        + """
func.func @main(%x: memref<4xf64>) -> memref<4xf64> {
  %y = memref.alloc() : memref<4xf64>
  func.call @negate(%x, %y) {irkit.device = "cuda"} : (memref<4xf64>, memref<4xf64>) -> ()
  program.call @bump(%y) : memref<4xf64>
  func.return %y : memref<4xf64>
}"""
    )
    x = np.arange(4.0)
    weights = IrkitContext().weights
    np.testing.assert_array_equal(run_program(module, weights, [x], HOST)[0], 1 - x)
    found = [op for op in module.walk() if isinstance(op, memref.CopyOp)]
    Rewriter.erase_op(found[missing])
    assert not np.array_equal(run_program(module, weights, [x], HOST)[0], 1 - x)


@pytest.mark.parametrize(
    ("call", "types", "said"),
    [
        ("func.call @negate(%x, %x)", "(memref<4xf64>, memref<4xf64>) -> ()", "runs on the device"),
        ("program.call @bump(%d)", "memref<4xf64, 1 : i64>", "touches an array of the device"),
    ],
)
def test_the_interpreter_keeps_sides_apart(call: str, types: str, said: str):
    on_device = NEGATE.replace("memref<4xf64>", "memref<4xf64, 1 : i64>")
    main = f"""
func.func @main(%x: memref<4xf64>) {{
  %d = memref.alloc() : memref<4xf64, 1 : i64>
  {call} : {types}
  func.return
}}"""
    _, module = parsed(on_device + main)
    with pytest.raises(InvalidModelError, match=said):
        run_program(module, IrkitContext().weights, [np.zeros(4)], HOST)


def test_a_function_on_both_sides_is_two():
    module = placed(
        NEGATE
        + """
func.func @main(%x: memref<4xf64>, %y: memref<4xf64>) {
  func.call @negate(%x, %y) {irkit.device = "cuda"} : (memref<4xf64>, memref<4xf64>) -> ()
  func.call @negate(%y, %x) : (memref<4xf64>, memref<4xf64>) -> ()
  func.return
}"""
    )
    x = np.arange(4.0)
    found = run_program(module, IrkitContext().weights, [x, x])
    np.testing.assert_array_equal(found, [x, -x])
    assert copies(module) == ["in", "back"]


class Tokens:
    """What was written last to every array, by where it lies: a copy of what is there already is one too
    many."""

    def __init__(self) -> None:
        self.tokens: dict[int, object] = {}
        self.copies = 0

    def root(self, array: Any) -> int:
        array = getattr(array, "elements", array)
        while array.base is not None:
            array = array.base
        return array.__array_interface__["data"][0]

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        table = interpreter._STEPS  # pyright: ignore[reportPrivateUsage]

        def copied(op: Any, source: Any, target: Any) -> None:
            token = self.tokens.setdefault(self.root(source), object())
            assert self.tokens.get(self.root(target)) is not token, f"copied twice: {op}"
            self.tokens[self.root(target)] = token
            self.copies += 1

        def written(op: Any, *arrays: Any) -> None:
            for array in arrays:
                self.tokens[self.root(array)] = object()

        def watched(plain: Any, seen: Any) -> Any:
            def read(execution: Any, op: Any) -> Any:
                step = plain(execution, op)

                def watch(values: Any) -> Any:
                    seen(op, *(values[v] for v in op.operands))
                    return step(values)

                return watch

            return read

        seen = {
            memref.CopyOp: copied,
            MaterializeInDestinationOp: lambda op, value, target: written(op, target),
            HostCall: written,
        }
        for kind, look in seen.items():
            monkeypatch.setitem(table, kind, watched(table[kind], look))


def test_nothing_is_copied_twice(monkeypatch: pytest.MonkeyPatch):
    tokens = Tokens()
    tokens.watch(monkeypatch)
    for seed in range(60):
        program = random_program(random.Random(f"twice {seed}"), calls=True)
        built, rng = program.build(), random.Random(seed)
        context = IrkitContext(weights=built.weights)
        FormRegions().apply(context, built.module)
        for op in built.module.walk():
            if isinstance(op, CallOp):
                op.attributes[DEVICE] = StringAttr(rng.choice((CPU, CUDA)))
        InsertTransfers().apply(context, built.module)
        tokens.tokens.clear()
        run_program(built.module, built.weights, program.inputs(seed), HOST)
    assert tokens.copies > 50
