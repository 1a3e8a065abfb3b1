"""Programs of irkit's as tasks of a DAG's streams: on the mock by an interpreter, on a logged driver as
kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_cuda import FakeDriver
from numba import cuda
from test_cuda_executor import made

import irkit
from irkit.dags import gpu
from irkit.dags.dag import Dag
from irkit.dags.gpu_programs import GpuProgram
from irkit.dags.mock import MockDevice
from irkit.driver.compiler.artifacts import build_artifact
from irkit.errors import DeviceError, InvalidInputError, ScheduleError, UnsupportedError
from irkit.frontends.module import ImportedModel
from irkit.model_info import ModelInfo
from irkit.runtime.artifact import Artifact
from irkit.runtime.cuda import driver, streams
from irkit.schedule.host.model import Place
from irkit.schedule.host.verifier import verify

pytestmark = pytest.mark.filterwarnings("ignore:Grid size:Warning")
Array = np.ndarray[Any, Any]
TEXT = """
func.func @main(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %0 = graph.add %x, %y : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  %1 = graph.mul %0, %y : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  func.return %0, %1 : tensor<?x32xf32>, tensor<?x32xf32>
}
"""
INFO = ModelInfo("network", ("x", "y"), ("sum", "product"))


@cuda.jit
def minus(x, y):
    i = cuda.grid(1)
    y[0, i] -= x[0, i]


@cuda.jit
def remainder(x):
    i = cuda.grid(1)
    x[0, i] = x[0, i] % 7


# What is meant is of all rows.
MODELS = {
    "minus": lambda x, y: np.subtract(y, x, out=y),
    "remainder": lambda x: np.remainder(x, 7, out=x),
}


@pytest.fixture(autouse=True)
def long_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are expected to take long, so that they are spread over streams however small arrays are."""
    monkeypatch.setattr("irkit.dags.steps.estimate", lambda kind, uses: 1e5)


def compiled(info: ModelInfo = INFO, device: str = "h200") -> Artifact:
    return build_artifact(ImportedModel(irkit.parse(TEXT), {}, info), device, cache=False)


@pytest.fixture(scope="module")
def program() -> Artifact:
    """x + y and (x + y) * y, for a GPU."""
    return compiled()


def meant(x: Array, y: Array) -> tuple[Array, Array]:
    return x + y, (x + y) * y


def small(rng: np.random.Generator, rows: int = 4) -> Array:
    return rng.integers(-3, 4, (rows, 32)).astype(np.float32)


@pytest.mark.parametrize("eager", [False, True])
def test_programs_run_in_streams(program: Artifact, eager: bool) -> None:
    """Between kernels, on arrays of the device, of the host, and parts of them."""
    rng = np.random.default_rng(0)
    device = MockDevice(1, MODELS)
    x, y, out = small(rng), small(rng), np.zeros((4, 32), np.float32)
    with irkit.dag(device, eager=eager) as d:
        inner, both = d.empty((4, 32), "f4"), d.empty((8, 32), "f4")
        minus[1, 32](x, y)
        d.call(program, x, y, out=(both[:4], both[4:]))
        d.call(program, both[4:], both[:4], out=(out, inner))
        result = d.read(inner)
    if not eager:
        d.run()
        assert [r["kind"] for r in d.report()].count("program") == 2
    total, product = meant(x, y)
    right, last = meant(product, total)
    np.testing.assert_array_equal(out, right)
    np.testing.assert_array_equal(result, last)


def steps(seed: int, program: Artifact, d: Dag | None, arrays: list[Any]) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(int(rng.integers(5, 12))):
        a, b, c, e = (arrays[n] for n in rng.permutation(len(arrays))[:4])
        low = int(rng.integers(0, 3))
        a, b, c, e = a[low : low + 2], b[:2], c[2:], e[low : low + 2]
        if rng.integers(3):
            if d is not None:
                d.call(program, a, b, out=(c, e))
            else:
                c[...], e[...] = meant(a.copy(), b.copy())
        elif d is not None:
            minus[1, 32](a, b)
        else:
            b[...] = b - a
        for one in arrays:  # whole numbers, and small
            if d is None:
                np.remainder(one, 7, out=one)
            else:
                remainder[1, 32](one)


@pytest.mark.parametrize("mode", ["streams", "graph"])
@pytest.mark.parametrize("seed", range(6))
def test_random_dags_of_programs(program: Artifact, seed: int, mode: str) -> None:
    """Any order that streams, events and shared workspaces allow gives the answer of program order."""
    device = MockDevice(seed, MODELS)
    start = [small(np.random.default_rng(n)) for n in range(5)]
    arrays = [device.array(a) for a in start]
    with irkit.dag(device, streams=2 + seed % 4) as d:
        steps(seed, program, d, arrays)
    right = [a.copy() for a in start]
    for _ in range(2):
        d.plan().run(mode)
        steps(seed, program, None, right)
        for one, other in zip(arrays, right, strict=True):
            np.testing.assert_array_equal(np.asarray(one), other)


