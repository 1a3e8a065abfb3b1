"""The CUDA executor over a driver that only keeps a log: input rules, failures, what is given back."""

from __future__ import annotations

import gc
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_cuda import FakeDriver

from irkit.errors import DeviceError, InvalidInputError
from irkit.lower.task_to_numba.dispatch_cuda import Kernel
from irkit.lower.task_to_numba.launch_facts_cuda import launch_facts
from irkit.model_info import ModelInfo
from irkit.runtime.cuda import driver, executor, streams
from irkit.runtime.cuda.extent import extent_probe
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.mode_choice import NOT_PROVED
from irkit.schedule.modes import Mode
from irkit.schedule.tables import Appended, Operand, Port, Program

NAN, INF = float("nan"), float("inf")
PROGRAM = Program(
    device="test4",
    veus=4,
    threads=128,
    shared_bytes=0,
    inputs=(Port("x", "float32", (-1, 4)),),
    outputs=(Port("y", "float32", (-1, 4)),),
    arena_bytes=128,
    row_bytes=0,
    constant_bytes=16,
    constants=(("w", 0, 16),),
    kernels=("a",),
    appends=(Appended(0, 4, 0, 4, 0, (), (Operand(3, 0), Operand(4, 0))),),
    modes=tuple(m.value for m in Mode),
    verified="sha256:0",
).sealed()
FIXED = Port("z", "float32", (2,))
STRICT = ModelInfo(
    "classifier", ("x",), ("y",), allow_nan=False, allow_infinity=False, largest=1e30
)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    gc.collect()  # what tests before left behind goes to their drivers
    made = FakeDriver()
    for module in (driver, streams):
        monkeypatch.setattr(module, "api", lambda: made)
    for cached in (driver.device, extent_probe):
        cached.cache_clear()
    return made


def made(
    info: ModelInfo | None = None,
    program: Program = PROGRAM,
    arch: str = "sm_90a",
    scratch: int = 0,
    **options: Any,
) -> Any:
    kernels = [Kernel("a", ["float32"] * 2, scratch, batch=True)]
    _, facts = read_facts(f"PROGRAM = {program!r}\n" + launch_facts(program, kernels, arch))
    weights = {"w": np.ones(4, np.float32)}
    return executor.CudaExecutor(program, facts, b"cubin", weights, info, **options)


class OnDevice:
    """A foreign array in the fake driver's memory."""

    def __init__(self, fake: FakeDriver, array: Any, stream: int | None = None) -> None:
        self.at = fake._cuMemAlloc(max(array.nbytes, 16))[0]
        fake.memory[self.at : self.at + array.nbytes] = array.tobytes()
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (self.at, False),
            "version": 3,
            "stream": stream,
        }


def rows(count: int, *odd: float) -> Any:
    array = np.linspace(-3, 3, 4 * count, dtype=np.float32).reshape(count, 4)
    array.reshape(-1)[: len(odd)] = odd
    return array


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ((NAN,), "'x' has NaN"),
        ((-INF,), "'x' has infinity"),
        ((2e30, 1.0), "'x' has a value of size 2e\\+30, which overflows"),
        ((), ""),
    ],
)
def test_values_are_looked_at_wherever_they_lie(
    fake: FakeDriver, odd: tuple[float, ...], words: str
) -> None:
    run = made(STRICT, mode="per-wave")
    array = rows(5, *odd)
    for value in (array, OnDevice(fake, array)):
        fake.log.clear()
        if not words:
            assert tuple(run.run([value])[0].shape) == (5, 4)
            assert fake.names("cuGraphLaunch") == ["cuGraphLaunch"]
            continue
        with pytest.raises(InvalidInputError, match=words):
            run.run([value])
        assert not fake.names("cuGraphLaunch")


@pytest.mark.parametrize(
    ("capability", "arch", "runs"),
    [
        ((9, 0), "sm_90a", True),
        ((9, 0), "sm_80", False),
        ((8, 6), "sm_80", True),
        ((8, 0), "sm_86", False),
        ((10, 3), "sm_100a", False),
        ((12, 1), "sm_120", True),
    ],
)
def test_a_program_for_another_gpu_says_so(
    fake: FakeDriver, capability: tuple[int, int], arch: str, runs: bool
) -> None:
    kind = "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_"
    fake.attributes |= {kind + "MAJOR": capability[0], kind + "MINOR": capability[1]}
    if runs:
        assert made(arch=arch).run([rows(2)])
        return
    words = (
        rf"compiled for {arch} \(.*\), the device is fake of compute capability {capability[0]}\."
    )
    with pytest.raises(DeviceError, match=words):
        made(arch=arch)
    assert not fake.names("cuModuleLoadData")


