"""Indices of loops: whole numbers that are affine in how often the loops around them have gone round."""

from __future__ import annotations

from dataclasses import dataclass


class LoopSymbol:
    """How many rounds a loop has made, in one trace of its body.

    `now` is the round that the trace stands for. A symbol that is `fixed` is that number from then on: its
    round stands alone, or the loop is over.
    """

    def __init__(self, now: int, last: int) -> None:
        self.now = now
        self.last = last
        """The last round of the loop."""
        self.fixed = False
        self.special: str | None = None
        """Why the round was traced as itself and stands for no other, if it was."""

    def fix(self, now: int) -> None:
        """It is round `now`, and no other."""
        self.now, self.fixed = now, True


@dataclass(frozen=True)
class Affine:
    """`constant` and, for each symbol, so many times its number."""

    constant: int
    terms: tuple[tuple[LoopSymbol, int], ...] = ()

    @staticmethod
    def of(constant: int, terms: dict[LoopSymbol, int]) -> Affine:
        """Without terms that are 0, in an order that does not hang on how it was made."""
        kept = [(s, c) for s, c in terms.items() if c]
        return Affine(constant, tuple(sorted(kept, key=lambda t: id(t[0]))))

    @property
    def settled(self) -> Affine:
        """The same with fixed symbols as the numbers that they are."""
        constant = self.constant + sum(c * s.now for s, c in self.terms if s.fixed)
        return Affine(constant, tuple((s, c) for s, c in self.terms if not s.fixed))

    @property
    def now(self) -> int:
        """Its number in the rounds that are being traced."""
        return self.constant + sum(c * s.now for s, c in self.terms)

    def plus(self, other: Affine, times: int = 1) -> Affine:
        """`self + times * other`"""
        terms = dict(self.terms)
        for symbol, c in other.terms:
            terms[symbol] = terms.get(symbol, 0) + times * c
        return Affine.of(self.constant + times * other.constant, terms)

    def times(self, factor: int) -> Affine:
        """`factor * self`"""
        return Affine(0).plus(self, factor)

    def extent(self) -> tuple[int, int]:
        """Its least and its largest number, over the rounds from those traced to the last ones."""
        low = high = self.constant
        for symbol, c in self.settled.terms:
            ends = sorted((c * symbol.now, c * symbol.last))
            low, high = low + ends[0], high + ends[1]
        fixed = sum(c * s.now for s, c in self.terms if s.fixed)
        return low + fixed, high + fixed

    def span(self) -> tuple[int, int]:
        """Its least and its largest number, over all rounds, also those before the one that is traced."""
        low = high = self.constant + sum(c * s.now for s, c in self.terms if s.fixed)
        for symbol, c in self.settled.terms:
            ends = sorted((0, c * symbol.last))
            low, high = low + ends[0], high + ends[1]
        return low, high
