"""The proof of schedules in loops, attacked: what is changed is refused, though each program is proved."""

from __future__ import annotations

import re
from functools import cache

import pytest

import irkit
from irkit.context import IrkitContext
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.pipelines.lowering import bring_to_level
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import InvalidModelError, ScheduleError
from irkit.lower.task_to_numba.emit import emit_module

LOOPS = """
func.func @main(%x: tensor<6x8xf64>, %w: tensor<8xf64>) -> (tensor<6x8xf64>, tensor<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant dense<0.0> : tensor<6x8xf64>
  %r:2 = scf.for %i = %c1 to %c5 step %c1 iter_args(%acc = %zero, %s = %w)
      -> (tensor<6x8xf64>, tensor<8xf64>) {
    %im = arith.subi %i, %c1 : index
    %row = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<6x8xf64> to tensor<8xf64>
    %prev = tensor.extract_slice %acc[%im, 0] [1, 8] [1, 1] : tensor<6x8xf64> to tensor<8xf64>
    %a = graph.mul %row, %w : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
    %b = graph.add %a, %prev : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
    %acc1 = tensor.insert_slice %b into %acc[%i, 0] [1, 8] [1, 1] : tensor<8xf64> into tensor<6x8xf64>
    %cur = tensor.extract_slice %acc1[%i, 0] [1, 8] [1, 1] : tensor<6x8xf64> to tensor<8xf64>
    %t = graph.add %cur, %s : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
    %acc2 = tensor.insert_slice %t into %acc1[%i, 0] [1, 8] [1, 1] : tensor<8xf64> into tensor<6x8xf64>
    %u = graph.add %s, %t : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
    scf.yield %acc2, %u : tensor<6x8xf64>, tensor<8xf64>
  }
  %v = graph.add %r#1, %w : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  func.return %r#0, %v : tensor<6x8xf64>, tensor<8xf64>
}
"""
RUN = re.compile(r"^ *task\.run .*$", re.MULTILINE)


def context() -> IrkitContext:
    ctx = IrkitContext()
    register_dialects(ctx)
    return ctx


@cache
def scheduled() -> str:
    """The text of a proved schedule, without its proof."""
    ctx = context()
    module = irkit.parse(LOOPS)
    module = getattr(module, "module", module)
    bring_to_level(ctx, module, "schedule", "cpu2")
    return re.sub(r', modes = \[[^\]]*\], verified = "[^"]*"', "", str(module))


def prove(text: str):
    module = irkit.parse(text)
    module = getattr(module, "module", module)
    PipelineRunner(context()).run(module, build_pipeline("verify-schedule", all_passes()))
    return module


def composite(text: str) -> str:
    return text[text.index("task.composite") :]


def test_the_schedule_is_what_the_attacks_expect():
    text = composite(scheduled())
    assert text.count("task.run") == 4
    assert text.count("task.repeat 4 {") == 1
    assert "step [64]" in text
    assert 'verified = "' in str(prove(scheduled()))


def swapped(text: str, first: int, second: int) -> str:
    """Two runs in each other's place."""
    lines = RUN.findall(text)
    a, b = lines[first], lines[second]
    return text.replace(a, "<a>").replace(b, a).replace("<a>", b)


