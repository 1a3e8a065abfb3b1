"""One set of rules for inputs of both targets, and the kernel that looks at values on a device."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from ptx_emulator import Entry

from irkit.architectures import ARCHITECTURES
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.model_info import ModelInfo
from irkit.runtime.cuda.compiling import assemble
from irkit.runtime.cuda.extent import ExtentProbe, extent_ptx, read_extent
from irkit.runtime.cuda.float_bits import THREADS
from irkit.runtime.input_policy import PIECE, DeviceFacts, Extent, InputPolicy, extent_of
from irkit.runtime.value_checks import ValueCheck
from irkit.schedule.tables import Port

NAN, INF = float("nan"), float("inf")
PORTS = (Port("x", "float32", (-1, 4)), Port("y", "float64", (8,)))


def facts(shape: Any, dtype: str, address: int = 4096, strides: Any = None) -> DeviceFacts:
    return DeviceFacts(address, tuple(shape), np.dtype(dtype), strides)


@pytest.mark.parametrize(
    ("shape", "dtype", "words"),
    [
        ((3, 5), "float32", "input 'x': expected shape rowsx4, got 3x5"),
        ((4,), "float32", "input 'x': expected shape rowsx4, got 4"),
        ((3, 4), "complex64", "dtype"),
    ],
)
def test_host_and_device_refuse_alike(shape: Any, dtype: str, words: str) -> None:
    policy = InputPolicy(PORTS)
    with pytest.raises(InvalidInputError, match=words):
        policy.host_array(0, np.zeros(shape, dtype))
    with pytest.raises(InvalidInputError, match=words):
        policy.check_device_array(0, facts(shape, dtype))


def test_layouts_on_a_device() -> None:
    policy = InputPolicy(PORTS)
    for shape, strides in [((3, 4), (16, 4)), ((1, 4), (999, 4)), ((0, 4), (7, 7)), ((3, 4), None)]:
        policy.check_device_array(0, facts(shape, "float32", strides=strides))
    for strides in [(4, 12), (32, 4), (16, 8)]:
        with pytest.raises(InvalidInputError, match="C-contiguous"):
            policy.check_device_array(0, facts((3, 4), "float32", strides=strides))
    with pytest.raises(InvalidInputError, match="multiple of 16"):
        policy.check_device_array(0, facts((3, 4), "float32", 4100))


def test_rows() -> None:
    estimator = InputPolicy(PORTS[:1], ModelInfo("classifier", ("x",), ("y",)))
    network = InputPolicy(PORTS)
    assert network.rows([(0, 4), (8,)]) == 0
    assert network.rows([(7, 4), (8,)]) == 7
    assert InputPolicy(PORTS[1:]).rows([(8,)]) == 1
    with pytest.raises(InvalidInputError, match="expected 1 or more rows, got 0"):
        estimator.rows([(0, 4)])
    with pytest.raises(InvalidInputError, match=r"disagree on the number of rows: \[2, 3\]"):
        InputPolicy(PORTS[:1] * 2).rows([(2, 4), (3, 4)])
    with pytest.raises(InvalidInputError, match=r"expected 2 inputs \(x, y\), got 1"):
        network.check_count([1])


@pytest.mark.parametrize(
    ("rules", "values", "words"),
    [
        ({"allow_nan": False}, [1, NAN], "has NaN"),
        ({"allow_nan": False}, [1, INF], ""),
        ({"allow_infinity": False}, [-INF, NAN], "has infinity"),
        ({"allow_infinity": False}, [NAN, 3e38], ""),
        ({"allow_infinity": False, "largest": 100.0}, [NAN, -101], "of size 101.*at most 100"),
        ({"allow_infinity": False, "largest": 100.0}, [NAN, -100], ""),
        ({"allow_nan": False, "largest": 100.0}, [INF, 1], ""),
        ({}, [NAN, INF], ""),
    ],
)
def test_values_that_a_model_has_no_meaning_for(rules: Any, values: Any, words: str) -> None:
    policy = InputPolicy(PORTS[1:], ModelInfo("regressor", ("y",), ("z",), **rules))
    array = np.zeros(8)
    array[3 : 3 + len(values)] = values
    if not words:
        policy.host_array(0, array)
        return
    with pytest.raises(InvalidInputError, match=words):
        policy.host_array(0, array)
    with pytest.raises(InvalidInputError, match=words):
        policy.check_extent(0, extent_of(array), lambda: array)
    assert policy.restricts(0)


# On the device


def looked_at(array: Any, blocks: int = 2, threads: int = THREADS) -> Extent:
    """What the kernel finds, thread by thread."""
    start = 64
    memory = bytearray(start) + bytearray(array.tobytes())
    entry = Entry(extent_ptx(), f"extent_{array.dtype}")
    entry.run(blocks, threads, [start, array.size, 16], memory)
    words = struct.unpack("<2Q", memory[16:32])
    assert not any(memory[:16] + memory[32:64])
    return read_extent(str(array.dtype), words)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 31, 33, 600, 1100])
def test_the_kernel_finds_what_numpy_finds(dtype: str, size: int) -> None:
    rng = np.random.default_rng(size)
    array = (rng.standard_normal(size) * 10.0 ** rng.integers(-40, 30, size)).astype(dtype)
    assert looked_at(array) == extent_of(array)
    for values in [
        (NAN,),
        (-INF,),
        (INF, -NAN),
        (np.finfo(dtype).max,),
        (-np.finfo(dtype).tiny / 4,),
    ]:
        odd = array.copy()
        odd[rng.integers(0, size, len(values))] = values
        assert looked_at(odd) == extent_of(odd)
    assert looked_at(np.full(size, -0.0, dtype)) == (0.0, False)
    # Neighbours in their bits: infinity, and the smallest NaN.
    infinity = np.full(size, -INF, dtype)
    assert looked_at(infinity) == (INF, False)
    infinity.view(f"u{array.itemsize}")[-1] += 1
    assert looked_at(infinity) == (INF if size > 1 else 0.0, True)
    assert looked_at(np.full(size, NAN, dtype)) == (0.0, True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1023, 1024, 2600])
def test_threads_that_read_several_vectors_at_once_leave_nothing_out(dtype: str, size: int) -> None:
    array = np.random.default_rng(size).standard_normal(size).astype(dtype)
    for place in (0, 3, 500, size // 2, size - 5, size - 1):
        odd = array.copy()
        odd[place] = -1e30
        assert looked_at(odd, threads=32) == extent_of(odd)
        odd[place] = NAN
        assert looked_at(odd, 1, 32) == extent_of(odd)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_kernel_assembles_without_spills(arch: str) -> None:
    cubin, log = assemble(extent_ptx(), arch)
    assert cubin
    assert "extent_float32" in log
    assert " 0 bytes spill stores" in log


def test_a_probe_of_nothing_asks_no_device() -> None:
    probe = ExtentProbe.__new__(ExtentProbe)
    nowhere: Any = None
    assert probe(0, 0, "float32", nowhere, nowhere) == Extent(0.0, False)
    with pytest.raises(UnsupportedError, match="float16"):
        probe(0, 1, "float16", nowhere, nowhere)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 33, PIECE + 1, 5 * PIECE + 7])
def test_one_pass_finds_whatever_is_refused(dtype: str, size: int) -> None:
    """Wherever it stands, what is no number, infinite or too large is found by it, and named."""
    info = ModelInfo(
        "classifier", ("x",), ("y",), allow_nan=False, allow_infinity=False, largest=1e18
    )
    policy = InputPolicy([Port("x", dtype, (-1,))], info)
    check = policy.value_check(0)
    assert check is not None
    x = np.random.default_rng(size).normal(size=size).astype(dtype)
    assert check.holds(x)
    for wrong, words in (
        (NAN, "NaN"),
        (INF, "infinity"),
        (-INF, "infinity"),
        (-1.1e18, "overflows"),
    ):
        for place in (0, size // 2, size - 1):
            bad = x.copy()
            bad[place] = wrong
            assert not check.holds(bad)
            with pytest.raises(InvalidInputError, match=words):
                policy.host_array(0, bad)
    x[:] = 0.9e18
    np.testing.assert_array_equal(policy.host_array(0, x), x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most", [0.1, 1e30, -1.0, 0.0, float(np.finfo(np.float32).max), INF])
@pytest.mark.parametrize("nan", [True, False])
def test_a_check_rounds_its_bound_down(dtype: Any, most: float, nan: bool) -> None:
    """No number beyond the bound passes, as float64 knows it; where it is a number, it does."""
    check = ValueCheck(np.dtype(dtype), most, nan)
    with np.errstate(over="ignore"):
        near = dtype(most)
        beside = [np.nextafter(near, dtype(-INF)), np.nextafter(near, dtype(INF))]
    values = [near, *beside, dtype(0), -near]
    for value in [*values, dtype(INF), dtype(-INF)]:
        assert check.holds(np.array([[value]])) == (abs(float(value)) <= most), value
    assert check.holds(np.array([[NAN]], dtype)) == nan
    assert check.holds(np.zeros((0, 3), dtype))


@pytest.mark.parametrize("most", [1.0, float(np.finfo(np.float32).max), INF])
def test_rounding_checks_what_is_rounded(most: float) -> None:
    check, made = ValueCheck(np.dtype(np.float32), most, False), np.empty((3, 2), np.float32)
    wide = np.array([[0.1, -1.0], [1e-50, 0.5], [1 / 3, -0.0]])
    assert check.narrowed(wide, made)
    np.testing.assert_array_equal(made, wide.astype(np.float32))
    assert np.signbit(made[2, 1])
    for wrong in (NAN, INF, 1e39, 1 + 1e-7):
        wide[1, 1] = wrong
        with np.errstate(over="ignore"):
            held = abs(float(np.float32(wrong))) <= most
        assert check.narrowed(wide, made) == held


@pytest.mark.parametrize("rows", [0, 1, 7, 3000])
@pytest.mark.parametrize("finite", [True, False])
def test_rows_are_rounded_as_numpy_rounds_them(rows: int, finite: bool) -> None:
    """float64 in any layout; what is refused of it is refused by name, where it is."""
    info = ModelInfo(
        "network",
        ("x",),
        ("y",),
        casts=("float64",),
        allow_nan=not finite,
        allow_infinity=not finite,
    )
    policy = InputPolicy(PORTS[:1], info)
    x = np.random.default_rng(rows).normal(size=(rows, 4)) * 1e-40
    if not finite and rows:
        x[-1] = (NAN, INF, 1e39, -0.0)
    for given in (x, np.asfortranarray(x), x.astype(">f8")):
        found = policy.host_array(0, given)
        assert found.dtype == np.float32
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(found, x.astype(np.float32))
    with pytest.raises(InvalidInputError, match="expected shape rowsx4"):
        policy.host_array(0, np.zeros((rows, 5)))
    for wrong, words in ((NAN, "NaN"), (INF, "infinity"), (1e39, "infinity")):
        if finite and rows:
            bad = x.copy()
            bad[rows // 2, 1] = wrong
            with pytest.raises(InvalidInputError, match=words):
                policy.host_array(0, bad)
    unknown = InputPolicy(PORTS[:1], ModelInfo("network", ("x",), ("y",)))
    with pytest.raises(InvalidInputError, match="expected dtype float32, got float64"):
        unknown.host_array(0, x)
