"""Calls of a program that is one launch, and with PyTorch tensors such as came before, over a fake driver."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_cuda import FakeDriver
from test_cuda_executor import INF, NAN, PROGRAM, STRICT, OnDevice, fake, made, rows

from irkit.errors import DeviceError, InvalidInputError
from irkit.model_info import ModelInfo
from irkit.runtime.batch_border import BatchBorder
from irkit.runtime.cuda import single_launch, tensor_calls
from irkit.runtime.cuda.residence import Residence
from irkit.runtime.program import CompiledProgram
from irkit.runtime.variant import Variant
from irkit.schedule.modes import Mode
from irkit.schedule.tables import Appended, Operand

__all__ = ["fake"]
TWICE = replace(
    PROGRAM,
    arena_bytes=1024,
    appends=(
        Appended(0, 4, 0, 4, 0, (), (Operand(3, 0), Operand(0, 0))),
        Appended(0, 4, 0, 4, 1, (), (Operand(0, 0), Operand(4, 0))),
    ),
).sealed()


class Tensor:
    """As much of a tensor on the GPU as calls ask for."""

    layout = "torch.strided"

    def __init__(self, fake: FakeDriver, shape: tuple[int, ...], dtype: str = "float32") -> None:
        self.fake, self._shape, self.dtype = fake, shape, sys.intern(f"torch.{dtype}")
        self.at = fake._cuMemAlloc(4096)[0]
        self.contiguous, self.negative, self.is_cuda, self.device = True, False, True, 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def data_ptr(self) -> int:
        return self.at

    def get_device(self) -> int:
        return self.device if self.is_cuda else -1

    def is_contiguous(self) -> bool:
        return self.contiguous

    def is_neg(self) -> bool:
        return self.negative

    def detach(self) -> Any:
        return OnDevice(self.fake, np.zeros(self._shape, self.dtype.removeprefix("torch.")))


@pytest.fixture
def torch(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module with what irkit asks of PyTorch; `stream` is the current one."""
    found: Any = SimpleNamespace(Tensor=Tensor, stream=7)
    found.float32 = sys.intern("torch.float32")
    found.strided = Tensor.layout
    found.device = lambda kind, number: (kind, number)

    def empty(shape: tuple[int, ...], dtype: str, device: Any) -> Tensor:
        assert device in ("cuda", ("cuda", 0))
        return found.next or Tensor(fake, shape, dtype.removeprefix("torch."))

    found.next = None
    found.empty = empty
    found._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda number: found.stream)
    monkeypatch.setitem(sys.modules, "torch", found)
    return found