def test_a_workspace_is_one_runs_at_a_time(program: Artifact) -> None:
    """Runs that share nothing else wait for it: without the event the plan is refused, and runs go wrong."""
    rng = np.random.default_rng(0)
    device = MockDevice(0)
    inputs = [device.array(small(rng)) for _ in range(6)]
    outputs = [device.array(np.zeros((4, 32), np.float32)) for _ in range(12)]
    with irkit.dag(device) as d:
        for n in range(6):
            d.call(program, inputs[n], inputs[n], out=(outputs[2 * n], outputs[2 * n + 1]))
    plan = d.plan()
    places = list(plan.plan.places)
    assert "workspace" in plan.report()[0]["arrays"]
    plan.plan.places[:] = [Place(1 + n) for n in range(6)]
    with pytest.raises(ScheduleError, match=r"'race'.*write after write"):
        verify(plan.plan)
    wrong = 0
    for _ in range(10):
        plan.run("streams")
        wrong += any(
            (np.asarray(outputs[2 * n]) != 2 * np.asarray(inputs[n])).any() for n in range(6)
        )
    assert wrong
    plan.plan.places[:] = places
    plan.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 1), "takes 2 arrays and writes 2, got 2 arguments, 2 of them arrays"),
        ((0, 1, 2, "a"), "got 4 arguments, 3 of them arrays"),
        ((0, 1, 2, 2), "writes argument 2, which shares memory with argument 3"),
        ((0, 1, 0, 2), "writes argument 2, which shares memory with argument 0"),
        ((0, "half", 2, 3), r"input '.*': expected float32 of shape \(4, 32\), got"),
        ((0, 1, 2, "int"), "output .*: expected float32 of shape .*, got int32"),
        ((0, "turned", 2, 3), "expected a C-contiguous array"),
        ((0, "odd", 2, 3), "expected an address that is a multiple of 16"),
        ((0, 1, 2, "fixed"), "the program writes argument 3, an array that is read-only"),
    ],
)
def test_what_a_program_cannot_take(
    program: Artifact, arguments: tuple[Any, ...], words: str
) -> None:
    device = MockDevice(0)
    base = np.zeros((4, 32), np.float32)
    odd = device.array(np.zeros(132, np.float32))[1:129].reshape(4, 32)
    arrays: dict[Any, Any] = {n: device.array(base) for n in range(4)}
    arrays |= {"half": device.array(base)[:2], "int": device.array(base.astype(np.int32))}
    arrays |= {"turned": device.array(base.reshape(32, 4)).T, "odd": odd, "a": 1.0}
    arrays["fixed"] = device.array(base)
    arrays["fixed"].flags.writeable = False
    given = [arrays[a] for a in arguments]
    with (
        irkit.dag(device) as d,
        pytest.raises(
            (InvalidInputError, UnsupportedError), match=rf"^test_dag_programs.*({words})"
        ),
    ):
        d.call(program, *given[:2], out=tuple(given[2:]))


def test_programs_that_are_no_tasks_of_a_stream() -> None:
    device = MockDevice(0)
    x = device.array(np.zeros((4, 32), np.float32))
    for artifact, reason in (
        (compiled(device="cpu"), "it was compiled for a CPU"),
        (
            compiled(ModelInfo("network", ("x", "y"), ("s", "p"), allow_nan=False)),
            "it looks at its",
        ),
    ):
        with (
            irkit.dag(device) as d,
            pytest.raises(UnsupportedError, match=f"a task of a stream: {reason}"),
        ):
            d.call(artifact, x, x, out=(x, x))


# -- on a GPU, as far as its driver sees


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = FakeDriver()
    driver.device.cache_clear()
    for module in (driver, streams, gpu):
        monkeypatch.setattr(module, "api", lambda: made)
    yield made
    driver.device.cache_clear()


@pytest.mark.parametrize("mode", ["auto", "per-wave"])
def test_runs_are_put_into_the_stream(fake: FakeDriver, mode: str) -> None:
    """Counters are cleared, then the kernel: all in the stream that is named, whatever has run before."""
    loaded = GpuProgram(made(mode=mode))
    space, other = loaded.workspace(4), loaded.workspace(4)
    assert not {a for a, _ in space.spans} & {a for a, _ in other.spans}
    first, second = (loaded.bind(s, (4096 * 64, 4096 * 65), 4) for s in (space, other))
    fake.log.clear()
    for start in (first, second, first):
        start(77)
    persistent = ["cuMemsetD8Async", "cuLaunchCooperativeKernel"]
    assert [name for name, *_ in fake.log] == (
        3 * persistent if mode == "auto" else 3 * ["cuLaunchKernel"]
    )
    streams = [call[9] if "Launch" in call[0] else call[4] for call in fake.log]
    assert set(streams) == {77}
    if mode == "auto":
        cleared = [call[1] for call in fake.log if call[0] == "cuMemsetD8Async"]
        assert cleared == [space.spans[0][0], other.spans[0][0], space.spans[0][0]]


def test_modes_that_take_more_than_a_stream(fake: FakeDriver) -> None:
    loaded = GpuProgram(made(mode="per-op"))
    with pytest.raises(
        DeviceError, match="cannot run in a stream of a DAG: per-op: not in a stream"
    ):
        loaded.bind(loaded.workspace(4), (4096, 8192), 4)


def test_no_rows_are_no_run(fake: FakeDriver) -> None:
    loaded = GpuProgram(made())
    fake.log.clear()
    loaded.bind(loaded.workspace(0), (4096, 8192), 0)(77)
    assert not fake.names("cuLaunchCooperativeKernel", "cuLaunchKernel")
