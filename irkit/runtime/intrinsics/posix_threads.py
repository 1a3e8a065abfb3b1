"""What threads of compiled code ask of the C library: sleep until they are woken, and on which CPU they run.

Found by name, so that callers can be cached. A sleeper is a mutex and a condition. To sleep and to wake takes
no interpreter: a thread that had to have its lock first would wait until another lets it go.

A thread that is woken may be put on the CPU of the thread that wakes it, where it waits until the kernel's
balancer looks, milliseconds later, though another CPU has nothing to do. So who wakes it names a CPU, and the
thread, once it runs there, takes that back: it is not bound, and the kernel may move it for other load.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu import add, exchange, int64p, load_acquire

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _in_c_library(*names: str) -> bool:
    """Whether the C library has all these functions: older ones have no `gettid`, other systems none."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):
        return False
    return all(hasattr(library, name) for name in names)


_HAS_PLACES = _in_c_library("gettid", "sched_getcpu", "sched_getaffinity", "sched_setaffinity")

CPU_WORDS: Final = 16
"""Words of a set of CPUs, of which there are at most 1024; on machines of more, no thread is placed."""
_CPUS: Final = 64 * CPU_WORDS

# Words of a sleeper. A mutex and a condition have 64 bytes at most.
_MUTEX, _CONDITION, _ASLEEP, _THREAD, _CPU, _PLACED, _TAKEN, _ALLOWED = 0, 8, 16, 24, 25, 26, 27, 32
_ONE: Final = _ALLOWED + CPU_WORDS
SLEEPER_WORDS: Final = _ONE + CPU_WORDS
"""Words of a sleeper: a mutex, a condition, whether it sleeps; the thread's number, the CPU where it fell
asleep, whether it was named one when it was woken, the address of the set of CPUs that are taken; two sets of
CPUs, all that it may run on and the one that was named."""


