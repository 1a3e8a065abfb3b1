"""What a CUDA C kernel writes is read in its signature, or refused by name."""

from __future__ import annotations

import pytest

from irkit.dags.inference.c_signature import parameters_of
from irkit.errors import UnsupportedError

SOURCE = r"""
// __global__ void axpy(float* x);
/* __global__ void axpy(const float* x, const float* y) */
#include <cuda_fp16.h>
#define BLOCK 256
#define IN const float*
#define LONG(a) \
    __global__ void axpy(float* a)
const char* text = "__global__ void axpy(int* \" a)"; char q = '"';
template <typename T, int N> struct pair { T v[N]; };
extern "C" {
__global__ void axpy(float a, const float* __restrict__ x, float* y, int n);
__global__
__launch_bounds__(BLOCK, 2) void axpy(
    float a, float const *x /* read */, float *__restrict__ y, // both
    const int n) { if (n > 0) { y[0] = x[0]; } }
}
template <typename T> __global__ void scale(T* const out, const T in[],
    std::array<int, 4> sizes, T extra[4]) {}
static __global__ void nothing(void) {}
__global__ void none() {}
__global__ void macro(IN x, float* y) {}
__global__ void nested(const float** x) {}
__global__ void reference(const float& x) {}
__global__ void callback(void (*f)(int), float* x) {}
__global__ void typedefed(fpointer x, const fpointer y) {}
__global__ void half_const(const volatile unsigned long long int * const __restrict__ p, ::ns::real* q) {}
#ifdef WIDE
__global__ void two(const float* x) {}
#else
__global__ void two(float* x) {}
#endif
"""


def accesses(kernel: str) -> list[str]:
    found = parameters_of(SOURCE, kernel)
    return [f"{p.name}:{('rw' if p.writes else 'r') if p.pointer else 'value'}" for p in found]


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("axpy", ["a:value", "x:r", "y:rw", "n:value"]),
        ("scale<float>", ["out:rw", "in:r", "sizes:value", "extra:rw"]),
        ("nothing", []),
        ("none", []),
        ("half_const", ["p:r", "q:rw"]),
        # No pointer is to be seen: an array that is given for one is refused where the kernel is launched.
        ("typedefed", ["x:value", "y:value"]),
    ],
)
def test_signatures(kernel: str, expected: list[str]) -> None:
    assert accesses(kernel) == expected


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ("macro", "RawKernel 'macro', parameter 'IN x': 'IN' is a macro"),
        (
            "nested",
            r"RawKernel 'nested', parameter 'const float \* \* x': only values and pointers",
        ),
        ("reference", "RawKernel 'reference'.*only values and pointers"),
        ("callback", "RawKernel 'callback'.*only values and pointers"),
        ("two", "RawKernel 'two': its source has different signatures"),
        ("pair", "RawKernel 'pair': its source has no '__global__' function"),
        ("missing", "RawKernel 'missing': its source has no"),
    ],
)
def test_what_cannot_be_read_is_refused(kernel: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        parameters_of(SOURCE, kernel)


def test_macros_of_options_are_known() -> None:
    source = "__global__ void k(REAL x, float* y) {}"
    with pytest.raises(UnsupportedError, match="'REAL' is a macro"):
        parameters_of(source, "k", ["REAL"])
    assert not parameters_of(source, "k")[0].pointer
