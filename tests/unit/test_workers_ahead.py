"""Processes that compile are started once it is known how many rOperators there will be."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import subprocess
import sys

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

import irkit
from irkit.dialects.task import ROperatorOp, YieldOp
from irkit.driver.compiler import compile as front_door
from irkit.driver.compiler import workers_ahead
from irkit.driver.compiler.workers_ahead import FEWEST, WorkersAhead
from irkit.passes.task.form_roperators import FormROperators
from irkit.passes.task.pack_products import PackProducts
from irkit.runtime import machine_code, side_by_side


def module_of(count: int) -> ModuleOp:
    bodies = [Region(Block([YieldOp.create()])) for _ in range(count)]
    return ModuleOp([ROperatorOp(f"map_{n}", body) for n, body in enumerate(bodies)])


@pytest.mark.parametrize("target", sorted(FEWEST))
def test_as_soon_as_rOperators_are_formed_where_there_are_enough(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    def start(step: str, requests: int) -> None:
        asked.append((step, requests))

    monkeypatch.setattr(workers_ahead, "start_ahead", start)
    watching = WorkersAhead(target)
    fewest = FEWEST[target]
    watching.after(module_of(fewest - 1), FormROperators(), 0.0)
    watching.after(module_of(fewest), PackProducts(), 0.0)
    assert asked == []
    watching.after(module_of(fewest), FormROperators(), 0.0)
    assert asked == [(target, fewest)]


def test_workers_end_with_the_outermost_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are there when an artifact is finished make machine code of it."""
    with side_by_side.none_left_over():
        with side_by_side.none_left_over():
            worker = subprocess.Popen(
                [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            side_by_side._ahead.append(worker)
        assert worker.poll() is None
    assert worker.poll() is not None


def test_compile_holds_them_until_machine_code_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    load = front_door.Variant

    def seen(*arguments: object) -> object:
        held.append(side_by_side._Scopes.count)
        return load(*arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(front_door, "Variant", seen)
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"
    irkit.compile(irkit.parse(text), target="cpu", cache=False)
    assert held == [1]
    assert side_by_side._Scopes.count == 0


def test_what_warms_a_worker_compiles() -> None:
    machine_code.warm()
