"""Whether two values of a trace are surely equal: read from one place to which nothing was written between,
or computed alike of such. So masks that are written out twice are one (`x[x > 0] -= y[x > 0]`)."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.frontends.numpy.records import (
    Compute,
    Constant,
    Counter,
    Read,
    Record,
    Value,
    Write,
)
from irkit.weights import Array


class Values:
    """The values of some records, which happen in order."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self._made: dict[Value, int] = {}
        """In which record each value is made."""
        self._known: dict[tuple[Value, Value], bool] = {}
        for number, record in enumerate(records):
            match record:
                case Read() | Constant() | Counter():
                    self._made[record.value] = number
                case Compute():
                    self._made.update(dict.fromkeys(record.values, number))
                case _:
                    pass

    def alike(self, a: Value, b: Value) -> bool:
        """Whether they are surely equal, to the bit."""
        a, b = self._written(a), self._written(b)
        if a is b:
            return True
        if (a, b) not in self._known:
            self._known[a, b] = self._made_alike(a, b)
        return self._known[a, b]

    def _made_alike(self, a: Value, b: Value) -> bool:
        if a not in self._made or b not in self._made:
            return False
        first, second = self._made[a], self._made[b]
        match self._records[first], self._records[second]:
            case Read() as x, Read() as y:
                low, high = sorted((first, second))
                return x.view == y.view and self._last_change(x, high) < low
            case Constant() as x, Constant() as y:
                return same_bytes(x.array, y.array)
            case Counter() as x, Counter() as y:
                return x.index == y.index
            case Compute() as x, Compute() as y:
                op = x.op is y.op and x.props == y.props and len(x.operands) == len(y.operands)
                place = x.values.index(a) == y.values.index(b)
                pairs = zip(x.operands, y.operands, strict=False)
                return op and place and all(self.alike(p, q) for p, q in pairs)
            case _:
                return False

    def _written(self, value: Value) -> Value:
        """What was written to where a value was read, if it is all that is there."""
        number = self._made.get(value, -1)
        read = self._records[number] if number >= 0 else None
        while isinstance(read, Read):
            last = self._last_change(read, number)
            write = self._records[last] if last >= 0 else None
            if not isinstance(write, Write) or write.view != read.view:
                break
            value, number = write.value, self._made.get(write.value, -1)
            read = self._records[number] if number >= 0 else None
        return value

    def _last_change(self, read: Read, before: int) -> int:
        """The last record before another that may have written where one reads; -1 if none has."""
        for number in range(before - 1, -1, -1):
            record = self._records[number]
            harmless = isinstance(record, Read | Compute | Constant | Counter)
            other = isinstance(record, Write) and record.view.buffer is not read.view.buffer
            if not harmless and not other:
                return number
        return -1


def same_bytes(a: Array, b: Array) -> bool:
    """Whether two arrays are the same to the bit."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
