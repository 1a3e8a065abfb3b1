"""A nest of loops as plain data: its loops in order, what each was made of, what is marked and copied."""

from __future__ import annotations

from dataclasses import dataclass, field

from irkit.expressions.syntax import Place

TENSOR = "tensorise"
"""The mark of loops whose turns are one operation of the hardware."""


@dataclass(frozen=True)
class Axis:
    """A loop: at most `extent` turns, of which a part of a bound index may have one fewer (`least`)."""

    name: str
    extent: int
    reduced: bool
    least: int
    mark: str = ""

    @property
    def whole(self) -> bool:
        """Whether it always has the same number of turns."""
        return self.least == self.extent


@dataclass(frozen=True)
class Split:
    """Index `of` is `outer` times `by`, and `inner`."""

    of: Axis
    outer: str
    inner: str
    by: int

    @property
    def exact(self) -> bool:
        """Whether all parts are whole, and none begins earlier."""
        return self.of.whole and self.of.extent % self.by == 0


@dataclass(frozen=True)
class Fused:
    """Indices `outer` and `inner` are the quotient and the remainder of `made` by the extent of `inner`."""

    outer: Axis
    inner: Axis
    made: str


@dataclass
class Nest:
    """Loops in order, outermost first. `indices` are the statement's, `operands` what it reads by name;
    `parts`: into how many an index is cut over the vEUs; `caches`: operand, the loop in each of whose turns
    it is copied ("": once), and where the step stands; `buffers`: into how many copies of an operand go by
    turns, where a step says so; `marks`: where a loop is marked; `tensor`: the loops over
    rows, columns and terms that are one operation."""

    indices: tuple[Axis, ...]
    operands: tuple[str, ...] = ()
    order: list[Axis] = field(default_factory=list[Axis])
    origins: list[Split | Fused] = field(default_factory=list[Split | Fused])
    parts: dict[str, int] = field(default_factory=dict[str, int])
    caches: dict[str, tuple[str, Place]] = field(default_factory=dict[str, tuple[str, Place]])
    buffers: dict[str, int] = field(default_factory=dict[str, int])
    marks: dict[str, Place] = field(default_factory=dict[str, Place])
    tensor: tuple[str, str, str] | None = None

    @property
    def grid(self) -> list[int]:
        """Into how many parts each index of the result is cut."""
        return [self.parts.get(a.name, 1) for a in self.indices if not a.reduced]

    @property
    def shared_sums(self) -> list[str]:
        """Reduced indices whose parts vEUs share: the nest is then one of parts, and one that sums these."""
        return [a.name for a in self.indices if a.reduced and self.parts.get(a.name, 1) > 1]

    @property
    def first_reduced(self) -> int:
        """The place of the outermost reduced loop, the number of loops where there is none."""
        return next((n for n, a in enumerate(self.order) if a.reduced), len(self.order))

    @property
    def threads(self) -> list[Axis]:
        """The loops whose turns are threads of a block."""
        return [a for a in self.order if a.mark == "thread"]

    @property
    def vector(self) -> Axis | None:
        """The loop that is computed in vectors."""
        return next((a for a in self.order if a.mark == "vectorize"), None)

    def position(self, name: str) -> int:
        """The place of a loop."""
        return next(n for n, a in enumerate(self.order) if a.name == name)

    def sources(self, axis: str) -> set[str]:
        """The statement's indices that a loop moves."""
        found = {axis}
        for origin in reversed(self.origins):
            if isinstance(origin, Split) and found & {origin.outer, origin.inner}:
                found.add(origin.of.name)
            if isinstance(origin, Fused) and origin.made in found:
                found |= {origin.outer.name, origin.inner.name}
        return found & {a.name for a in self.indices}

    def made_of(self, name: str) -> list[str]:
        """The loops that there are of one."""
        if any(a.name == name for a in self.order):
            return [name]
        for origin in self.origins:
            if isinstance(origin, Split) and origin.of.name == name:
                return [*self.made_of(origin.outer), *self.made_of(origin.inner)]
            if isinstance(origin, Fused) and name in (origin.outer.name, origin.inner.name):
                return self.made_of(origin.made)
        return []
