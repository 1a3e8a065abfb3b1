"""Kernels that write where it is hard to see, and what they do to each argument: "r", "w", "rw"
or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, float32, float64, from_dtype, int32, int64, types

A1 = types.Array(float32, 1, "C")
A2 = types.Array(float32, 2, "A")
I1 = types.Array(int32, 1, "C")
PAIR = types.Tuple((A1, A1))
UNI = types.UniTuple(A1, 3)
R1 = types.Array(from_dtype(np.dtype([("a", np.float32), ("b", np.int32)])), 1, "C")
N = int64


@cuda.jit(device=True)
def put(a, i, v):
    a[i] = v


@cuda.jit(device=True)
def put_deep(a, i, v):
    b = a[1:]
    put(b, i, v)


@cuda.jit(device=True)
def pick(a, b, first):
    if first:
        return a
    return b


@cuda.jit(device=True)
def get(a, i):
    return a[i]


@cuda.jit(device=True)
def swap(a, b):
    return b, a


@cuda.jit(device=True)
def fill_down(a, n):
    if n > 0:
        a[n] = 0
        fill_down(a, n - 1)


@cuda.jit(device=True)
def with_default(v, a, b):
    a[0] = b[0] * v


@cuda.jit
def plain(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i]


@cuda.jit
def only_shape(x, y):
    i = cuda.grid(1)
    if i < x.size and x.shape[0] > 3 and len(x) > 2:
        y[i] = x.strides[0]


@cuda.jit
def transposed(x, y):
    i = cuda.grid(1)
    x.T[0, i] = y[i]


@cuda.jit
def through_view(x, y):
    v = x[1:]
    w = v[2:]
    w[cuda.grid(1)] = y[0]


@cuda.jit
def one_of_two(x, y, z, n):
    a = x if n > 3 else y
    a[cuda.grid(1)] = z[0]


@cuda.jit
def changing_alias(x, y, n):
    a = x
    for k in range(n):
        a[k] = a[k] + 1
        a = y


@cuda.jit
def atomic(x, y, z):
    i = cuda.grid(1)
    cuda.atomic.add(y, 0, x[i])
    cuda.atomic.max(z, i, x[i])


@cuda.jit
def compare_and_swap(x, y):
    cuda.atomic.compare_and_swap(x, 0, y[0])


@cuda.jit
def exchange_tuple_index(x, y):
    cuda.atomic.exch(x, (0, 1), y[0])


@cuda.jit
def in_tuple(pair, y):
    pair[1][cuda.grid(1)] = y[0]


@cuda.jit
def tuple_dynamic(three, y, n):
    three[n][0] = y[0]


@cuda.jit
def tuple_made(x, y, z):
    t = (x, (y, z))
    t[1][0][0] = t[0][0]


@cuda.jit
def unpacked(x, y):
    a, b = (x, y)
    b[0] = a[0]


@cuda.jit
def unpacked_from_function(x, y):
    a, b = swap(x, y)
    a[0] = b[0]


@cuda.jit
def shared_only(x, y):
    s = cuda.shared.array(32, float32)
    t = cuda.local.array(4, float32)
    i = cuda.threadIdx.x
    s[i] = x[i]
    t[0] = s[i]
    cuda.syncthreads()
    y[i] = s[31 - i] + t[0]


@cuda.jit
def function_writes(x, y):
    put(y, 0, x[0])


@cuda.jit
def function_writes_view(x, y):
    put_deep(y, 0, get(x, 1))


@cuda.jit
def function_returns(x, y, z, n):
    a = pick(x, y, n > 2)
    a[0] = z[0]


@cuda.jit
def function_returns_reader(x, y, z, n):
    z[0] = pick(x, y, n > 2)[0]


@cuda.jit
def named_arguments(x, y):
    with_default(2, b=x, a=y)


@cuda.jit
def recursive(x, y, n):
    y[0] = 1
    fill_down(x, n)


@cuda.jit
def iterated(x, y):
    total = float32(0)
    for v in x:
        total += v
    y[0] = total


@cuda.jit
def augmented(x, y):
    x[0] += y[0]


@cuda.jit
def slice_assigned(x, y):
    x[2:5] = y[0]


@cuda.jit
def reshaped(x, y):
    x.reshape(2, 2)[0, 1] = y[0]
    x.view(int32)[0] = 2


@cuda.jit
def record_field(r, y):
    r[0].a = y[0]


@cuda.jit
def record_item(r, y):
    r[0]["b"] = 3
    y[0] = 1


@cuda.jit
def record_read(r, y):
    y[0] = r[1].a


@cuda.jit
def record_column(r, y):
    r["a"][2] = y[0]


@cuda.jit
def swapped_in_loop(x, y, n):
    a, b = x, y
    for _ in range(n):
        b[0] = a[1]
        a, b = b, a


@cuda.jit
def never_run(x, y):
    if False:
        x[0] = 1
    y[0] = 1


@cuda.jit
def indexed_by(x, y, z):
    i = cuda.grid(1)
    y[x[i]] = z[i]


@cuda.jit
def zipped(x, y):
    for k, v in enumerate(x):
        y[k] = v


@cuda.jit
def nothing(x):
    pass


@cuda.jit
def strided_2d(x, y):
    i, j = cuda.grid(2)
    row = x[i]
    row[j] = y[j]


@cuda.jit
def closure(x, y):
    def store(v):
        x[0] = v

    store(y[0])


@cuda.jit
def while_alias(x, y, n):
    a = x
    while n > 0:
        b = a
        if n == 3:
            a = y
        b[0] = n
        n -= 1


@cuda.jit
def flat(x, y):
    x.flat[2] = y[0]


@cuda.jit
def print_only(x, y):
    print(x[0])
    y[0] = 1


CASES: list[tuple[Any, tuple[Any, ...], tuple[str, ...]]] = [
    (plain, (A1, A1, N), ("r", "w", "")),
    (only_shape, (A1, A1), ("", "w")),
    (transposed, (A2, A1), ("w", "r")),
    (through_view, (A1, A1), ("w", "r")),
    (one_of_two, (A1, A1, A1, N), ("w", "w", "r", "")),
    (changing_alias, (A1, A1, N), ("rw", "rw", "")),
    (atomic, (A1, A1, A1), ("r", "rw", "rw")),
    (compare_and_swap, (I1, I1), ("rw", "r")),
    (exchange_tuple_index, (types.Array(int32, 2, "C"), I1), ("rw", "r")),
    (in_tuple, (PAIR, A1), ("/w", "r")),
    (tuple_dynamic, (UNI, A1, N), ("w/w/w", "r", "")),
    (tuple_made, (A1, A1, A1), ("r", "w", "")),
    (unpacked, (A1, A1), ("r", "w")),
    (unpacked_from_function, (A1, A1), ("r", "w")),
    (shared_only, (A1, A1), ("r", "w")),
    (function_writes, (A1, A1), ("r", "w")),
    (function_writes_view, (A1, A1), ("r", "w")),
    (function_returns, (A1, A1, A1, N), ("w", "w", "r", "")),
    (function_returns_reader, (A1, A1, A1, N), ("r", "r", "w", "")),
    (named_arguments, (A1, A1), ("r", "w")),
    (iterated, (A1, A1), ("r", "w")),
    (augmented, (A1, A1), ("rw", "r")),
    (slice_assigned, (A1, A1), ("w", "r")),
    (reshaped, (A1, A1), ("w", "r")),
    (record_field, (R1, A1), ("rw", "r")),
    (record_item, (R1, A1), ("rw", "w")),
    (record_read, (R1, A1), ("r", "w")),
    (record_column, (R1, A1), ("w", "r")),
    (swapped_in_loop, (A1, A1, N), ("rw", "rw", "")),
    (never_run, (A1, A1), ("", "w")),
    (indexed_by, (I1, A1, A1), ("r", "w", "r")),
    (zipped, (A1, A1), ("r", "w")),
    (nothing, (A1,), ("",)),
    (strided_2d, (A2, A1), ("w", "r")),
    (closure, (A1, A1), ("w", "r")),
    (while_alias, (A1, A1, N), ("w", "w", "")),
    (flat, (A1, A1), ("w", "r")),
    (print_only, (A1, types.Array(float64, 1, "C")), ("r", "w")),
]
"""Kernel, types of its arguments, and what it does to each; of a tuple, to each item."""

RECURSIVE = recursive, (A1, A1, N)