def test_a_program_for_a_gpu_with_more_shared_memory_says_so(fake: FakeDriver) -> None:
    fake.attributes["CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"] = 99 * 1024
    assert made(scratch=98 * 1024)
    with pytest.raises(DeviceError, match="needs 102400 bytes of shared memory a block, fake has"):
        made(scratch=100 * 1024)


def test_a_gpu_before_ampere_is_refused_by_name(fake: FakeDriver) -> None:
    fake.attributes["CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR"] = 7
    with pytest.raises(DeviceError, match=r"fake has compute capability 7\.0, irkit needs 8\.0"):
        made()


def test_a_model_that_takes_any_value_waits_for_nothing(fake: FakeDriver) -> None:
    run = made(mode="per-wave")
    value = OnDevice(fake, rows(3, NAN))
    run.run([value])
    fake.log.clear()
    run.run([value])
    assert not fake.names("cuStreamSynchronize", "cuMemcpyDtoHAsync", "cuLaunchKernel")


def test_no_rows(fake: FakeDriver) -> None:
    """A network has none to answer for; an estimator refuses them, as its library."""
    empty = rows(0)
    for value in (empty, OnDevice(fake, empty)):
        network = made(mode="persistent")
        assert tuple(network.run([value])[0].shape) == (0, 4)
        assert not fake.names("cuLaunchCooperativeKernel")
        with pytest.raises(InvalidInputError, match="expected 1 or more rows, got 0"):
            made(STRICT).run([value])
    # What does not depend on the batch is computed all the same.
    fixed = replace(PROGRAM, outputs=(*PROGRAM.outputs, FIXED))
    made(program=fixed.sealed(), mode="persistent").run([empty])
    assert fake.names("cuLaunchCooperativeKernel")


def test_what_another_stream_makes_is_waited_for(fake: FakeDriver) -> None:
    run = made(mode="persistent")
    for stream, waits in [(None, 0), (77, 1), (int(run.stream), 0)]:
        fake.log.clear()
        run.run([OnDevice(fake, rows(2), stream)])
        found = [c for c in fake.log if c[0] == "cuStreamWaitEvent"]
        assert len(found) == waits
        assert all(c[1] == run.stream for c in found)
        assert [c[2] for c in fake.log if c[0] == "cuEventRecord"] == [77] * waits


def test_a_run_that_could_not_start_counts_for_nothing(fake: FakeDriver) -> None:
    """Else the next one would wait for signals that nobody gave."""
    run = made(mode="persistent")
    run.run([rows(2)])
    assert run.residence.epoch == 1
    fake.failing = {"cuLaunchCooperativeKernel"}
    with pytest.raises(DeviceError, match="cuLaunchCooperativeKernel failed"):
        run.run([rows(2)])
    fake.failing.clear()
    assert run.residence.epoch == 1
    run.run([rows(2)])
    assert run.residence.epoch == 2


def test_modes_that_cannot_be(fake: FakeDriver) -> None:
    with pytest.raises(DeviceError, match=f"'per-wave': {NOT_PROVED}; allowed: auto, persistent"):
        made(program=replace(PROGRAM, modes=("serial", "persistent")).sealed(), mode="per-wave")
    fake.attributes["CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT"] = 3
    driver.device.cache_clear()
    with pytest.raises(DeviceError, match=r"'persistent': .*needs 4 blocks.*holds 3.*per-wave"):
        made(mode="persistent")
    assert made().choice.allowed == ("per-op", "per-wave")


def image(*names: str) -> bytes:
    """An ELF image with sections of these functions' names, and no more."""
    body = b"".join(f".text.{name}\0".encode() for name in names)
    header = b"\x7fELF".ljust(32, b"\0") + struct.pack("<QQ", 0, 64 + len(body))
    return header.ljust(64, b"\0") + body


