"""The extent of an array of floats on the device (`irkit.runtime.input_policy.Extent`), without Numba.

The kernel is PTX text, which the driver assembles. It looks at bits alone: without their sign, floats are
ordered as their bits are as unsigned integers, infinity behind all numbers and NaN behind infinity. So
nothing is rounded, and the order in which threads meet does not matter. Every thread takes the maximum over
its share, every warp over its threads by a butterfly of shuffles, and lane 0 of each warp adds that to the
two result words atomically: the largest bits that are no NaN, and 1 where there is a NaN.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from irkit.errors import UnsupportedError
from irkit.runtime.cuda.driver import Device, Kernel, Module, call
from irkit.runtime.cuda.float_bits import (
    AT_ONCE,
    THREADS,
    TYPES,
    blocks_for,
    module_of,
    of_bits,
    vectors_of,
)
from irkit.runtime.cuda.memory import DeviceBuffer
from irkit.runtime.input_policy import Extent

RESULT_BYTES = 16

_ENTRY = """
.visible .entry extent_{name}(.param .u64 first, .param .u64 count, .param .u64 result)
{{
    .reg .pred %more, %is_nan, %inside;
    .reg .b32 %block, %threads, %thread, %blocks, %lane, %low, %high;
    .reg .{bits} {words};
    .reg .{bits} %size, %most;
    .reg .b64 %array, %n, %vectors, %out, %i, %last, %next, %stride, %ahead, %at, %largest, %nan, %other;

    ld.param.u64 %array, [first];
    cvta.to.global.u64 %array, %array;
    ld.param.u64 %n, [count];
    ld.param.u64 %out, [result];
    cvta.to.global.u64 %out, %out;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %blocks, %nctaid.x;
    cvt.u64.u32 %i, %thread;
    mad.wide.u32 %i, %block, %threads, %i;
    mov.u64 %next, %i;
    mul.wide.u32 %stride, %blocks, %threads;
    mul.lo.u64 %ahead, %stride, {behind};
    shr.u64 %vectors, %n, {lanes};
    mov.{bits} %most, 0;
    mov.u64 %nan, 0;
$many:
    add.u64 %last, %i, %ahead;
    setp.ge.u64 %more, %last, %vectors;
    @%more bra $few;
{loads}
{looks}
    bra $many;
$few:
    setp.ge.u64 %more, %i, %vectors;
    @%more bra $rest;
{load}
{look}
    bra $few;
$rest:
    shl.b64 %i, %vectors, {lanes};
    add.u64 %i, %i, %next;
    setp.ge.u64 %more, %i, %n;
    @%more bra $meet;
    shl.b64 %at, %i, {shift};
    add.u64 %at, %array, %at;
    ld.global.{bits} %word0_0, [%at];
{look_at_one}
$meet:
    {widen} %largest, %most;
{butterfly}
    mov.u32 %lane, %laneid;
    setp.ne.u32 %more, %lane, 0;
    @%more ret;
    red.relaxed.gpu.global.max.u64 [%out], %largest;
    red.relaxed.gpu.global.max.u64 [%out+8], %nan;
    ret;
}}
"""
_LOAD = """\
    shl.b64 %at, %i, 4;
    add.u64 %at, %array, %at;
    ld.global.v{width}.{bits} {{{words}}}, [%at];
    add.u64 %i, %i, %stride;"""
_LOOK = """\
    and.{bits} %size, {word}, {magnitude};
    setp.gt.{unsigned} %is_nan, %size, {infinity};
    @%is_nan mov.u64 %nan, 1;
    @!%is_nan max.{unsigned} %most, %most, %size;"""
_EXCHANGE = """\
    mov.b64 {{%low, %high}}, {value};
    shfl.sync.bfly.b32 %low, %low, {distance}, 31, 0xffffffff;
    shfl.sync.bfly.b32 %high, %high, {distance}, 31, 0xffffffff;
    mov.b64 %other, {{%low, %high}};
    max.u64 {value}, {value}, %other;"""


def extent_ptx() -> str:
    """The module with an entry for each dtype; a warp of an entry must have all of its 32 threads.

    Arrays begin at multiples of 16; whoever launches an entry has as many threads as a vector has elements.
    """
    return module_of(_entry)


def _entry(name: str, **facts: Any) -> str:
    vectors = vectors_of(facts["shift"])

    def load(words: Sequence[str]) -> str:
        return _LOAD.format(width=len(words), words=", ".join(words), **facts)

    def look(words: Sequence[str]) -> str:
        return "\n".join(_LOOK.format(word=word, **facts) for word in words)

    butterfly = "\n".join(
        _EXCHANGE.format(value=value, distance=distance)
        for distance in (16, 8, 4, 2, 1)
        for value in ("%largest", "%nan")
    )
    return _ENTRY.format(
        name=name,
        words=", ".join(chain.from_iterable(vectors)),
        lanes=4 - facts["shift"],
        behind=AT_ONCE - 1,
        loads="\n".join(map(load, vectors)),
        looks="\n".join(map(look, vectors)),
        load=load(vectors[0]),
        look=look(vectors[0]),
        look_at_one=look(vectors[0][:1]),
        butterfly=butterfly,
        **facts,
    )


def read_extent(dtype: str, words: Any) -> Extent:
    """What the kernel's two result words say."""
    return Extent(of_bits(int(words[0]), dtype), bool(words[1]))


class ExtentProbe:
    """Looks at arrays on one device. Thread-safe."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._module = Module(extent_ptx().encode() + b"\0", device)
        self._kernels: dict[str, Kernel] = {}
        self._lock = threading.Lock()

    def __call__(
        self, address: int, count: int, dtype: str, result: DeviceBuffer, stream: Any
    ) -> Extent:
        """The extent of `count` elements at `address`, as they are when `stream` comes to it; waits for that.

        `result` has room for `RESULT_BYTES`.
        """
        if dtype not in TYPES:
            raise UnsupportedError(f"the largest value of a {dtype} array on a device")
        if count == 0:
            return Extent(0.0, False)
        result.clear(stream)
        blocks = blocks_for(count, self._device.multiprocessors)
        with self._lock:
            self._kernel(dtype).launch(blocks, (address, count, result.address), stream)
        words = np.zeros(2, np.uint64)
        call("cuMemcpyDtoHAsync", words.ctypes.data, result.address, RESULT_BYTES, stream)
        call("cuStreamSynchronize", stream)
        return read_extent(dtype, words)

    def _kernel(self, dtype: str) -> Kernel:
        if dtype not in self._kernels:
            self._kernels[dtype] = self._module.kernel(f"extent_{dtype}", 3, THREADS)
        return self._kernels[dtype]


@cache
def extent_probe(device: Device) -> ExtentProbe:
    """The probe of a device, assembled once."""
    return ExtentProbe(device)
