"""`irkit.dag()` on a mock device: records, infers, schedules, and runs in any legal order."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numba import cuda

import irkit
from irkit.context import IrkitContext
from irkit.dags.dag import Dag
from irkit.dags.mock import MockDevice
from irkit.dags.plans import Plan
from irkit.driver.files.parsing import parse_module
from irkit.driver.registry import register_dialects
from irkit.errors import DeviceError, InvalidInputError, ScheduleError, UnsupportedError
from irkit.passes.host.program_text import programs_of, read_plan
from irkit.passes.host.verify_streams import VerifyStreams
from irkit.schedule.host.model import HOST, Place
from irkit.schedule.host.verifier import verify

pytestmark = pytest.mark.filterwarnings("ignore:Grid size:Warning")
Array = np.ndarray
ROW = 8


@cuda.jit
def square(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * x[i]


@cuda.jit
def difference(x, y, z):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(z, 0, x[i] - y[i])


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@cuda.jit
def shift(x):
    i = cuda.grid(1)
    if i < x.size - 1:
        x[i] = x[i + 1] * 3 + i


def axpy_model(a: float, x: Array, y: Array) -> None:
    y[...] = a * x + y


def shift_model(x: Array) -> None:
    x[:-1] = x[1:] * 3 + np.arange(x.size - 1)


def square_model(x: Array, y: Array) -> None:
    y[...] = x * x


MODELS = {"axpy": axpy_model, "shift": shift_model, "square": square_model}


@pytest.fixture(autouse=True)
def long_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are expected to take long, so that they are spread over streams however small arrays are."""
    monkeypatch.setattr("irkit.dags.steps.estimate", lambda kind, uses: 1e5)


def mock(seed: int = 0, **options: Any) -> MockDevice:
    return MockDevice(seed, MODELS, **options)


def vec(d: Dag, x: Array, y: Array, z: Array) -> Array:
    x1, y1 = d.empty(x.size, x.dtype), d.empty(y.size, y.dtype)
    square[2, 32](x, x1)
    square[2, 32](y, y1)
    difference[2, 32](x1, y1, z)
    return d.read(z)


@pytest.mark.parametrize("eager", [False, True])
def test_vec(eager: bool) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random(50, np.float32), 2 * rng.random(50, np.float32)
    z = np.zeros(1, np.float32)
    with irkit.dag("mock", eager=eager) as d:
        result = vec(d, x, y, z)
    if not eager:
        assert z[0] == 0
        d.run()
    assert result is z
    assert z[0] == pytest.approx((x.astype(float) ** 2 - y.astype(float) ** 2).sum(), rel=1e-5)


def test_vec_is_scheduled_as_by_hand() -> None:
    """Two copies, two kernels behind them side by side, one event; the third copy waits for the engine
    anyway. What is read is copied behind."""
    x = np.ones(50, np.float32)
    with irkit.dag("mock") as d:
        vec(d, x, x.copy(), np.zeros(1, np.float32))
    report = d.report()
    names = [(r["name"], r["stream"], [w["task"] for w in r["waits"]]) for r in report]
    assert names == [
        ("to device: x", 1, []),
        ("square", 1, []),
        ("to device: x", 2, []),
        ("square", 2, []),
        ("to device: z", 1, []),
        ("difference", 2, [4]),
        ("to host: z", 2, []),
    ]
    assert report[5]["arrays"] == {"x": "reads", "y": "reads", "z": "reads and writes"}
    assert report[5]["line"].startswith("test_dags.py:")
    why = report[5]["waits"][0]["why"]
    assert why == "reads and writes device7, which 'to device: z' writes"