def test_what_comes_again_is_a_graph(
    fake: FakeDriver, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(mode="per-op")
    x, torch.next = Tensor(fake, (5, 4)), Tensor(fake, (5, 4))
    launches = ("cuLaunchKernel", "cuGraphInstantiate", "cuGraphLaunch")
    seen: list[list[str]] = []
    for _ in range(4):
        fake.log.clear()
        run.run([x])
        seen.append(fake.names(*launches))
    kernel, recorded, graph = launches
    # The second time it is recorded, and launched beside.
    assert seen == [[kernel], [kernel, kernel, recorded], [graph], [graph]]
    assert [c[2] for c in fake.log if c[0] == graph] == [7]
    # Other rows at the same place are another call; however many come, no more are kept.
    fake.log.clear()
    monkeypatch.setattr(single_launch, "_CALLS", 2)
    for count in (3, 4, 3, 4, 6, 3, 4):
        run.run([Tensor(fake, (count, 4))])
    assert not fake.names(graph)
    assert len(run._graphs) <= len(run._single._met) <= 2
    fake.log.clear()
    run = made(program=TWICE, mode="per-op")
    run.run([rows(5)])
    assert fake.names("cuGraphLaunch") == ["cuGraphLaunch"]


def test_a_kernel_begins_before_the_one_ahead_of_it_has_ended(fake: FakeDriver) -> None:
    """Never as the first."""
    run = made(program=TWICE, mode="per-op")
    assert run.facts.early
    fake.log.clear()
    run.run([rows(5)])
    launches = "cuLaunchKernel", "cuLaunchKernelEx"
    assert fake.names(*launches) == ["cuLaunchKernel", "cuLaunchKernelEx"]


def test_blocks_of_a_cluster_are_launched_together(fake: FakeDriver) -> None:
    run = made(program=TWICE, mode="per-op")
    run.facts = replace(run.facts, spread=(2,), clusters=(2,))
    (kernel,) = run.ops
    assert run.blocks(0, 4, 1) == 8
    fake.log.clear()
    kernel.launch(8, [0, 0, 1, 16], 7)
    kernel.launch(8, [0, 0, 1, 16], 7, early=run.device)
    first, second = (config.attrs for name, config, *_ in fake.log if name == "cuLaunchKernelEx")
    for attributes in (first, second):
        size = attributes[-1].value.clusterDim
        assert (size.x, size.y, size.z) == (2, 1, 1)
    assert [len(first), len(second)] == [1, 2]


def test_blocks_that_begin_early_are_kept_apart(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(program=TWICE, mode="per-op")
    kernel, most = run.ops[0], run.device.shared_bytes
    assert run.device.multiprocessors == 4
    monkeypatch.setattr(type(kernel), "blocks_per_multiprocessor", 4)
    assert kernel.shared_evenly(4, run.device) == most
    assert kernel.shared_evenly(5, run.device) == (most + 1024) // 2 - 1024
    assert kernel.shared_evenly(13, run.device) == kernel.shared_bytes


def test_an_older_driver_records_no_early_launch(fake: FakeDriver) -> None:
    fake.version = 12020
    run = made(program=TWICE, mode="per-op")
    fake.log.clear()
    run.run([rows(5)])
    assert fake.names("cuLaunchKernel", "cuLaunchKernelEx") == ["cuLaunchKernel"] * 2


def test_alone_there_is_nothing_to_choose(fake: FakeDriver) -> None:
    run = made()
    for _ in range(20):
        run.run([rows(5)])
    assert not fake.names("cuLaunchCooperativeKernel")
    assert set(run.choice.auto.chosen.values()) == {Mode.PER_OP}
    # Where the proof does not cover it, another mode is better than none.
    modes = ("serial", "persistent")
    run = made(program=replace(PROGRAM, modes=modes).sealed())
    run.run([rows(5)])
    assert fake.names("cuLaunchCooperativeKernel")


def test_each_set_of_addresses_has_its_table(
    fake: FakeDriver, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel is given the table whose words are where its operands are, and a table is copied once."""
    launched: list[tuple[int, ...]] = []

    def launch(self: Any, blocks: int, arguments: Any, stream: Any, **_: Any) -> None:
        table = int(arguments[1])
        count = len(PROGRAM.ports) + 3
        words = np.frombuffer(bytes(fake.memory[table : table + 8 * count]), np.int64)
        if stream != run.stream:  # that on which graphs are recorded
            launched.append((blocks, *map(int, words[3:]), *arguments[2:]))

    monkeypatch.setattr("irkit.runtime.cuda.driver.Kernel.launch", launch)
    monkeypatch.setattr(single_launch, "_TABLES", 3)
    torch.stream, run = 7, made(mode="per-op")
    inputs = [Tensor(fake, (count, 4)) for count in (5, 5, 40, 5, 5)]
    for x in (*inputs, *inputs):
        y = run.run([x])[0]
        count = x.shape[0]
        assert launched[-1] == (min(count, 4), x.at, y.at, count, -(-count // 16) * 16)
    fake.log.clear()
    x = Tensor(fake, (5, 4))
    y, z = Tensor(fake, (5, 4)), Tensor(fake, (5, 4))
    for torch.next in (y, z, y, z):
        assert run.run([x])[0] is torch.next
    assert fake.names("cuMemcpyHtoDAsync") == 2 * ["cuMemcpyHtoDAsync"]


def test_tensors_that_came_before_are_not_looked_at_again(
    fake: FakeDriver, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(mode="per-op")
    assert run.again([Tensor(fake, (5, 4))]) is None
    first = run.run([Tensor(fake, (5, 4))])[0]
    monkeypatch.setattr(run.inputs, "bind", None)
    (second,) = run.run([Tensor(fake, (5, 4))])
    assert (type(second), second.shape, second.dtype) == (Tensor, (5, 4), first.dtype)
    stream = [call[-3] for call in fake.log if call[0] == "cuLaunchKernel"]
    assert stream == [7, 7]


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "torch.float64"},
        {"contiguous": False},
        {"negative": True},
        {"is_cuda": False},
        {"device": 1},
        {"layout": "sparse"},
        {"at": 4097},
        {"_shape": (6, 4)},
    ],
)
def test_of_others_everything_is_asked(fake: FakeDriver, torch: Any, change: Any) -> None:
    run = made(mode="per-op")
    run.run([Tensor(fake, (5, 4))])
    other = Tensor(fake, (5, 4))
    assert run.again([other]) is not None
    vars(other).update(change)
    assert run.again([other]) is None
    assert run.again([other, other]) is None
    assert run.again([rows(5)]) is None


def test_subclasses_and_other_streams_are_asked(fake: FakeDriver, torch: Any) -> None:
    run = made(mode="per-op")
    run.run([Tensor(fake, (5, 4))])
    assert run.again([type("Parameter", (Tensor,), {})(fake, (5, 4))]) is None
    torch.stream = 8
    assert run.again([Tensor(fake, (5, 4))]) is None
    run.run([Tensor(fake, (5, 4))])
    # The run on the other stream waits for those before it.
    assert fake.names("cuStreamWaitEvent")
    assert run.again([Tensor(fake, (5, 4))]) is not None


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(
    ("odd", "words"),
    [(NAN, "has NaN"), (-INF, "has infinity"), (2e30, "has a value of size 2e\\+30")],
)
def test_values_that_matter_are_looked_at_in_every_call(
    fake: FakeDriver, torch: Any, odd: float, words: str, ahead: bool
) -> None:
    run = made(STRICT, mode="per-op")
    assert run.facts.any_values
    run.facts = replace(run.facts, any_values=ahead)

    def tensor(values: Any) -> Tensor:
        x = Tensor(fake, (5, 4))
        fake.memory[x.at : x.at + values.nbytes] = values.tobytes()
        return x

    run.run([tensor(rows(5))])
    assert run.again([tensor(rows(5))]) is not None
    fake.log.clear()
    for call in (run.again, run.run):
        with pytest.raises(InvalidInputError, match=f"'x' {words}"):
            call([tensor(rows(5, odd))])
    # All that is launched looks, where what is refused does not run: at whether it is, and at what it is.
    launched = [fake.functions[c[1]][1] for c in fake.log if c[0] == "cuLaunchKernel"]
    runs = ["op_0"] if ahead else []
    assert launched == ["look_float32", *runs, "extent_float32"] * 2
    assert run.again([tensor(rows(5, 9e29, -9e29))]) is not None


def test_what_runs_meanwhile_is_waited_for_by_nobody(fake: FakeDriver, torch: Any) -> None:
    run = made(STRICT, mode="per-op")
    run.run([Tensor(fake, (5, 4))])
    fake.log.clear()
    assert run.again([Tensor(fake, (5, 4))]) is not None
    waits = "cuStreamSynchronize", "cuMemcpyDtoHAsync", "cuMemsetD8Async", "cuStreamQuery"
    assert not fake.names(*waits)


def test_a_run_that_cannot_be_queued_leaves_no_look_behind(fake: FakeDriver, torch: Any) -> None:
    run = made(program=TWICE, info=STRICT, mode="per-op")
    x = Tensor(fake, (5, 4))
    run.run([x])
    fake.failing.add("cuGraphLaunch")
    with pytest.raises(DeviceError, match="cuGraphLaunch"):
        run.again([x])
    fake.failing.clear()
    fake.memory[x.at : x.at + 4] = np.float32(NAN).tobytes()
    with pytest.raises(InvalidInputError, match="'x' has NaN"):
        run.again([x])
    fake.memory[x.at : x.at + 4] = bytes(4)
    assert run.again([x]) is not None


def test_outputs_are_made_as_compiled_pytorch_makes_them(fake: FakeDriver, torch: Any) -> None:
    made_so: list[Any] = []

    def strided(shape: Any, strides: Any, dtype: str) -> Tensor:
        made_so.append((shape, strides, dtype))
        return Tensor(fake, shape)

    guards = SimpleNamespace(_empty_strided_cuda=strided)
    torch._C._dynamo, torch.current = SimpleNamespace(guards=guards), 0
    torch._C._cuda_getDevice = lambda: torch.current
    run = made(mode="per-op")
    run.run([Tensor(fake, (5, 4))])
    assert run.again([Tensor(fake, (5, 4))]) is not None
    assert made_so == [((5, 4), (4, 1), "torch.float32")]
    # On another device than the current one they are made by name.
    torch.current = 1
    assert run.again([Tensor(fake, (5, 4))]) is not None
    assert len(made_so) == 1


def test_known_shapes_do_not_pile_up(
    fake: FakeDriver, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensor_calls, "_KNOWN", 2)
    run = made(mode="per-op")
    for count in (1, 2, 3, 1, 2, 3):
        assert run.run([Tensor(fake, (count, 4))])[0].shape == (count, 4)
    assert len(run._tensors._known) <= 2


def test_the_table_has_the_program_s_own_bases(fake: FakeDriver) -> None:
    run = made(mode="per-op")
    home: Residence = run.residence
    bases = home.bases_of((111, 222), at=4096)
    # One more, which a walker reads where other plans have tensor maps.
    assert bases.tolist() == [*home.host_bases[:3], 111, 222, 0]
    assert home.host_bases[3:] == [0, 0, 0]


def program_of(executor: Any, info: ModelInfo) -> CompiledProgram:
    """A program whose one variant has this executor."""
    variant: Any = Variant.__new__(Variant)
    variant.artifact, variant.info = SimpleNamespace(target="cuda"), info
    variant.executor, variant.inputs = executor, executor.program.inputs
    variant.outputs = executor.program.outputs
    variant._border = BatchBorder(info, variant.inputs, variant.outputs)
    return CompiledProgram({"float32": variant})


def test_a_program_goes_there_at_once(
    fake: FakeDriver, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(mode="per-op")
    info = ModelInfo("regressor", ("x",), ("y",), methods={"predict": "y"})
    program = program_of(run, info)
    program.run([Tensor(fake, (5, 4))])
    for name in ("_plain", "variant"):
        monkeypatch.setattr(CompiledProgram, name, None)
    assert program.run([Tensor(fake, (5, 4))])[0].shape == (5, 4)
    assert program.predict(Tensor(fake, (5, 4))).shape == (5, 4)
    assert program(Tensor(fake, (5, 4))).shape == (5, 4)


@pytest.mark.parametrize("facts", [{"checks": {"ok": "no"}}, {"words": ((0, ("a",)),)}])
def test_what_is_made_of_arrays_is_made_in_every_call(
    fake: FakeDriver, torch: Any, facts: Any
) -> None:
    run = made(mode="per-op")
    run.run([Tensor(fake, (5, 4))])
    info = ModelInfo("regressor", ("x",), ("y",), methods={"predict": "y"})
    assert program_of(run, info)._again is not None
    assert program_of(run, replace(info, **facts))._again is None