def test_kernels_are_taken_of_the_image_that_has_them(fake: FakeDriver) -> None:
    images = [image("persistent", "wave"), image("op_0"), image("op_1", "op_10")]
    module = driver.Module(b"".join(images), driver.device())
    for name, number in (("wave", 0), ("op_0", 1), ("op_1", 2), ("op_10", 2)):
        kernel = module.kernel(name, 1, 32)
        handle, found = fake.functions[kernel.function]
        assert (fake.modules[handle], found) == (images[number], name)
    loaded = list(module._handles)
    del module, kernel
    gc.collect()
    assert [("cuModuleUnload", handle) in fake.log for handle in loaded] == [True] * 3


def test_a_dropped_program_gives_all_back(fake: FakeDriver) -> None:
    run = made()
    for mode in ("auto", "per-wave"):
        run.mode = mode
        for count in (1, 2, 40):
            for _ in range(12):
                run.run([rows(count)])
    output = run.run([OnDevice(fake, rows(3))])[0]
    (module,) = run.module._handles
    taken = {name: fake.names(name) for name in ("cuMemAlloc", "cuStreamCreate")}
    del run
    gc.collect()
    assert ("cuModuleUnload", module) in fake.log
    created, gone = fake.names("cuGraphInstantiate"), fake.names("cuGraphExecDestroy")
    assert len(created) == len(gone) > 0
    order = fake.names("cuGraphExecDestroy", "cuCtxSynchronize", "cuModuleUnload")
    assert order[-2:] == ["cuCtxSynchronize", "cuModuleUnload"]
    # An output that is still held keeps its memory and its stream.
    assert not fake.names("cuMemFree", "cuStreamDestroy")
    output.numpy()
    del output
    gc.collect()
    assert len(fake.names("cuMemFree")) == len(taken["cuMemAlloc"])
    assert len(fake.names("cuStreamDestroy")) == len(taken["cuStreamCreate"])
    assert len(fake.names("cuEventDestroy")) == len(fake.names("cuEventCreate"))


STATEFUL = replace(
    PROGRAM,
    states=(Port("h", "float32", (2, 3)), Port("n", "int64", ())),
    appends=(Appended(0, 4, 0, 4, 0, (), (Operand(3, 0), Operand(5, 0), Operand(4, 0))),),
).sealed()


def test_state_stays_on_the_device(fake: FakeDriver) -> None:
    run = made(program=STATEFUL, mode="persistent")
    assert run.state.read(0).tolist() == [[0.0] * 3] * 2
    for _ in range(2):
        run.run([rows(2)])
    # Behind the spaces, the input and the output; and nothing of it is copied by a run.
    bases = np.frombuffer(fake.memory, np.int64, 7, run.residence.bases)
    assert bases[5:].tolist() == run.state.addresses
    assert all(address % 256 == 0 for address in run.state.addresses)
    fake.log.clear()
    run.run([OnDevice(fake, rows(2))])
    assert not fake.names("cuMemcpyDtoHAsync", "cuMemAlloc")
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    run.state.write(0, value)
    np.testing.assert_array_equal(run.state.read(0), value)
    assert run.state.read(1).shape == ()


def test_state_is_read_after_the_last_run(fake: FakeDriver) -> None:
    run = made(program=STATEFUL, mode="persistent")
    run._follow(77)
    fake.log.clear()
    run.state.read(0)
    assert ("cuStreamSynchronize", 77) in fake.log


def test_a_run_that_fails_on_the_device_loses_the_state(fake: FakeDriver) -> None:
    run = made(program=STATEFUL, mode="persistent")
    fake.failing = {"cuLaunchCooperativeKernel"}
    with pytest.raises(DeviceError, match="failed"):
        run.run([rows(2)])
    fake.failing.clear()
    with pytest.raises(DeviceError, match="the state was lost"):
        run.run([rows(2)])
    run.state.advance.whole = True
    run.run([rows(2)])


def test_no_rows_are_a_step_too(fake: FakeDriver) -> None:
    run = made(program=STATEFUL, mode="persistent")
    assert tuple(run.run([rows(0)])[0].shape) == (0, 4)
    assert fake.names("cuLaunchCooperativeKernel")


def test_a_program_with_state_is_freed_when_it_is_dropped(fake: FakeDriver) -> None:
    """At once, not when cycles are looked for."""
    gc.disable()
    try:
        run = made(program=STATEFUL, mode="persistent")
        run.run([rows(2)])
        del run
        assert len(fake.names("cuMemFree")) == len(fake.names("cuMemAlloc"))
    finally:
        gc.enable()
