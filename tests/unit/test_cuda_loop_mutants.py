"""The persistent kernel of programs with loops, attacked: an emulator of grids finds what changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulated_loops import Emulated, emitted, parsed, register_gpu4, same
from grid_emulator import GridError
from test_loops import jacobi

from irkit.interp import run_module
from irkit.lower.task_to_numba.walkers_cuda import layout_of
from irkit.runtime.cuda.facts import read_facts
from irkit.weights import WeightStore


@pytest.fixture(autouse=True)
def gpu4(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device that programs are for."""
    register_gpu4(monkeypatch)


SLICES = """
func.func @main(%x: tensor<6x70xf64>, %w: tensor<70xf64>) -> (tensor<6x70xf64>, tensor<70xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %x, %s = %w)
      -> (tensor<6x70xf64>, tensor<70xf64>) {
    %next = arith.addi %i, %c1 : index
    %row = tensor.extract_slice %acc[%i, 0] [1, 70] [1, 1] : tensor<6x70xf64> to tensor<70xf64>
    %back = graph.slice %row {offsets = array<i64: 69>, sizes = array<i64: 70>, strides = array<i64: -1>}
        : (tensor<70xf64>) -> tensor<70xf64>
    %a = graph.add %s, %back : (tensor<70xf64>, tensor<70xf64>) -> tensor<70xf64>
    %acc1 = tensor.insert_slice %a into %acc[%next, 0] [1, 70] [1, 1] : tensor<70xf64> into tensor<6x70xf64>
    scf.yield %acc1, %a : tensor<6x70xf64>, tensor<70xf64>
  }
  func.return %r#0, %r#1 : tensor<6x70xf64>, tensor<70xf64>
}
"""
"""Each turn reads, from the other end, the row that other blocks wrote in the turn before."""

NESTED = """
func.func @main(%x: tensor<5x5xf64>) -> tensor<5x5xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (tensor<5x5xf64>) {
    %s = scf.for %j = %c0 to %c4 step %c1 iter_args(%b = %a) -> (tensor<5x5xf64>) {
      %down = arith.addi %i, %c1 : index
      %right = arith.addi %j, %c1 : index
      %v = tensor.extract_slice %b[%i, %j] [1, 1] [1, 1] : tensor<5x5xf64> to tensor<1x1xf64>
      %w = tensor.extract_slice %b[%down, %right] [1, 1] [1, 1] : tensor<5x5xf64> to tensor<1x1xf64>
      %t = graph.add %v, %w : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
      %b1 = tensor.insert_slice %t into %b[%down, %right] [1, 1] [1, 1] : tensor<1x1xf64> into tensor<5x5xf64>
      scf.yield %b1 : tensor<5x5xf64>
    }
    scf.yield %s : tensor<5x5xf64>
  }
  func.return %r : tensor<5x5xf64>
}
"""

MUTANTS = {
    "no meeting": ("if thread == 0 and met > 0:", "if thread == 0 and met > 99:"),
    "a meeting too few": ("(before + met) * block_count()", "(before + met - 1) * block_count()"),
    "a meeting of all but one": ("+ met) * block_count()", "+ met) * block_count() - 1"),
    "a meeting too many": ("(before + met) * block_count()", "(before + met + 1) * block_count()"),
    "meetings of the first call": ("before = (epoch - 1) * ", "before = 0 * "),
    "a wait of the turn before": ("+ table[RAN_AT + line] + 1", "+ table[RAN_AT + line]"),
    "a wait of the next turn": ("+ table[RAN_AT + line] + 1", "+ table[RAN_AT + line] + 2"),
    "waits of the first turn": ("            table[RAN_AT + line] += 1\n", ""),
    "waits of the first call": ("turn = (epoch - 1) * table", "turn = 0 * table"),
    "bases that stay": ("address += table[word + 3 + loop] * table[TURNS_AT + loop]", "pass"),
    "bases as they were before": (
        "        move_bases(table, shared_of(int64(0), BASE_TABLE), table[word + 3], table[word + 4])\n",
        "",
    ),
    "a turn more": ("if table[loop] < table[word + 2]:", "if table[loop] <= table[word + 2]:"),
    "a turn less": ("if table[loop] < table[word + 2]:", "if table[loop] < table[word + 2] - 1:"),
    "turns that go on from loop to loop": (
        "table[loop] = 0\n        else",
        "table[loop] = table[loop]\n        else",
    ),
    "a table that is not copied anew": (
        "copy16(int64(address_of(table)), steps",
        "if epoch == 1:\n        copy16(int64(address_of(table)), steps",
    ),
    "no signal": ("red_release_add(counters + counter", "red_release_add(counters + 0 * counter"),
}
"""What the text of the persistent kernel says -> what it would be if it were wrong."""


SHOWN_BY = {
    "turns that go on from loop to loop": "nested",
    **dict.fromkeys((name for name in MUTANTS if "wait" in name or "signal" in name), "jacobi"),
}
"""What program shows it, if not `SLICES`."""


def mutated(source: str, change: str) -> str:
    """The module with one change in its persistent kernel, in whose placeholders' stead numbers stand."""
    program, _ = read_facts(source)
    names = layout_of(program).names()

    def filled(text: str) -> str:
        for name in sorted(names, key=len, reverse=True):
            text = text.replace(name, names[name])
        return text

    old, new = map(filled, MUTANTS[change])
    assert source.count(old) == 1, old
    return source.replace(old, new)


def found_wrong(
    monkeypatch: Any, source: str, weights: Any, wanted: Any, inputs: Any, seeds: Any
) -> bool:
    """Whether a kernel gives another answer, or none, in some order."""
    for seed in seeds:
        run = Emulated(monkeypatch, source, weights, "persistent", seed)
        try:
            if not all(same(run(*inputs), wanted) for _ in range(2)):
                return True
        except GridError:
            return True
    return False


@pytest.mark.parametrize("change", [None, *MUTANTS])
def test_changed_kernels_are_found(monkeypatch: pytest.MonkeyPatch, change: str | None) -> None:
    """A program is run twice, in some orders of its blocks: no change is right in all of them."""
    rng = np.random.default_rng(4)
    programs = {
        "slices": (SLICES, [rng.normal(size=(6, 70)), rng.normal(size=70)]),
        "jacobi": (jacobi(200, 3), [rng.normal(size=200), rng.normal(size=200)]),
        "nested": (NESTED, [rng.normal(size=(5, 5))]),
    }
    for name, (text, inputs) in programs.items():
        if change is not None and SHOWN_BY.get(change, "slices") != name:
            continue
        source, weights = emitted(text)
        wanted = run_module(parsed(text), WeightStore(), inputs, level="graph")
        changed = source if change is None else mutated(source, change)
        seeds = range(1 if change is None else 6)
        found = found_wrong(monkeypatch, changed, weights, wanted, inputs, seeds)
        assert found == (change is not None)
