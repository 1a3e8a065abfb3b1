"""`irkit.jit` with a GPU that is none: what is compiled for it is interpreted, copies are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter
from xdsl.dialects import memref
from xdsl.rewriter import Rewriter

import irkit
from irkit.dags import gpu
from irkit.dags.host_programs import HostProgramRunner
from irkit.driver.programs import placing
from irkit.errors import DeviceError
from irkit.passes.host.host_program import host_program
from tests.unit.jitted import compare
from tests.unit.on_both import Counting


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """The device that stands in for the GPU."""
    made = Counting(7)
    monkeypatch.setattr(placing, "why_elsewhere", lambda device: None)
    monkeypatch.setattr(placing, "keep_link", lambda device: {})
    monkeypatch.setattr(gpu, "GpuDevice", lambda: made)
    return made


def on_gpu(function: Any) -> Any:
    return irkit.jit(target="cuda", device="h200")(function)


def check(function: Any, jitted: Any, *args: Any, tolerance: float = 1e-12) -> None:
    ours, theirs = [np.copy(a) for a in args], [np.copy(a) for a in args]
    compare(jitted(*ours), function(*theirs), tolerance, "result")
    compare(ours, theirs, tolerance, "argument")


def smooth(x: Any) -> Any:
    """A function of the host that writes nothing, by its annotation."""
    return lfilter([0.5, 0.5], [1.0], x)


irkit.annotate(smooth, result="x")


def filtered(x: Any, y: Any) -> Any:
    """Two products on the device, the host between them, and `y` in place."""
    a = x @ y
    b = smooth(a[0])
    y += 1
    return a @ y + b, np.sqrt(a)


def numbers(side: int = 12) -> list[Any]:
    rng = np.random.default_rng(side)
    return [rng.random((side, side)), rng.random((side, side))]


def test_what_is_planned_is_copied(device: Counting):
    jitted = on_gpu(filtered)
    check(filtered, jitted, *numbers())
    device.copies.clear()
    taken = device.used
    check(filtered, jitted, *numbers())
    report, text = jitted.report(), jitted.ir("program")
    kinds = [kind for _, kind in report["tasks"]]
    assert device.copies["to_device"] == kinds.count("to_device")
    assert device.copies["to_host"] == kinds.count("to_host")
    assert text.count('"memref.copy"') == kinds.count("to_device") + kinds.count("to_host")
    side = 12 * 12 * 8
    # x, y and what the filter gave go there; the product for it, y and two results come back.
    assert device.copies["bytes to_device"] == 2 * side + 12 * 8
    assert device.copies["bytes to_host"] == 4 * side
    assert device.used == taken, "memory serves the next call"
    assert "host.task" in jitted.ir("host")
    assert "verified" in jitted.ir("host")
    assert "on the device" in jitted.explain()
    assert jitted.timelines()[0].veus > 1
    assert "sm_90" in jitted.source or "cuda" in jitted.source


def test_no_transfer_may_be_dropped(device: Counting):
    """Whatever copy is left out, what comes of it is wrong."""
    jitted, args = on_gpu(filtered), numbers()
    jitted(*args)
    planned: Any = jitted._last.runner._runner  # pyright: ignore
    module, functions = planned._module, planned.runner._functions
    want = planned.runner.execute(args)
    copies = sum(isinstance(op, memref.CopyOp) for op in module.walk())
    assert copies == 7
    for number in range(copies):
        mutant = module.clone()
        Rewriter.erase_op([op for op in mutant.walk() if isinstance(op, memref.CopyOp)][number])
        made = host_program(mutant, keep_arguments=True)
        runner = HostProgramRunner(made, Counting(number), functions, policy="disjoint")
        got = runner.execute(args)
        found = [*got.results, *got.left.values()]
        expected = [*want.results, *want.left.values()]
        same = len(found) == len(expected) and all(map(np.array_equal, found, expected))
        assert not same, number


def test_both_sides(device: Counting):
    def mixed(a: Any, b: Any, v: Any) -> Any:
        v += 1
        return a @ b, v * 2

    jitted = irkit.jit(device="h200")(mixed)
    args = [*numbers(256), np.arange(5.0)]
    check(mixed, jitted, *args, tolerance=1e-10)
    assert device.copies == {
        "to_device": 2,
        "bytes to_device": 2 * 256 * 256 * 8,
        "to_host": 1,
        "bytes to_host": 256 * 256 * 8,
    }


@pytest.mark.parametrize("after", range(6))
def test_a_device_that_is_lost_in_the_middle(device: Counting, after: int):
    jitted, args = on_gpu(filtered), numbers()
    jitted.compile(*args)
    before = [a.copy() for a in args]
    device.fails_after = after
    with pytest.raises(
        DeviceError, match=r"'to (device|host): .*test_jit_on_both.*the device is lost"
    ):
        jitted(*args)
    compare(args, before, 0, "argument")
    assert device.used == 0
    device.fails_after = None
    check(filtered, jitted, *args)


def test_no_memory(device: Counting):
    jitted, args = on_gpu(filtered), numbers()
    jitted.compile(*args)
    device._left = 3000  # pyright: ignore
    before = [a.copy() for a in args]
    with pytest.raises(DeviceError, match=r"memory of the device for '.*': the mock device has"):
        jitted(*args)
    compare(args, before, 0, "argument")
    assert device.used == 0


def test_another_size(device: Counting):
    """Each size has a program and memory of its own."""
    jitted = on_gpu(filtered)
    for side in (12, 5, 12):
        check(filtered, jitted, *numbers(side))
    x, y = np.arange(144.0), np.ones((12, 12))
    x.resize((10, 12), refcheck=False)
    check(filtered, jitted, x, y)


def test_an_error_of_the_host(device: Counting):
    def fails(x: Any) -> Any:
        y = x * 2
        x += 1
        return lfilter([1.0, 0.5], [], y)

    x = np.ones(8)
    with pytest.raises(ValueError, match="non-empty"):
        on_gpu(fails)(x)
    np.testing.assert_array_equal(x, np.ones(8))


def test_a_loop_of_the_host(device: Counting):
    def stepped(x: Any, y: Any) -> Any:
        for i in irkit.range(6):
            x = np.sin(x) + y
            y[i] = lfilter([0.5, 0.5], [1.0], x)[0] + i
        return x

    jitted = on_gpu(stepped)
    check(stepped, jitted, np.linspace(0, 1, 8), np.linspace(0, 1, 8))


def test_a_loop_that_asks_runs_region_by_region(device: Counting):
    def halved(x: Any) -> Any:
        (y,) = irkit.while_loop(
            lambda y: lfilter([1.0], [1.0], y).max() > 0.1, lambda y: (y / 2,), (x,)
        )
        return y

    jitted = irkit.jit(device="h200")(halved)
    check(halved, jitted, np.linspace(0, 1, 8))


def slow(x: Any) -> Any:
    """A function of the host whose cost is known."""
    return lfilter([0.5, 0.5], [1.0], x)


irkit.annotate(slow, result="x", cost=lambda x: 2e6 * x.shape[0])


def test_the_cost_of_an_annotation_is_planned_with(device: Counting):
    def run(x: Any) -> Any:
        y = slow(x * 2)
        for _ in range(6):
            y = slow(y + 1)
        return y

    jitted = on_gpu(run)
    check(run, jitted, np.linspace(0, 1, 8))
    tasks = jitted._last.runner._runner.runner.plan.tasks  # pyright: ignore
    found = [t.cost_ns for t in tasks if t.kind == "function"]
    assert found == [16e6] * 7, [t.name for t in tasks]
    assert "the host 112 ms" in jitted.explain()


def test_a_cost_that_is_none(device: Counting):
    def odd(x: Any) -> Any:
        return lfilter([1.0], [1.0], x)

    def run(x: Any) -> Any:
        return odd(x * 2)

    irkit.annotate(odd, result="x", cost=lambda x: "much")
    with pytest.raises(irkit.UnsupportedError, match=r"'.*odd' costs 'much', by its"):
        on_gpu(run)(np.ones(4))
