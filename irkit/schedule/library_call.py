"""What a library is asked to compute in place of an rOperator's own kernel, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

NONE = -1
"""The number of an operand that there is not."""


@dataclass(frozen=True)
class LibraryCall:
    """D[m, n] = sum_k A[m, k] * B[k, n] + bias[n] + addend[m, n], all in memory, row-major and whole.

    `transposed`: B lies as [n, k]. `element` is what A and B are made of, `result` what D is, "float32",
    "bfloat16" or "float16"; bias and addend are of float32. `precision` is what factors may be rounded to
    first ("float32", "ieee": not at all, "bf16", "f16"). `a`, `b`, `bias`, `addend` and `d` are numbers of
    operands of the rOperator, reads before writes.
    """

    library: str
    m: int
    n: int
    k: int
    transposed: bool
    element: str
    result: str
    precision: str
    a: int
    b: int
    d: int
    bias: int = NONE
    addend: int = NONE

    def operands(self) -> tuple[int, ...]:
        """The operands that are touched, in the order a, b, d, bias, addend."""
        return tuple(n for n in (self.a, self.b, self.d, self.bias, self.addend) if n != NONE)

    def nbytes(self, operand: int) -> int:
        """Bytes of one of its operands."""
        size = {"float32": 4}.get(self.element, 2)
        return {
            self.a: self.m * self.k * size,
            self.b: self.k * self.n * size,
            self.bias: self.n * 4,
            self.addend: self.m * self.n * 4,
            self.d: self.m * self.n * {"float32": 4}.get(self.result, 2),
        }[operand]
