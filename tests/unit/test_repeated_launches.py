"""Launches of which the like came before: what was worked out serves again, and what has changed is seen."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.dags.kernels import NumbaLaunch
from irkit.dags.located import address_of
from irkit.dags.mock import MockDevice
from irkit.errors import UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore:Grid size:Warning")
Array = np.ndarray[Any, Any]
cuda: Any = import_module("numba.cuda")


@cuda.jit
def axpy(a: Any, x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@cuda.jit
def fill(x: Any, n: Any) -> None:
    i = cuda.grid(1)
    if i < n:
        x[i] = 2


@cuda.jit
def shift(x: Any) -> None:
    i = cuda.grid(1)
    if i < x.size - 1:
        x[i] = x[i + 1] * 3 + i


@cuda.jit
def into(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i < y.size:
        x[i] += y[i]


def axpy_model(a: float, x: Array, y: Array) -> None:
    y[...] = a * x + y


def fill_model(x: Array, n: int) -> None:
    x[:n] = 2


def shift_model(x: Array) -> None:
    x[:-1] = x[1:] * 3 + np.arange(x.size - 1)


def into_model(x: Array, y: Array) -> None:
    x[: y.size] += y


MODELS: dict[str, Callable[..., None]] = {
    "axpy": axpy_model, "fill": fill_model, "shift": shift_model, "into": into_model
}  # fmt: skip


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels whose launches were worked out, as they came."""
    names: list[str] = []
    uses = NumbaLaunch.uses

    def noted(self: NumbaLaunch, check: bool) -> Any:
        names.append(self.name)
        return uses(self, check)

    monkeypatch.setattr(NumbaLaunch, "uses", noted)
    return names


def test_equal_launches_are_worked_out_once(worked_out: list[str]) -> None:
    x, y = np.arange(16.0), np.zeros(16)
    with irkit.dag(MockDevice(0, MODELS), eager=True) as d:
        inner = d.empty(16)
        fill[1, 32](inner, 16)
        for n in range(10):
            axpy[1, 32](float(n), x, y)
            # Views are made anew each time.
            axpy[1, 32](1.0, x[4:8], inner[2:6])
        assert worked_out == ["fill", "axpy", "axpy"]
        assert d.read(inner)[2] == 2 + 40
    assert y[1] == 45


