"""How many cores a schedule uses: few where waking and waiting would take longer than they save."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mlps import Mlp
from onnx_nodes import model, node
from schedule_toys import split

import irkit
from irkit.schedule.devices import device
from irkit.schedule.makespan import makespan
from irkit.schedule.model import Access, Append, Buffer, Launch, Schedule, VDevice
from irkit.schedule.verifier import verify_schedule
from irkit.schedule.waits import derive_waits
from irkit.schedule.wavefront import place_wavefront
from irkit.schedule.widths import of_best_width


def chain(cost_ns: float, length: int, device: VDevice) -> Schedule:
    """A chain of launches of 16 rTasks, each of which reads all that the one before wrote."""
    buffers = [Buffer("b0", "input", (16,), 8, port=0)]
    launches: list[Launch] = []
    for n in range(length):
        last = n == length - 1
        buffers.append(Buffer(f"b{n + 1}", "output" if last else "arena", (16,), 8, port=0))
        whole, parts = np.array([[[0, 16]]] * 16), split((16,), 16, 0)
        reads, writes = (Access(n, whole),), (Access(n + 1, parts),)
        launches.append(Launch(f"l{n}", "s", 16, reads, writes, cost_ns))
    return derive_waits(place_wavefront(buffers, launches, device))


def used(schedule: Schedule) -> int:
    return max(append.first_veu + append.veus for append in schedule.appends)


@pytest.mark.parametrize(
    ("cost_ns", "most", "least"), [(20.0, 2, 1), (3_000.0, 8, 4), (10_000_000.0, 16, 16)]
)
def test_a_cpu_uses_no_more_cores_than_help(cost_ns: float, most: int, least: int) -> None:
    cpu = device("cpu16")
    found = of_best_width(cpu, lambda some: chain(cost_ns, 3, some))
    assert least <= used(found) <= most
    assert found.device == cpu
    for veus in (16, 8, 4, 2):
        other = replace(chain(cost_ns, 3, replace(cpu, veus=veus)), device=cpu)
        assert makespan(found, 1) <= makespan(other, 1)


def test_a_schedule_of_few_cores_is_proved_as_one_of_the_device() -> None:
    cpu = device("cpu16")
    found = of_best_width(cpu, lambda some: chain(20.0, 1, some))
    verify_schedule(found)


@pytest.mark.parametrize("name", ["h200", "test4"])
def test_other_devices_are_used_whole(name: str) -> None:
    asked: list[int] = []

    def place(some: VDevice) -> Schedule:
        asked.append(some.veus)
        return chain(20.0, 3, some)

    of_best_width(device(name), place)
    assert asked == [device(name).veus]


def test_waking_and_signals_cost_what_the_device_says() -> None:
    cpu = replace(device("cpu4"), wait_ns=100.0, rates={"byte": 1.0, "wake": 1000.0, "signal": 7.0})
    plain = replace(cpu, rates={"byte": 1.0})
    for some, expected in ((cpu, 3000.0 + 50 + 16 * 7 + 100 + 50), (plain, 50.0 + 100 + 50)):
        schedule = chain(50.0 / 4, 2, some)
        wide = [Append(n, 0, 4, n, (n - 1,) if n else ()) for n in range(2)]
        assert makespan(replace(schedule, appends=wide), 1) == expected


def test_a_small_recurrence_on_sixteen_cores_keeps_to_few_and_is_right() -> None:
    rng = np.random.default_rng(0)
    shapes = {"w": (1, 64, 8), "r": (1, 64, 16), "b": (1, 128)}
    weights = {n: (0.4 * rng.standard_normal(s)).astype(np.float32) for n, s in shapes.items()}
    x = rng.standard_normal((12, 1, 8)).astype(np.float32)
    lstm = node("LSTM", "x w r b", "y", hidden_size=16)
    network = model([lstm], {"x": x}, weights)
    program = irkit.compile(network, device="cpu16")
    assert program.report()["veus"] <= 4
    assert program._first.executor.program.veus == 16
    plain = irkit.compile(network, device="cpu2", mode="serial")(x)
    for mode in ("serial", "per-wave", "persistent"):
        program._first.executor.mode = mode
        np.testing.assert_allclose(program(x), plain, rtol=1e-6, atol=1e-6)


def test_few_rows_of_a_batch_keep_to_fewer_cores_than_many() -> None:
    model = Mlp((96, 128, 128, 10))
    program = irkit.compile(model.model(), device="cpu16")
    plans = program.report()["plans"]
    assert plans[0]["veus"] < plans[-1]["veus"] == 16
    for rows in (1, 7, 40, 3000):
        x = model.inputs(rows)
        np.testing.assert_allclose(program(x), model(x), rtol=2e-4, atol=2e-4)