def random_launches(
    rng: np.random.Generator, d: Dag | None, arrays: Sequence[Any], functions: bool = True
) -> None:
    """Kernels and functions on slices; without a DAG, what they mean, in order."""
    for _ in range(int(rng.integers(4, 14))):
        a, b = (arrays[i] for i in rng.integers(0, len(arrays), 2))
        low, other = (int(n) * 4 for n in rng.integers(0, 4, 2))
        size = int(rng.integers(1, 5)) * 4
        x, y = a[low : low + size], b[other : other + size]
        size = min(x.size, y.size)
        x, y = x[:size], y[:size]
        choice, factor = rng.integers(5 if functions else 4), float(rng.integers(1, 4))
        if choice == 0 and not np.shares_memory(x, y):
            _either(d, axpy, axpy_model, factor, x, y)
        elif choice == 1 and not np.shares_memory(x, y):
            _either(d, square, square_model, x, y)
        elif choice in (2, 3):
            _either(d, shift, shift_model, x)
        elif not hasattr(x, "__cuda_array_interface__") and not hasattr(
            y, "__cuda_array_interface__"
        ):
            _function(d, x, y)


def _either(d: Dag | None, kernel: Any, model: Callable[..., None], *arguments: Any) -> None:
    if d is None:
        model(*arguments)
    else:
        kernel[1, 32](*arguments)


def on_host(x: Array, y: Array) -> None:
    y[...] = np.minimum(x.sum() % 97 + y, 1e6)


def _function(d: Dag | None, x: Array, y: Array) -> None:
    if d is None:
        on_host(x, y)
    else:
        d.call(on_host, x, y)