def _c_function(name: str, arguments: int) -> tuple[Any, Callable[..., Any]]:
    """The typing of a C function that takes addresses and numbers of 64 bits, and gives an int."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(_I32, [_I64] * arguments)
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.sext(builder.call(function, values), _I64)

    return types.int64(*[types.int64] * arguments), codegen


@intrinsic
def _mutex_init(typingctx: Any, mutex: Any, attributes: Any) -> Any:
    return _c_function("pthread_mutex_init", 2)


@intrinsic
def _cond_init(typingctx: Any, condition: Any, attributes: Any) -> Any:
    return _c_function("pthread_cond_init", 2)


@intrinsic
def _mutex_lock(typingctx: Any, mutex: Any) -> Any:
    return _c_function("pthread_mutex_lock", 1)


@intrinsic
def _mutex_unlock(typingctx: Any, mutex: Any) -> Any:
    return _c_function("pthread_mutex_unlock", 1)


@intrinsic
def _cond_wait(typingctx: Any, condition: Any, mutex: Any) -> Any:
    return _c_function("pthread_cond_wait", 2)


@intrinsic
def _cond_signal(typingctx: Any, condition: Any) -> Any:
    return _c_function("pthread_cond_signal", 1)


def _of_places(name: str, arguments: int) -> tuple[Any, Callable[..., Any]]:
    """The typing of a C function about where threads run; it gives -1 where they cannot be placed."""
    signature, codegen = _c_function(name, arguments)
    if _HAS_PLACES:
        return signature, codegen
    return signature, lambda context, builder, signature, values: ir.Constant(_I64, -1)


@intrinsic
def _getaffinity(typingctx: Any, thread: Any, size: Any, mask: Any) -> Any:
    return _of_places("sched_getaffinity", 3)


@intrinsic
def _setaffinity(typingctx: Any, thread: Any, size: Any, mask: Any) -> Any:
    return _of_places("sched_setaffinity", 3)


@intrinsic
def current_cpu(typingctx: Any) -> Any:
    """The CPU that the calling thread runs on, or -1."""
    return _of_places("sched_getcpu", 0)


@intrinsic
def current_thread(typingctx: Any) -> Any:
    """The number by which the kernel knows the calling thread, or -1."""
    return _of_places("gettid", 0)


@njit(nogil=True)
def make_sleeper(sleeper: int, taken: int) -> None:
    """Make one of zeros, whose thread shall keep clear of the set of CPUs at `taken`."""
    words = int64p(sleeper)
    words[_THREAD], words[_TAKEN] = -1, taken
    _mutex_init(sleeper + 8 * _MUTEX, 0)
    _cond_init(sleeper + 8 * _CONDITION, 0)


@njit(nogil=True)
def begin_places(taken: int) -> None:
    """Let the set of CPUs at `taken` be the one of the calling thread."""
    words = int64p(taken)
    for word in range(CPU_WORDS):
        words[word] = 0
    cpu = current_cpu()
    if 0 <= cpu < _CPUS:
        words[cpu // 64] = np.int64(1) << np.int64(cpu % 64)


@njit(nogil=True)
def will_sleep(sleeper: int) -> None:
    """Say that the calling thread is about to sleep: who wants it after that must wake it."""
    words = int64p(sleeper)
    words[_THREAD], words[_CPU] = current_thread(), current_cpu()
    exchange(sleeper + 8 * _ASLEEP, 1)


@njit(nogil=True)
def sleep(sleeper: int) -> None:
    """Sleep until woken, which somebody may have done since `will_sleep`."""
    mutex = sleeper + 8 * _MUTEX
    _mutex_lock(mutex)
    while load_acquire(sleeper + 8 * _ASLEEP) == 1:
        _cond_wait(sleeper + 8 * _CONDITION, mutex)
    words = int64p(sleeper)
    if words[_PLACED] == 1:
        words[_PLACED] = 0
        _setaffinity(0, 8 * CPU_WORDS, sleeper + 8 * _ALLOWED)
    _mutex_unlock(mutex)


@njit(nogil=True)
def wake(sleeper: int) -> bool:
    """Wake the thread that sleeps, or is about to; whether there was one."""
    # Written so that it is ordered with what was written before, as a read alone would not be.
    if add(sleeper + 8 * _ASLEEP, 0) == 0:
        return False
    mutex, words = sleeper + 8 * _MUTEX, int64p(sleeper)
    _mutex_lock(mutex)
    slept = exchange(sleeper + 8 * _ASLEEP, 0) == 1
    if slept:
        words[_PLACED] = place(sleeper)
        _cond_signal(sleeper + 8 * _CONDITION)
    _mutex_unlock(mutex)
    return slept


@njit(nogil=True)
def place(sleeper: int) -> int:
    """Name a CPU to a thread that sleeps, one that is not taken, and take it; whether there was one."""
    words, mask = int64p(sleeper), 8 * CPU_WORDS
    thread, one = words[_THREAD], int64p(sleeper + 8 * _ONE)
    if thread < 0 or _getaffinity(thread, mask, sleeper + 8 * _ALLOWED) < 0:
        return 0
    taken = int64p(words[_TAKEN])
    cpu = free_cpu(words[_CPU], int64p(sleeper + 8 * _ALLOWED), taken)
    if cpu < 0:
        return 0
    for word in range(CPU_WORDS):
        one[word] = 0
    one[cpu // 64] = np.int64(1) << np.int64(cpu % 64)
    taken[cpu // 64] |= one[cpu // 64]
    # A CPU may have gone since: then the thread stays where it is.
    return np.int64(_setaffinity(thread, mask, sleeper + 8 * _ONE) == 0)


@njit(nogil=True)
def free_cpu(wanted: int, allowed: Any, taken: Any) -> Any:
    """`wanted`, or else the first CPU, if it is allowed and not taken; -1 if there is none."""
    first = np.int64(-1)
    for cpu in range(_CPUS):
        bit = np.int64(1) << np.int64(cpu % 64)
        if allowed[cpu // 64] & ~taken[cpu // 64] & bit == 0:
            continue
        if cpu == wanted:
            return np.int64(cpu)
        if first < 0:
            first = np.int64(cpu)
    return first