def calls_of(run: Callable[[], None]) -> int:
    """How many functions of Python's a call takes."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


class Still(MockDevice):
    """Nothing of it is done, nor ends, before it is waited for."""

    def done(self, event: Any) -> bool:
        return event.done


def test_a_launch_that_came_before_takes_few_calls() -> None:
    device = Still(0, MODELS)
    with irkit.dag(device, eager=True) as d:
        x, y = d.empty(16), d.empty(16)
        fill[1, 32](x, 16)
        fill[1, 32](y, 16)

        def launch() -> None:
            axpy[1, 32](2.0, x, y)

        first = calls_of(launch)
        launch()
        again = calls_of(launch)
    assert again < 100 < first / 4


CHANGES: dict[str, Callable[[Array], Any]] = {
    "shape": lambda x: x[:8],
    "offset": lambda x: x[1:13],
    "strides": lambda x: x[::2][:12],
    "reversed": lambda x: x[:12][::-1],
    "type": lambda x: x[:12].view(np.int64),
    "allocation": lambda x: x[:12].copy(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_seen(change: str, worked_out: list[str]) -> None:
    x, z = np.arange(24.0), np.arange(24.0)
    changed, right = CHANGES[change](x), CHANGES[change](z)
    with irkit.dag(MockDevice(1, MODELS), eager=True):
        shift[1, 32](x[:12])
        shift[1, 32](x[:12])
        shift[1, 32](changed)
        assert worked_out == ["shift"] * 2
    for one in (z[:12], z[:12], right):
        shift_model(one)
    np.testing.assert_array_equal(x, z)
    np.testing.assert_array_equal(changed, right)


def test_arrays_that_are_one_are_seen(worked_out: list[str]) -> None:
    """Another pattern of the same arrays is another launch."""
    x, y = np.arange(16.0), np.ones(16)
    right = x.copy(), y.copy()

    def patterns(x: Array, y: Array) -> list[tuple[Array, Array]]:
        return [(x[:8], y[:8]), (x[:8], x[:8]), (x[8:], x[:8]), (x[:8], y[:8])]

    with irkit.dag(MockDevice(2, MODELS), eager=True):
        for a, b in patterns(x, y):
            axpy[1, 32](2.0, a, b)
        assert len(worked_out) == 3
    for a, b in patterns(*right):
        axpy_model(2.0, a, b)
    np.testing.assert_array_equal(x, right[0])
    np.testing.assert_array_equal(y, right[1])


def test_a_bound_that_is_given_counts() -> None:
    """What writes all of an array needs none of it; the next launch, of a smaller bound, does."""
    x = np.zeros(8)

    def set_all(x: Array) -> None:
        x[...] = 5

    with irkit.dag(MockDevice(3, MODELS), eager=True) as d:
        fill[1, 32](x, 8)
        d.call(set_all, x)
        fill[1, 32](x, 4)
        d.call(set_all, x)
        fill[1, 32](x, 4)
        d.call(set_all, x[:0])
        d.read(x)
        np.testing.assert_array_equal(x, [2] * 4 + [5] * 4)


def test_arrays_that_turn_read_only_are_refused() -> None:
    x = np.zeros(8)
    with irkit.dag(MockDevice(0, MODELS), eager=True):
        fill[1, 32](x, 8)
        fill[1, 32](x, 8)
        x.flags.writeable = False
        with pytest.raises(UnsupportedError, match="readonly"):
            fill[1, 32](x, 8)
        x.flags.writeable = True


def test_numbers_of_other_types_are_other_launches(worked_out: list[str]) -> None:
    x, y = np.ones(4), np.zeros(4)
    with irkit.dag(MockDevice(0, MODELS), eager=True):
        for a in (2, 2.0, np.float32(2), True, 3, 3.0, 1 << 63):
            axpy[1, 32](a, x, y)
    # Of a whole number that is so large Numba may make another type.
    assert len(worked_out) == 5
    assert y[0] == 2 + 2 + 2 + 1 + 3 + 3 + 2.0**63


def test_an_array_in_the_place_of_another_is_its_own() -> None:
    """Memory of the host that was freed and is there again, in another array, is copied anew."""
    device = MockDevice(0, MODELS)
    seen: set[int] = set()
    with irkit.dag(device, eager=True) as d:
        y = np.zeros(2000)
        for n in range(40):
            x = np.full(2000, float(n))
            seen.add(address_of(x))
            axpy[1, 32](1.0, x, y)
            d.wait()
            del x
        d.read(y)
    assert len(seen) < 40
    assert y[0] == sum(range(40))


KERNELS: dict[str, Any] = {"axpy": axpy, "fill": fill, "shift": shift, "into": into}
Entry = tuple[int, ...]


def launched(name: str, *given: Any) -> None:
    KERNELS[name][1, 32](*given)


def modelled(name: str, *given: Any) -> None:
    MODELS[name](*given)


def do(launch: Callable[..., None], held: list[Any], entry: Entry, bound: int) -> None:
    """A launch of the stock: which kernel, of which arrays, from where."""
    kind, a, b, low, high = entry
    x, y = held[a][4 * low : 4 * low + 8], held[b][4 * high : 4 * high + 8]
    apart = a != b or abs(low - high) > 1
    if kind == 0 and apart:
        launch("axpy", 0.5, x, y)
    elif kind == 1:
        launch("fill", x, bound)
    elif kind == 2:
        launch("shift", y)
    elif apart:
        launch("into", x, y[:5])


def halved(x: Array) -> None:
    np.mod(x, 97, out=x)


@pytest.mark.parametrize("seed", range(30))
def test_random_launches_from_a_small_stock(seed: int) -> None:
    """The same few launches again and again, among functions of the host, on arrays of both sides."""
    rng = np.random.default_rng(seed)
    device = MockDevice(seed, MODELS)
    arrays = [np.arange(24.0) % (3 + n) for n in range(3)]
    right = [a.copy() for a in arrays]
    inner, other = device.array(np.arange(24.0) % 5), np.arange(24.0) % 5
    stock = [tuple(int(rng.integers(n)) for n in (4, 4, 4, 3, 3)) for _ in range(6)]
    with irkit.dag(device, eager=True, streams=1 + seed % 4) as d:
        for step in range(40):
            entry, bound = stock[int(rng.integers(6))], 3 + 5 * int(rng.integers(2))
            do(launched, [*arrays, inner], entry, bound)
            do(modelled, [*right, other], entry, bound)
            if step % 7 == 3:
                n = int(rng.integers(3))
                d.call(halved, arrays[n][4:20])
                halved(right[n][4:20])
        got = d.read(inner)
    for n in range(3):
        np.testing.assert_array_equal(arrays[n], right[n])
    np.testing.assert_array_equal(got, other)


def test_a_launch_that_joins_allocations_waits_for_all_of_them() -> None:
    """Of two uses the second shows that the first is in the same allocation as another launch's."""
    wrong = 0
    for seed in range(20):
        device = MockDevice(seed, MODELS)
        inner, y = device.array(np.ones(16)), device.array(np.zeros(8))
        with irkit.dag(device, eager=True) as d:
            shift[1, 32](inner[:4])
            axpy[1, 32](1.0, inner[8:], y)
            # It writes what the launch before reads, and reads across.
            into[1, 32](inner[8:], inner[1:9])
            wrong += bool((d.read(y) != 1).any())
    assert not wrong


def test_errors_of_launches_that_came_before_say_the_line() -> None:
    class Broken(MockDevice):
        failing = False

        def start(self, launch: Any, stream: Any) -> None:
            if self.failing:
                raise irkit.errors.DeviceError("it is lost")
            super().start(launch, stream)

    device = Broken(0, MODELS)
    d = irkit.dag(device, eager=True)

    def launches() -> None:
        x = d.empty(8)
        for n in range(3):
            device.failing = n == 2
            fill[1, 32](x, 8)

    with (
        pytest.raises(
            irkit.errors.DeviceError, match=r"^test_repeated_launches.py:\d+: 'fill': it is"
        ),
        d,
    ):
        launches()
