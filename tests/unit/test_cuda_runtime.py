"""The parts of the CUDA runtime that can be checked without a GPU."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from irkit.bfloat16 import dtype_of
from irkit.errors import ArtifactError, DeviceError, InvalidInputError
from irkit.lower.task_to_numba.dispatch_cuda import Kernel, run_task
from irkit.lower.task_to_numba.launch_facts_cuda import launch_facts
from irkit.lower.task_to_numba.walkers_cuda import entries, layout_of
from irkit.runtime.cuda import arrays, driver, memory
from irkit.runtime.cuda.availability import why_not
from irkit.runtime.cuda.executor import CudaExecutor
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.cuda.residence import padded_records, unpinned_records
from irkit.runtime.input_policy import DeviceFacts, InputPolicy
from irkit.schedule.tables import Appended, Operand, Pinned, Port, Program, build_tables

OPERANDS = (Operand(3, 0), Operand(2, 0), Operand(0, 64))
PROGRAM = Program(
    device="test4",
    veus=4,
    threads=128,
    shared_bytes=96 + 112,
    inputs=(Port("x", "float32", (8,)),),
    outputs=(Port("y", "float32", (8,)),),
    arena_bytes=128,
    row_bytes=0,
    constant_bytes=256,
    constants=(("w", 0, 256),),
    kernels=("a", "b"),
    appends=(
        Appended(0, 4, 0, 2, 0, (), OPERANDS, (Pinned(1, 32, (0, 64) * 2, (64, 48) * 2),)),
        Appended(1, 2, 1, 2, 1, (0,), (Operand(0, 64), Operand(4, 0))),
    ),
    modes=("per-op", "per-wave", "persistent"),
    verified="sha256:0",
).sealed()
KERNELS = [Kernel("a", ["float32"] * 3, 100), Kernel("b", ["float32"] * 2, 40, batch=True)]


@pytest.mark.parametrize("count", [*range(12), 57, 200])
def test_each_number_is_dispatched_to_its_rkernel(count: int) -> None:
    kernels = [Kernel(f"kernel_{n}", ["float32"] * (n % 3), 16 * n) for n in range(count)]
    ran: list[tuple[int, ...]] = []

    def rkernel(number: int):
        return lambda *given: ran.append((number, *given))

    names = {f"kernel_{n}": rkernel(n) for n in range(count)}
    names |= {"fused": lambda f: f, "int32": int, "f32p": int}
    exec(run_task(kernels), names)
    for number in range(count):
        names["run_task"](number, 5, 7, 1, 1000, [100, 200])
    assert ran == [(n, 5, 7, 1, 1000 - 16 * n, *(100, 200)[: n % 3]) for n in range(count)]


def test_launch_facts_are_read_back_without_running_the_module() -> None:
    text = "import nothing_of_this_name\nPROGRAM = " + repr(PROGRAM) + "\n"
    program, facts = read_facts(text + launch_facts(PROGRAM, KERNELS, "sm_86"))
    assert program == PROGRAM
    assert (facts.arch, facts.threads) == ("sm_86", 128)
    assert facts.scratch == (112, 48)
    assert facts.batch == (False, True)
    layout = layout_of(PROGRAM)
    assert facts.entries == entries(KERNELS, layout) == ["persistent", "wave", "op_0", "op_1"]
    with pytest.raises(ArtifactError, match="LAUNCH"):
        read_facts(text)


def test_records_without_shared_memory_keep_the_order_of_the_vEUs() -> None:
    tables = build_tables(PROGRAM)
    plain = unpinned_records(PROGRAM, tables)
    assert plain[:, [0, 1, 2, 5]].tolist() == tables.records[:, [0, 1, 2, 5]].tolist()
    at = 6 + 2 * tables.max_waits
    assert (tables.records[:, at + 3] == -1).sum() == 4
    assert (plain[:, at::3] >= 0).all()
    assert (plain[:, 3] == -1).all()
    padded = padded_records(plain, 20)
    assert padded.shape == (6, 20)
    assert not padded[:, plain.shape[1] :].any()


def test_no_device_is_one_clear_error() -> None:
    if why_not() is None:
        pytest.skip("there is a device")
    driver.api.cache_clear()
    with pytest.raises(DeviceError, match=r"driver|bindings|device"):
        driver.device()
    _, facts = read_facts(f"PROGRAM = {PROGRAM!r}\n" + launch_facts(PROGRAM, KERNELS, "sm_86"))
    with pytest.raises(DeviceError, match="mode 'fast' for cuda: expected auto, per-op"):
        CudaExecutor(PROGRAM, facts, b"", {}, mode="fast")


def test_memory_given_back_is_handed_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = iter(range(4096, 1 << 30, 4096))
    monkeypatch.setattr(memory, "call", lambda name, *args: next(addresses))
    monkeypatch.setattr(memory, "Stream", lambda device: None)
    freed: list[int] = []
    device: Any = SimpleNamespace(
        activate=lambda: None, release=lambda name, address: freed.append(address)
    )
    pool = memory.Pool(device)
    first = pool.take(1000)
    address = first.address
    assert pool.take(1000).address != address
    del first
    gc.collect()
    pool.allocations = 0
    # The one dropped last comes first; both sizes round to the same block.
    assert address in {pool.take(1024).address, pool.take(900).address}
    assert pool.allocations == 0
    assert memory.Pool.rounded(1) == 256
    assert memory.Pool.rounded((1 << 20) + 1) == 2 << 20
    kept = pool.take(5000)
    del pool
    gc.collect()
    assert not freed
    last = kept.address
    del kept
    gc.collect()
    # The last buffer takes the pool along, and with it every block.
    assert {address, last} < set(freed)


class OnDevice:
    """A foreign array that claims to be on a device."""

    def __init__(self, **changes: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (8,),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
            **changes,
        }
        self.dtype = ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"typestr": "<f8"}, "expected dtype float32, got float64"),
        ({"shape": (4, 2)}, "expected shape 8, got 4x2"),
        ({"strides": (8,)}, "expected a C-contiguous array"),
        ({"data": (4100, False)}, "multiple of 16"),
    ],
)
def test_device_arrays_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    policy = InputPolicy(PROGRAM.inputs)
    facts = arrays.device_facts(OnDevice(strides=(4,)))
    assert facts == (4096, (8,), np.dtype("float32"), (4,), None)
    policy.check_device_array(0, facts)
    with pytest.raises(InvalidInputError, match=message):
        policy.check_device_array(0, arrays.device_facts(OnDevice(**changes)))


@pytest.mark.parametrize("said", ["torch.bfloat16", "bfloat16"])
def test_bfloat16_has_no_word_of_the_protocol(said: str) -> None:
    array = OnDevice(typestr="|V2")
    array.dtype = said
    assert arrays.device_facts(array).dtype == dtype_of("bfloat16")
    array.dtype = "torch.float16"
    assert arrays.device_facts(array).dtype == np.dtype("V2")


def test_whose_arrays_come_in() -> None:
    assert arrays.on_device(OnDevice())
    assert not arrays.on_device(np.zeros(3))
    assert arrays.library_of(OnDevice()) == "irkit"
    assert arrays.stream_of("irkit", OnDevice()) is None


class Tensor:
    """As much of PyTorch's as is asked of one on a GPU."""

    def __init__(self, dtype: str = "float32", contiguous: bool = True) -> None:
        self.dtype, self.layout, self.shape = f"torch.{dtype}", "torch.strided", [4, 5]
        self._contiguous = contiguous

    def is_contiguous(self) -> bool:
        return self._contiguous

    def data_ptr(self) -> int:
        return 512

    def get_device(self) -> int:
        return 1

    def detach(self) -> Any:
        return OnDevice(strides=(4, 16), shape=(4, 5))


def test_a_contiguous_tensor_is_asked_without_the_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    class Inner:
        _cuda_getCurrentRawStream = staticmethod(lambda number: 70 + number)

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Tensor, _C=Inner))
    facts = arrays.device_facts(Tensor())
    assert facts == DeviceFacts(512, (4, 5), np.dtype("float32"), None)
    assert arrays.device_facts(Tensor(contiguous=False)).strides == (4, 16)
    assert arrays.device_facts(Tensor("bits8")).strides == (4, 16)
    assert arrays.stream_of("torch", Tensor()) == 71