CHANGES = {
    "one iteration more": lambda t: t.replace("repeat 4", "repeat 5"),
    "one iteration fewer": lambda t: t.replace("repeat 4", "repeat 3"),
    "the first slice further on": lambda t: t.replace("%x at 64", "%x at 128", 1),
    "the first slice between two elements": lambda t: t.replace("%x at 64", "%x at 60", 1),
    "a slice before the buffer": lambda t: t.replace("%x at 64", "%x at -64", 1),
    "a step twice as long": lambda t: t.replace("%x at 64 step [64]", "%x at 64 step [128]", 1),
    "a step that is none": lambda t: t.replace("%x at 64 step [64]", "%x at 64", 1),
    "the old row for the new one": lambda t: re.sub(
        r"writes\((%\w+) at 64", r"writes(\1 at 0", t, count=1
    ),
    "the new row read": lambda t: re.sub(r"(%r\w*) at 0 step", r"\1 at 64 step", t, count=1),
    "state elsewhere": lambda t: re.sub(r"state\((%\w+) at 64", r"state(\1 at 128", t, count=1),
    "state that does not move": lambda t: re.sub(
        r"state\((%\w+) at 64 step \[64\]", r"state(\1 at 64", t
    ),
    "the other input": lambda t: t.replace("reads(%w)", "reads(%x)"),
    "a run less": lambda t: t.replace(RUN.findall(t)[1] + "\n", ""),
    "the copy before the loop left out": lambda t: t.replace(RUN.findall(t)[0] + "\n", ""),
    "a run more": lambda t: t.replace(
        RUN.findall(t)[3], f"{RUN.findall(t)[3]}\n{RUN.findall(t)[3]}"
    ),
    "runs of an iteration in the other order": lambda t: swapped(t, 1, 2),
    "another run behind the loop": lambda t: swapped(t, 0, 3),
    "outputs in each other's place": lambda t: t.replace(
        "port = 1 : i64} : tensor<8", "port = 7 : i64} : tensor<8"
    ),
    "too few bytes": lambda t: re.sub(r"link_bytes = \d+", "link_bytes = 0", t),
    "a buffer elsewhere": lambda t: re.sub(
        r'"arena", offset = \d+', '"arena", offset = 8', t, count=1
    ),
    "a program that is not there": lambda t: t.replace(
        "task.run @main_part0", "task.run @main_part9"
    ),
    "another program": lambda t: t.replace("task.run @main_part0", "task.run @main_part1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_schedule_is_refused(change: str):
    text = scheduled()
    start = text.index("task.composite")
    changed = text[:start] + CHANGES[change](text[start:])
    assert changed != text, "the attack changes nothing"
    with pytest.raises(
        (UserError, InvalidModelError), match=r"violates rule|expects|no such|undefined"
    ):
        prove(changed)


KEPT = """
func.func @main(%x: tensor<6x8xf64>, %w: tensor<8xf64>, %h: tensor<1x8xf64>)
    -> (tensor<1x8xf64>, tensor<8xf64>, tensor<1x8xf64>) attributes {irkit.state = array<i64: 2, 2, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%s = %h) -> (tensor<1x8xf64>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<6x8xf64> to tensor<1x8xf64>
    %a = graph.mul %row, %w : (tensor<1x8xf64>, tensor<8xf64>) -> tensor<1x8xf64>
    %b = graph.add %a, %s : (tensor<1x8xf64>, tensor<1x8xf64>) -> tensor<1x8xf64>
    scf.yield %b : tensor<1x8xf64>
  }
  %y = graph.tanh %r : (tensor<1x8xf64>) -> tensor<1x8xf64>
  %flat = graph.reshape %y {shape = array<i64: 8>} : (tensor<1x8xf64>) -> tensor<8xf64>
  %n = graph.sub %w, %flat : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  func.return %y, %n, %r : tensor<1x8xf64>, tensor<8xf64>, tensor<1x8xf64>
}
"""


@cache
def scheduled_with_state() -> str:
    ctx = context()
    module = irkit.parse(KEPT)
    module = getattr(module, "module", module)
    bring_to_level(ctx, module, "schedule", "cpu2")
    return re.sub(r', modes = \[[^\]]*\], verified = "[^"]*"', "", str(module))


OF_STATE = {
    "state as an input": lambda t: t.replace(
        'space = "state", port = 1', 'space = "input", port = 1'
    ),
    "state as an output": lambda t: t.replace(
        'space = "state", port = 0', 'space = "output", port = 2'
    ),
    "pairs in each other's place": lambda t: (
        t.replace("port = 1 : i64} : tensor<8x", "port = 9 : i64} : tensor<8x")
        .replace('"state", port = 1', '"state", port = 8')
        .replace('"state", port = 0', '"state", port = 1')
        .replace('"state", port = 8', '"state", port = 0')
    ),
    "a pair that there is not": lambda t: t.replace('"state", port = 1', '"state", port = 2'),
    "the loop hands on another pair": lambda t: t.replace("state(%h)", "state(%w)", 1),
    "the update before the loop": lambda t: swapped_with_loop(t),
    "the update left out": lambda t: t.replace(RUN.findall(t)[-1] + "\n", ""),
}


def swapped_with_loop(text: str) -> str:
    """The last run before the loop."""
    last = RUN.findall(text)[-1]
    return text.replace(last + "\n", "").replace("    task.repeat", last + "\n    task.repeat", 1)


@pytest.mark.parametrize("change", OF_STATE)
def test_changed_state_is_refused(change: str):
    text = scheduled_with_state()
    assert 'verified = "' in str(prove(text))
    start = text.index("task.composite")
    changed = text[:start] + OF_STATE[change](text[start:])
    assert changed != text, "the attack changes nothing"
    with pytest.raises(
        (UserError, InvalidModelError), match=r"violates rule|expects|no such|undefined"
    ):
        prove(changed)


def test_what_was_proved_is_what_is_emitted():
    module = prove(scheduled())
    text = str(module).replace("task.repeat 4", "task.repeat 3")
    changed = irkit.parse(text)
    changed = getattr(changed, "module", changed)
    with pytest.raises(ScheduleError, match="not what was proved"):
        emit_module(changed, context().weights)