def fresh() -> list[Array]:
    return [np.arange(16, dtype=np.float64) % (5 + n) for n in range(3)]


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_random_dags_on_host_arrays(seed: int, eager: bool) -> None:
    right, arrays = fresh(), fresh()
    random_launches(np.random.default_rng(seed), None, right)
    with irkit.dag(mock(seed), eager=eager, streams=1 + seed % 5) as d:
        random_launches(np.random.default_rng(seed), d, arrays)
    if not eager:
        d.run()
    for one, other in zip(arrays, right, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", ["streams", "graph", "auto"])
@pytest.mark.parametrize("seed", range(6))
def test_plans_are_run_again(seed: int, mode: str) -> None:
    """Arrays of both sides; what is in host arrays when a run starts counts."""
    device = mock(seed)
    inner = device.array(np.arange(16.0))
    arrays = [np.arange(16.0), np.ones(16)]
    right = [inner.copy().view(np.ndarray), *(a.copy() for a in arrays)]

    def kernels(d: Dag | None, on: Sequence[Any]) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(10):
            a, b = rng.permutation(3)[:2]
            low = int(rng.integers(0, 3)) * 4
            _either(d, axpy, axpy_model, 0.5, on[a][low : low + 8], on[b][:8])
            _either(d, shift, shift_model, on[b][low:])

    with irkit.dag(device) as d:
        kernels(d, [inner, *arrays])
    plan = d.plan()
    for run in range(3):
        plan.run(mode)
        kernels(None, right)
        for one, other in zip([inner, *arrays], right, strict=True):
            np.testing.assert_array_equal(np.asarray(one), other, err_msg=f"run {run}")
        arrays[0][:] = run
        right[1][:] = run


def outcomes(
    device: MockDevice, plan: Plan, arrays: Sequence[Array], start: Sequence[Array], tries: int
) -> list[bytes]:
    found: list[bytes] = []
    for _ in range(tries):
        device.scramble()
        for one, first in zip(arrays, start, strict=True):
            one[:] = first
        plan.run("streams")
        found.append(b"".join(a.tobytes() for a in arrays))
    return found


def test_mutants_give_wrong_answers() -> None:
    """Without an event the mock finds an order in which the answer is another. There are no host functions in
    between: by waiting for what comes before them the host covers events that follow."""
    caught = tried = 0
    for seed in range(6):
        arrays, right = fresh(), fresh()
        random_launches(np.random.default_rng(seed), None, right, False)
        device = mock(seed)
        with irkit.dag(device) as d:
            random_launches(np.random.default_rng(seed), d, arrays, False)
        plan, places = d.plan(), list(d.plan().plan.places)
        expected = b"".join(a.tobytes() for a in right)
        assert set(outcomes(device, plan, arrays, fresh(), 3)) == {expected}
        for number, place in enumerate(places):
            if not place.waits or place.queue == HOST:
                continue
            plan.plan.places[number] = Place(place.queue, place.waits[1:])
            with pytest.raises(ScheduleError, match="'race'"):
                verify(plan.plan)
            tried += 1
            caught += set(outcomes(device, plan, arrays, fresh(), 10)) != {expected}
            plan.plan.places[number] = place
    assert tried >= 10
    assert caught >= tried / 2


def growth(launch: Callable[..., None], device: MockDevice) -> tuple[list[int], int]:
    """Objects of Python after each of several rounds of a thousand launches, and the most that was kept."""
    found: list[int] = []
    most = 0
    lasting = np.zeros(64)
    with irkit.dag(device, eager=True) as d:
        inner = d.empty(64)
        for _ in range(8):
            passing = np.zeros(32)
            for n in range(1000):
                launch(d, n, inner, lasting, passing)
                most = max(most, d.kept())
            d.read(lasting)
            d.read(passing)
            gc.collect()
            found.append(sys.getallocatedblocks())
    return found, most


def slices(d: Dag, n: int, inner: Array, lasting: Array, passing: Array) -> None:
    if n % 3 == 0:
        shift[1, 32](inner[n % 7 : 40 + n % 11])
    elif n % 3 == 1:
        axpy[1, 32](1.0, inner[:8], lasting[n % 13 : n % 13 + 8])
    elif n % 9 == 8:
        axpy[1, 32](1.0, lasting[:8], passing[:8])
    if n % 500 == 499:
        d.read(lasting)


def test_nothing_grows_with_the_number_of_launches() -> None:
    """Thousands of launches on slices, of arrays that come and go: no object is left of a launch."""
    device = MockDevice(1, {"shift": lambda x: None, "axpy": lambda a, x, y: None})
    found, most = growth(slices, device)
    assert device.launches > 5000
    assert most < 1500
    # An object kept of each launch, of whatever kind, would be 4000 more.
    assert found[-1] - found[-5] < 400
    assert device.used == 0


def test_growth_is_seen() -> None:
    """What keeps a number a launch is caught by the same measure."""
    kept: list[float] = []

    def launch(d: Dag, n: int, *arrays: Array) -> None:
        kept.append(n / 7)
        slices(d, n, *arrays)

    device = MockDevice(1, {"shift": lambda x: None, "axpy": lambda a, x, y: None})
    found, _ = growth(launch, device)
    assert found[-1] - found[-5] > 3500


def test_host_reads_wait_for_their_ancestors_only() -> None:
    device = MockDevice(0, MODELS)
    done: list[str] = []
    device_models = {"slow": lambda x: done.append("slow"), "square": square_model}
    device = MockDevice(3, device_models)

    @cuda.jit
    def slow(x):
        x[0] = 1

    x, y, other = np.full(8, 3.0), np.zeros(8), np.zeros(8)
    with irkit.dag(device, eager=True) as d:
        square[1, 32](x, y)
        blocked = device.new_stream()
        # Nothing else may go on: the other kernel waits for an event that comes of nothing.
        gate = device.record(blocked)
        slow[1, 32](other)
        assert d.read(y)[0] == 9.0
        device.synchronize(gate)
    assert done == ["slow"]


def test_only_what_is_needed_is_copied() -> None:
    x, y = np.arange(16.0), np.zeros(16)
    with irkit.dag(mock()) as d:
        axpy[1, 32](2.0, x[:4], y[8:12])
        axpy[1, 32](2.0, x[:8], y[8:16])
        d.call(on_host, x[:4], y[:4])
    copies = [r["name"] for r in d.report() if r["kind"] in ("to_device", "to_host")]
    # x[:4], y[8:12], then what is new of x[:8] and y[8:16]; and home, what was written.
    assert copies == ["to device: x", "to device: y", "to device: x", "to device: y", "to host: y"]
    d.run()
    np.testing.assert_array_equal(y[8:12], 4 * x[:4])
    np.testing.assert_array_equal(y[12:], 2 * x[4:8])


def test_arrays_on_the_device_are_read_to_new_ones() -> None:
    device = mock()
    inner = device.array(np.arange(24.0).reshape(4, 6))
    with irkit.dag(device) as d:
        shift[1, 32](inner[0])
        column, whole = d.read(inner[:, 1]), d.read(inner)
    d.run()
    np.testing.assert_array_equal(column, np.asarray(inner)[:, 1])
    np.testing.assert_array_equal(whole, np.asarray(inner))
    assert whole[0, 0] == 3


def test_programs_are_tasks() -> None:
    class Doubling:
        """What a DAG asks of a program."""

        def run(self, inputs: Sequence[Array]) -> list[Array]:
            return [2 * inputs[0]]

        def ir(self) -> str:
            return ""

    x, out = np.arange(8.0), np.zeros(8)
    with irkit.dag(mock()) as d:
        square[1, 32](x, x[:])
        d.call(Doubling(), x, out=out)
        square[1, 32](out, out[:])
    d.run()
    np.testing.assert_array_equal(out, (2 * np.arange(8.0) ** 2) ** 2)
    assert [r["stream"] for r in d.report() if r["name"] == "program"] == ["host"]
    with pytest.raises(UnsupportedError, match=r"mode 'graph': 'program' \(test_dags.py:\d+\)"):
        d.plan().run("graph")


class Raw:
    """What a DAG asks of a RawKernel."""

    name, options = "saxpy", ("-DN=4",)
    code = 'extern "C" __global__ void saxpy(float a, const double* x, double* y) { }'


def test_raw_kernels_are_read_in_their_signature() -> None:
    x, y = np.arange(8.0), np.ones(8)
    device = MockDevice(0, {"saxpy": axpy_model})
    with irkit.dag(device) as d:
        d.launch(Raw(), (1,), (32,), (2.0, x, y))
        d.launch(Raw(), (1,), (32,), (2.0, x, y))
    d.run()
    np.testing.assert_array_equal(y, 1 + 4 * x)
    assert d.report()[-2]["arrays"] == {"x": "reads", "y": "reads and writes"}
    with (
        irkit.dag(device) as d,
        pytest.raises(UnsupportedError, match="it is given an array, and is no"),
    ):
        d.launch(Raw(), (1,), (32,), (x, x, y))
    with irkit.dag(device) as d, pytest.raises(UnsupportedError, match="takes 3 arguments, got 2"):
        d.launch(Raw(), (1,), (32,), (x, y))


def test_plans_are_seen() -> None:
    x = np.ones(50, np.float32)
    with irkit.dag("mock") as d:
        vec(d, x, x.copy(), np.zeros(1, np.float32))
    plan = d.plan()
    text = plan.ir()
    assert 'host.task "difference" kernel on 2 wait(%t4)' in text
    context = IrkitContext()
    register_dialects(context)
    module = parse_module(context, text, "<plan>")
    VerifyStreams().apply(context, module)
    (program,) = programs_of(module)
    again = read_plan(program)
    assert (again.places, [t.uses for t in again.tasks]) == (
        plan.plan.places,
        [t.uses for t in plan.plan.tasks],
    )
    picture = plan.picture("VEC")
    assert picture.count("difference") >= 1
    assert picture.count(">stream 1<") == 1
    assert "vEU" not in picture
    events = json.loads(plan.trace())["traceEvents"]
    rows = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert rows == ["host", *(f"stream {n}" for n in range(1, plan.plan.queues))]
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {
        "planned: tasks on streams"
    }
    assert {e["name"] for e in events if e["ph"] == "X"} >= {"square", "to device: x"}
    line = plan.timeline()
    assert line.veus == plan.plan.queues
    assert line.duration == 5e5 + 1.5e3


# -- bad input: one error each, with the operation and its line


def here(message: str) -> str:
    return rf"^test_dags.py:\d+: {message}"


def test_kernels_that_numba_refuses() -> None:
    @cuda.jit
    def wrong(x):
        x[0] = x.nothing

    with (
        irkit.dag("mock") as d,
        pytest.raises(UnsupportedError, match=here("kernel 'wrong': Numba ref")),
    ):
        wrong[1, 32](np.zeros(3))
    assert d.report() == []


def test_kernels_that_compute_with_rows() -> None:
    @cuda.jit
    def rows(x):
        x[0] += 1

    with (
        irkit.dag("mock"),
        pytest.raises(UnsupportedError, match=here("kernel 'rows': Numba refuses it for x: .*add")),
    ):
        rows[1, 32](np.zeros((3, 2)))


def test_arrays_that_are_read_only() -> None:
    x = np.zeros(4)
    x.flags.writeable = False
    with irkit.dag("mock"), pytest.raises(UnsupportedError, match=here("kernel 'shift'")):
        shift[1, 32](x)


def test_arrays_of_objects() -> None:
    with irkit.dag("mock") as d, pytest.raises(InvalidInputError, match="array of Python objects"):
        d.call(on_host, np.array([None]), np.zeros(1))


def test_functions_on_device_arrays() -> None:
    device = mock()
    with (
        irkit.dag(device) as d,
        pytest.raises(UnsupportedError, match=here("function 'on_host', arg")),
    ):
        d.call(on_host, np.zeros(3), device.array(np.zeros(3)))
    with (
        irkit.dag(device) as d,
        pytest.raises(UnsupportedError, match=here("function 'on_host': arrays")),
    ):
        d.call(on_host, x=np.zeros(3), y=np.zeros(3))


def test_arrays_that_were_resized() -> None:
    x, y = np.zeros(8), np.zeros(8)
    with irkit.dag(mock()) as d:
        square[1, 32](x, np.zeros(8))
        d.call(on_host, np.zeros(4), y)
    plan = d.plan()
    plan.run()
    y.resize((4,), refcheck=False)
    message = (
        r"^'on_host' \(test_dags.py:\d+\), argument 1: the array was freed or resized since it"
    )
    with pytest.raises(InvalidInputError, match=message):
        plan.run()
    # NumPy itself refuses for arrays that the device has.
    with pytest.raises(ValueError, match="cannot resize"):
        x.resize((4,), refcheck=False)


def test_too_little_memory() -> None:
    with (
        irkit.dag(mock(memory=100)),
        pytest.raises(DeviceError, match=here("'square', x: the mock device has 100 bytes")),
    ):
        square[1, 32](np.zeros(50), np.zeros(50))


def test_a_device_that_fails_says_what_it_was_doing() -> None:
    def lost(*_: Any) -> None:
        raise DeviceError("the device is lost")

    x, y = np.zeros(4), np.zeros(4)
    with irkit.dag(MockDevice(0, {"square": lost})) as d:
        square[1, 32](x, y)
    message = r"'square'.*: the device is lost; these arrays may be written in part: y of 'square' \(test_d"
    with pytest.raises(DeviceError, match=message):
        d.run()


def test_memory_that_two_allocations_share() -> None:
    raw = bytearray(64)
    x, y = np.frombuffer(raw, np.float64), np.frombuffer(memoryview(raw)[8:], np.float64)
    with (
        irkit.dag(mock()),
        pytest.raises(InvalidInputError, match=here("two arrays of the host share")),
    ):
        square[1, 32](x, y[:7])


def test_what_is_no_launch() -> None:
    with irkit.dag("mock") as d:
        with pytest.raises(UnsupportedError, match=here("launch")):
            d.launch(print, 1)
        with pytest.raises(UnsupportedError, match=here("a function or a program")):
            d.call(3)
        with pytest.raises(UnsupportedError, match=here("read expects an array, got int")):
            d.read(3)
    with pytest.raises(UnsupportedError, match="device 'tpu'"):
        irkit.dag("tpu")
    with pytest.raises(UnsupportedError, match="streams=0"):
        irkit.dag("mock", streams=0)
    with (
        irkit.dag("mock", eager=True) as d,
        pytest.raises(UnsupportedError, match="keeps none to plan"),
    ):
        d.plan()
    with pytest.raises(UnsupportedError, match="mode 'fast'"):
        irkit.dag("mock").plan().run("fast")


def test_numba_launches_as_ever_behind_a_dag() -> None:
    dispatcher = __import__("numba.cuda.dispatcher", fromlist=["x"])
    before = dispatcher._LaunchConfiguration.__call__
    with irkit.dag("mock"), irkit.dag("mock"):
        assert dispatcher._LaunchConfiguration.__call__ is not before
    assert dispatcher._LaunchConfiguration.__call__ is before


# -- copies that are asked for


@pytest.mark.parametrize("eager", [False, True])
def test_copies_by_hand(eager: bool) -> None:
    """Through a staging buffer, chunk by chunk: only those bytes move, and host arrays are what they are."""
    device = mock(4)
    source, target = np.arange(32.0), np.zeros(32)
    with irkit.dag(device, eager=eager) as d:
        staged = [d.staging(8) for _ in range(2)]
        inner = [d.empty(8) for _ in range(2)]
        for n in range(4):
            one, there = staged[n % 2], inner[n % 2]
            d.call(np.copyto, one, source[8 * n : 8 * n + 8])
            d.copy(there, one)
            square[1, 32](there, there[:])
            d.copy(one, there)
            d.call(np.copyto, target[8 * n : 8 * n + 8], one)
    if not eager:
        for _ in range(2):
            target[:] = 0
            d.run()
            kinds = [r["kind"] for r in d.report()]
            assert [kinds.count(k) for k in ("to_device", "to_host")] == [4, 4]
            np.testing.assert_array_equal(target, np.arange(32.0) ** 2)
    np.testing.assert_array_equal(target, np.arange(32.0) ** 2)


def test_copies_by_hand_see_what_kernels_did() -> None:
    """A host array that kernels used is copied home before it is the source, and anew after it was the
    target."""
    device = mock(5)
    x, out = np.arange(1.0, 9.0), np.zeros(8)
    with irkit.dag(device) as d:
        inner, other = d.empty(8), d.empty(8)
        square[1, 32](x, x[:])
        d.copy(inner, x)  # the squares
        square[1, 32](inner, other)
        d.copy(x, other)  # fourth powers
        square[1, 32](x, out)
    d.run()
    np.testing.assert_array_equal(x, np.arange(1.0, 9.0) ** 4)
    np.testing.assert_array_equal(out, np.arange(1.0, 9.0) ** 8)


def test_copies_that_cannot_be() -> None:
    device = mock()
    x, fixed = np.zeros(8), np.zeros(8)
    fixed.flags.writeable = False
    with irkit.dag(device) as d:
        inner = d.empty(8)
        for ends in ((x, x), (inner, inner), (inner, 3)):
            with pytest.raises(UnsupportedError, match=here("copy expects an array of the host")):
                d.copy(*ends)
        for ends, words in (
            ((inner, x[:4]), r"copy to float64\[8\] from float64\[4\]: arrays of as many elements"),
            ((inner[:4], x[::2]), "copy to .*: C-contiguous arrays are expected"),
            ((fixed, inner), "copy to .*: the target is read-only"),
            (
                (inner, np.arange(8)),
                r"copy to float64\[8\] from int64\[8\]: a copy converts nothing",
            ),
        ):
            with pytest.raises(UnsupportedError, match=here(words)):
                d.copy(*ends)
        with pytest.raises(InvalidInputError, match=here("an array of Python objects")):
            d.copy(inner, x.astype(object))


# -- what is given back


def test_closed_plans_give_memory_back() -> None:
    device = mock()
    x = np.ones(64)
    with irkit.dag(device) as d:
        inner = d.empty(64)
        square[1, 32](x, inner)
        d.read(inner)
    assert device.used == 1024
    with d.plan() as plan:
        plan.run()
        plan.run()
    assert device.used == 0
    assert len(plan.report()) == 3
    plan.close()
    for run in (plan.run, d.run):
        with pytest.raises(InvalidInputError, match="the DAG was closed: its memory on the dev"):
            run()
    with d, pytest.raises(InvalidInputError, match=here("the DAG was closed")):
        d.staging(3)


ENDED = "the array was made by `empty` at test_dags.py:\\d+, of a DAG that was closed since"


@pytest.mark.parametrize("eager", [False, True])
def test_an_array_outlives_its_dag_in_vain(eager: bool) -> None:
    """Its address may be another array's by now: whoever uses it, or a view of it, is told."""
    device = mock()
    with irkit.dag(device, eager=eager) as gone:
        old = gone.empty(64)
        square[1, 32](np.ones(64), old)
    gone.close()
    x = np.ones(64)
    with irkit.dag(device, eager=eager) as d:
        again = d.empty(64)
        # The memory is the same, the array is not.
        square[1, 32](x, again)
        for view in (old, old[3:], old.reshape(8, 8)[1]):
            with pytest.raises(InvalidInputError, match=here(f"'square', y: {ENDED}")):
                square[1, 32](x[: view.size], view)
        with pytest.raises(InvalidInputError, match=here(f"read: {ENDED}")):
            d.read(old)
        with pytest.raises(InvalidInputError, match=here(f"copy, source: {ENDED}")):
            d.copy(x, old)
        with pytest.raises(InvalidInputError, match=here(f"copy, target: {ENDED}")):
            d.copy(old, x)


def test_an_array_that_goes_before_the_plan_is_run() -> None:
    device, x = mock(), np.ones(64)
    first, second = irkit.dag(device), irkit.dag(device)
    with first:
        inner = first.empty(64)
        square[1, 32](x, inner)
    with second:
        square[1, 32](inner, x)
    first.run()
    second.run()
    first.close()
    with pytest.raises(InvalidInputError, match=f"'square' \\(test_dags.py:\\d+\\), .*: {ENDED}"):
        second.run()


def test_a_repeated_launch_sees_that_an_array_has_gone() -> None:
    device, x = mock(), np.ones(64)
    first = irkit.dag(device)
    with first:
        inner = first.empty(64)
        square[1, 32](x, inner)
    with irkit.dag(device, eager=True):
        for n in range(4):
            if n == 3:
                first.close()
                with pytest.raises(InvalidInputError, match=here(f".*{ENDED}")):
                    square[1, 32](inner, x)
            else:
                square[1, 32](inner, x)


def test_memory_goes_with_who_has_it() -> None:
    """Without the collector: what a DAG has goes with its last plan."""
    device = mock()
    gc.disable()
    try:
        with irkit.dag(device) as d:
            square[1, 32](np.ones(64), np.ones(64))
        plan = d.plan()
        plan.run()
        plan.run()
        del d
        assert device.used == 1024
        del plan
        assert device.used == 0
    finally:
        gc.enable()


def test_an_error_between_launches_gives_memory_back() -> None:
    device = mock()

    def wrong() -> None:
        with irkit.dag(device, eager=True):
            square[1, 32](np.ones(64), np.ones(64))
            raise KeyError

    with pytest.raises(KeyError):
        wrong()
    assert device.used == 0


class Torch:
    """An array that may be made anew elsewhere, as PyTorch's are."""

    def __init__(self, device: MockDevice) -> None:
        self.blocks = [device.array(np.ones(8)) for _ in range(2)]
        self.at = 0

    def data_ptr(self) -> int:
        return self.blocks[self.at].ctypes.data

    @property
    def shape(self) -> tuple[int, ...]:
        return (8,)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.blocks[self.at].__cuda_array_interface__


class Plain(Torch):
    """One that says nothing but its interface."""

    def __getattribute__(self, name: str) -> Any:
        if name == "data_ptr":
            raise AttributeError(name)
        return super().__getattribute__(name)


@pytest.mark.parametrize("library", [Torch, Plain])
def test_arrays_of_the_device_that_moved(library: type[Torch]) -> None:
    device = mock()
    x, out = library(device), np.zeros(8)
    with irkit.dag(device) as d:
        d.copy(out, x)
    d.run()
    assert out[0] == 1
    x.at = 1
    with pytest.raises(InvalidInputError, match="source: the array was freed or resized since"):
        d.run()


def test_arrays_that_moved_between_record_and_plan() -> None:
    x = np.zeros(8)
    with irkit.dag(mock()) as d:
        d.call(on_host, np.zeros(4), x)
    x.resize((400,), refcheck=False)
    with pytest.raises(InvalidInputError, match="argument 1: the array was freed or resized since"):
        d.run()


def test_memory_that_was_replaced_is_noticed() -> None:
    """As many bytes elsewhere: not the size tells, the address does."""
    x = np.zeros(8)
    with irkit.dag(mock()) as d:
        d.call(on_host, np.zeros(4), x[2:])
    d.run()
    x.resize((1 << 20,), refcheck=False)
    # Where it was, others are: it would be given the same place again.
    others = [np.zeros(8) for _ in range(100)]
    x.resize((8,), refcheck=False)
    with pytest.raises(InvalidInputError, match="argument 1: the array was freed or resized since"):
        d.run()
    assert others


def test_runs_are_measured() -> None:
    """Each task between two marks: behind what it waits for, one after another in a stream, copies and host
    functions too."""
    device = mock(7)
    x, y = np.ones(50), np.zeros(50)
    with irkit.dag(device) as d:
        square[2, 32](x, y)
        d.call(on_host, x, y)
        square[2, 32](y, x)
    plan = d.plan()
    line = plan.measured()
    order = [(q, a, b) for q, a, b in zip(line.veu, line.start, line.end, strict=True)]
    for number, place in enumerate(plan.plan.places):
        queue, start, end = order[number]
        assert queue == place.queue
        assert start <= end
        if queue != HOST:
            assert all(order[w][2] <= start for w in place.waits if order[w][0] != HOST)
            assert all(b <= start for q, _, b in order[:number] if q == queue)
    np.testing.assert_array_equal(x, y * y)
    events = json.loads(plan.trace(measure=True))["traceEvents"]
    names = [e["name"] for e in events if e["ph"] == "X"]
    assert names.count("square") == 4
    assert names.count("to device: x") >= 2
    plan.close()
    with pytest.raises(InvalidInputError, match="the DAG was closed"):
        plan.measured()


def test_runs_are_started_and_waited_for() -> None:
    device = mock(8)
    x = device.array(np.full(8, 2.0))
    with irkit.dag(device) as d:
        shift[1, 32](x)
        shift[1, 32](x)
    plan = d.plan()
    right = np.full(8, 2.0)
    for _ in range(6):
        plan.start()
        shift_model(right)
        shift_model(right)
    plan.wait()
    np.testing.assert_array_equal(np.asarray(x), right)
    with irkit.dag(device, eager=True) as d:
        shift[1, 32](x)
        d.wait()
        shift_model(right)
        np.testing.assert_array_equal(np.asarray(x), right)
