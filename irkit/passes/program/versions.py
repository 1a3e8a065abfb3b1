"""What buffers hold at a point of a program, as values: each write adds a version of a part.

A read looks for the last write that it meets: what lies apart from it does not keep it waiting, and what lies
inside of it is read from what was written. A buffer as a whole is only put together where it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from irkit.passes.program.emitter import Emitter
from irkit.passes.program.places import Place, Relation, inner, relation, whole


@dataclass
class Version:
    """`part` was written at `place`, over what `before` has; `whole` is the buffer then, if it is made."""

    place: Place
    part: SSAValue
    before: Version | None = None
    whole: SSAValue | None = None


class Contents:
    """What one buffer holds."""

    def __init__(self, shape: tuple[int, ...], value: SSAValue) -> None:
        self.shape = shape
        self._top = self._of(value)

    def _of(self, value: SSAValue) -> Version:
        return Version(whole(self.shape), value, None, value)

    def read(self, emitter: Emitter, place: Place) -> SSAValue:
        """What is at a place."""
        version = self._top
        while True:
            if version.before is None:
                return emitter.extract(version.part, place)
            found = relation(place, version.place)
            if found is Relation.INSIDE:
                return emitter.extract(version.part, inner(place, version.place))
            if found is Relation.MEETS:
                return emitter.extract(self._whole(emitter, version), place)
            version = version.before

    def write(self, emitter: Emitter, part: SSAValue, place: Place) -> None:
        """Something else is at a place from here on."""
        if place.is_whole():
            self._top = self._of(emitter.reshape(part, self.shape))
            return
        before = self._top
        while before.before is not None and relation(before.place, place) is Relation.INSIDE:
            before = before.before
        self._top = Version(place, part, before)

    def value(self, emitter: Emitter) -> SSAValue:
        """All of it."""
        return self._whole(emitter, self._top)

    def settle(self, emitter: Emitter) -> SSAValue:
        """All of it, from which alone is read from here on."""
        value = self.value(emitter)
        self._top = self._of(value)
        return value

    def become(self, value: SSAValue) -> None:
        """It holds another value, of its own shape."""
        self._top = self._of(value)

    def _whole(self, emitter: Emitter, version: Version) -> SSAValue:
        pending: list[Version] = []
        while version.whole is None:
            pending.append(version)
            assert version.before is not None
            version = version.before
        value = version.whole
        for later in reversed(pending):
            later.whole = value = emitter.insert(later.part, value, later.place)
        return value
