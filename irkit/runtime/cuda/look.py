"""Whether all values of an array on the device are such as a model takes (`irkit.runtime.value_checks`).

The kernel is PTX text, as that of `irkit.runtime.cuda.extent`, which is asked what is wrong where something
is. It looks at bits alone: without their sign, floats are ordered as their bits are as unsigned integers,
infinity behind all numbers and NaN behind infinity, so what is refused is one range of integers. The last
block to end writes the answer where the host sees it, who need not wait for what is queued behind. The array
is read from its end: what is queued behind reads it from its beginning, which the cache still has.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

from irkit.errors import DeviceError
from irkit.runtime.cuda import driver
from irkit.runtime.cuda.driver import Device, Kernel, Module, call
from irkit.runtime.cuda.float_bits import THREADS, bits_of, blocks_for, module_of, vectors_of
from irkit.runtime.cuda.memory import HostWord, Pool
from irkit.runtime.value_checks import ValueCheck

STATE_BYTES = 16
"""Whether something was refused, and how many blocks have ended; zeros before and after."""
TAKEN, REFUSED = 1, 2
_PATIENCE = 4000
"""How often the answer is looked for before other threads are let run."""

_ENTRY = """
.visible .entry look_{name}(
    .param .u64 first, .param .u64 count, .param .u64 low,
    .param .u64 wide, .param .u64 state, .param .u64 answer)
{{
    .reg .pred %more, %beyond;
    .reg .b32 %block, %threads, %thread, %blocks;
    .reg .{bits} {words};
    .reg .{bits} %size, %least, %span;
    .reg .b64 %array, %n, %vectors, %out, %told, %i, %next, %stride, %at, %bad, %limit, %ended;

    ld.param.u64 %array, [first];
    cvta.to.global.u64 %array, %array;
    ld.param.u64 %n, [count];
    ld.param.u64 %limit, [low];
    {narrow} %least, %limit;
    ld.param.u64 %limit, [wide];
    {narrow} %span, %limit;
    ld.param.u64 %out, [state];
    cvta.to.global.u64 %out, %out;
    ld.param.u64 %told, [answer];
    cvta.to.global.u64 %told, %told;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %blocks, %nctaid.x;
    cvt.u64.u32 %i, %thread;
    mad.wide.u32 %i, %block, %threads, %i;
    mov.u64 %next, %i;
    mul.wide.u32 %stride, %blocks, %threads;
    shr.u64 %vectors, %n, {lanes};
    mov.u64 %bad, 0;
{zeros}
$many:
    setp.ge.u64 %more, %i, %vectors;
    @%more bra $rest;
{loads}
{looks}
    bra $many;
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
    setp.ne.u64 %beyond, %bad, 0;
    @%beyond red.relaxed.gpu.global.max.u64 [%out], %bad;
    bar.sync 0;
    setp.ne.u32 %more, %thread, 0;
    @%more ret;
    fence.acq_rel.gpu;
    atom.relaxed.gpu.global.add.u64 %ended, [%out+8], 1;
    add.u64 %ended, %ended, 1;
    cvt.u64.u32 %limit, %blocks;
    setp.ne.u64 %more, %ended, %limit;
    @%more ret;
    fence.acq_rel.gpu;
    ld.relaxed.gpu.global.b64 %bad, [%out];
    mov.u64 %limit, 0;
    st.global.b64 [%out], %limit;
    st.global.b64 [%out+8], %limit;
    add.u64 %bad, %bad, 1;
    st.relaxed.sys.global.b64 [%told], %bad;
    ret;
}}
"""
# Behind the array's beginning a thread has what it had before, at which it looks again.
_LOAD = """\
    setp.gt.u64 %more, %vectors, %i;
    sub.u64 %at, %vectors, %i;
    shl.b64 %at, %at, 4;
    add.u64 %at, %array, %at;
    @%more ld.global.v{width}.{bits} {{{words}}}, [%at+-16];
    add.u64 %i, %i, %stride;"""
_LOOK = """\
    and.{bits} %size, {word}, {magnitude};
    sub.{unsigned} %size, %size, %least;
    setp.gt.{unsigned} %beyond, %span, %size;
    @%beyond mov.u64 %bad, 1;"""


def look_ptx() -> str:
    """The module with an entry for each dtype. Arrays begin at multiples of 16; whoever launches an entry has
    as many threads as a vector has elements."""
    return module_of(_entry)


def _entry(name: str, **facts: Any) -> str:
    vectors = vectors_of(facts["shift"])
    words = [word for vector in vectors for word in vector]
    looks = [_LOOK.format(word=word, **facts) for word in words]
    loads = [
        _LOAD.format(width=len(vector), words=", ".join(vector), **facts) for vector in vectors
    ]
    return _ENTRY.format(
        name=name,
        words=", ".join(words),
        lanes=4 - facts["shift"],
        zeros="\n".join(f"    mov.{facts['bits']} {word}, 0;" for word in words),
        loads="\n".join(loads),
        looks="\n".join(looks),
        look_at_one=looks[0],
        **facts,
    )


def refused_range(check: ValueCheck) -> tuple[int, int]:
    """Of the bits of floats without their sign, the first that a check refuses and how many there are."""
    name = check.dtype.name
    first = bits_of(check.most, name) + 1 if check.most >= 0 else 0
    infinity, all_of = bits_of(float("inf"), name), 1 << 8 * check.dtype.itemsize - 1
    return first, max(0, (infinity + 1 if check.nan else all_of) - first)


@cache
def look_module(device: Device) -> Module:
    """The kernels on a device, assembled once."""
    return Module(look_ptx().encode() + b"\0", device)


class Look:
    """Looks at one input of a program, one call after another; not thread-safe.

    What was started is to be finished before what it looks at changes.
    """

    def __init__(self, pool: Pool, check: ValueCheck, stream: Any) -> None:
        self._device = pool.device
        self._module = look_module(self._device)
        self._kernel: Kernel = self._module.kernel(f"look_{check.dtype.name}", 6, THREADS)
        self._refused = refused_range(check)
        self._state = pool.take(STATE_BYTES)
        self._state.clear(stream)
        self._answer = HostWord(self._device)
        self._waiting = False

    def start(self, address: int, count: int, stream: Any) -> None:
        """Queue a look at `count` elements at an address, as they are when `stream` comes to it."""
        if self._waiting:
            # Whoever started it was interrupted.
            self.taken(stream)
        if count == 0:
            self._answer.value = TAKEN
            return
        self._answer.value, self._waiting = 0, True
        blocks = blocks_for(count, self._device.multiprocessors)
        state, answer = self._state.address, self._answer.address
        try:
            self._kernel.launch(blocks, (address, count, *self._refused, state, answer), stream)
        except DeviceError:
            self._waiting = False
            raise

    def taken(self, stream: Any) -> bool:
        """Whether all that was looked at last is taken; waits for that, and for nothing behind it."""
        answer = self._answer
        for _ in range(_PATIENCE):
            if answer.value:
                break
        while not answer.value:
            if not _under_way(stream) and not answer.value:
                raise DeviceError("a look at an input's values ended without an answer")
            time.sleep(0)
        self._waiting = False
        return answer.value == TAKEN


def _under_way(stream: Any) -> bool:
    """Whether something queued on a stream has not run yet. Raises DeviceError for what failed there."""
    api = driver.api()
    status, *_ = api.cuStreamQuery(stream)
    if status == api.CUresult.CUDA_ERROR_NOT_READY:
        return True
    if int(status) != 0:
        call("cuStreamSynchronize", stream)
    return False
