"""The kernel that looks whether values on a device are taken, thread by thread, and who asks it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_cuda import FakeDriver
from ptx_emulator import Entry
from test_cuda_executor import fake
from xdsl.context import Context
from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from irkit.architectures import ARCHITECTURES
from irkit.dialects.te import Te
from irkit.dialects.value_addresses import follows_values
from irkit.errors import DeviceError
from irkit.runtime.cuda.assembling import assemble
from irkit.runtime.cuda.driver import device
from irkit.runtime.cuda.float_bits import THREADS
from irkit.runtime.cuda.look import REFUSED, TAKEN, Look, look_ptx, refused_range
from irkit.runtime.cuda.memory import Pool
from irkit.runtime.value_checks import ValueCheck

__all__ = ["fake"]
NAN, INF = float("nan"), float("inf")


def answered(array: Any, check: ValueCheck, blocks: int = 2, threads: int = THREADS) -> int:
    """What the kernel writes; twice, since it must leave behind what it began with."""
    start = 64
    memory = bytearray(start) + bytearray(array.tobytes())
    entry = Entry(look_ptx(), f"look_{array.dtype}")
    found: set[int] = set()
    for _ in range(2):
        entry.run(blocks, threads, [start, array.size, *refused_range(check), 16, 32], memory)
        found.add(int.from_bytes(memory[32:40], "little"))
        assert not any(memory[:32] + memory[40:64])
        memory[32:40] = bytes(8)
    (answer,) = found
    return answer


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("most", [0.0, 3.0, 1e30, None, INF, -1.0])
@pytest.mark.parametrize("nan", [False, True])
def test_the_kernel_takes_what_the_check_takes(dtype: str, most: float | None, nan: bool) -> None:
    kind: Any = np.dtype(dtype)
    largest = float(np.finfo(kind).max)
    check = ValueCheck(kind, largest if most is None else most, nan)
    edge = kind.type(check.most)
    with np.errstate(over="ignore", under="ignore"):
        beside = np.nextafter(edge, kind.type([INF, -INF]))
    odd = [0.0, -0.0, edge, -edge, *beside, largest, -largest]
    odd += [INF, -INF, NAN, -NAN, float(np.finfo(kind).tiny) / 4]
    for value in np.array(odd, kind):
        array = np.array([value], kind)
        assert (answered(array, check, 1, 32) == TAKEN) == check.holds(array), value


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 31, 33, 600, 1023, 1024, 2600])
def test_the_kernel_leaves_nothing_out(dtype: str, size: int) -> None:
    rng = np.random.default_rng(size)
    kind: Any = np.dtype(dtype)
    array = rng.standard_normal(size).astype(kind)
    check = ValueCheck(kind, float(np.finfo(kind).max), False)
    assert answered(array, check) == TAKEN
    for place in {0, size // 3, size // 2, max(0, size - 5), size - 1}:
        for value in (NAN, INF, -INF):
            odd = array.copy()
            odd[place] = value
            assert answered(odd, check, threads=32) == REFUSED


def test_the_smallest_nan_and_the_one_with_a_sign_are_refused() -> None:
    bits = np.array([0x7F800001, 0xFF800001, 0xFFFFFFFF, 0x7FFFFFFF], np.uint32)
    check = ValueCheck(np.dtype(np.float32), INF, False)
    for odd in bits.view(np.float32):
        assert answered(np.array([1.0, odd], np.float32), check, 1, 32) == REFUSED
    assert refused_range(ValueCheck(np.dtype(np.float32), INF, True))[1] == 0


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_kernel_assembles_without_spills(arch: str) -> None:
    cubin, log = assemble(look_ptx(), arch)
    assert cubin
    assert "look_float64" in log
    assert " 0 bytes spill stores" in log


def test_no_values_are_taken_without_a_kernel(fake: FakeDriver) -> None:
    look = Look(Pool(device()), ValueCheck(np.dtype(np.float32), INF, False), 7)
    look.start(64, 0, 7)
    assert look.taken(7)
    assert not fake.names("cuLaunchKernel")


def test_what_ends_without_an_answer_is_an_error(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Look(Pool(device()), ValueCheck(np.dtype(np.float32), INF, False), 7)
    monkeypatch.setattr(FakeDriver, "_cuLaunchKernel", lambda *_: ())
    look.start(64, 5, 7)
    with pytest.raises(DeviceError, match="ended without an answer"):
        look.taken(7)
    fake.failing |= {"cuStreamQuery", "cuStreamSynchronize"}
    with pytest.raises(DeviceError, match="cuStreamSynchronize failed"):
        look.taken(7)


def test_a_word_of_the_host_goes_behind_all_work(fake: FakeDriver) -> None:
    look = Look(Pool(device()), ValueCheck(np.dtype(np.float32), INF, False), 7)
    fake.log.clear()
    del look
    assert fake.names("cuCtxSynchronize", "cuMemFreeHost") == ["cuCtxSynchronize", "cuMemFreeHost"]


MAP = """
func.func @f(%x: tensor<4xf32>, %i: tensor<4xi64>) {{
  %e = tensor.empty() : tensor<4xf32>
  {text}
  func.return
}}
"""
GENERIC = """%0 = linalg.generic {{
  indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
  iterator_types = ["parallel"]}} ins(%x, %i : tensor<4xf32>, tensor<4xi64>) outs(%e : tensor<4xf32>) {{
  ^bb0(%a: f32, %n: i64, %o: f32):
    {body}
}} -> tensor<4xf32>"""
SUM = "%b = arith.addf %a, %a : f32  linalg.yield %b : f32"
READ = (
    "%n1 = arith.index_cast %n : i64 to index  %b = tensor.extract %x[%n1] : tensor<4xf32>"
    "  linalg.yield %b : f32"
)
GATHER = "%0 = te.gather %x, %i {axis = 0 : i64} : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>"


@pytest.mark.parametrize(
    ("text", "follows"),
    [(GENERIC.format(body=SUM), False), (GENERIC.format(body=READ), True), (GATHER, True)],
)
def test_what_reads_where_values_say_is_known(text: str, follows: bool) -> None:
    context = Context()
    for dialect in (Builtin, arith.Arith, func.Func, linalg.Linalg, tensor.Tensor, Te):
        context.load_dialect(dialect)
    module = Parser(context, MAP.format(text=text)).parse_module()
    function = next(iter(module.ops))
    assert isinstance(function, func.FuncOp)
    assert follows_values(function.body.block) is follows
