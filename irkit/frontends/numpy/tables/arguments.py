"""Frames of the caller in a trace, and what the function changes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from irkit.annotations.frames import ArrayNode, FrameNode, Node, ObjectNode, SeriesNode
from irkit.annotations.structures import mapped
from irkit.frontends.numpy.arrays import TracedArray
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.tables.frame import Column, TracedFrame
from irkit.frontends.numpy.tables.objects import HostObject
from irkit.frontends.numpy.tables.results import Known
from irkit.frontends.numpy.tables.series import TracedSeries, is_series

TABLES = (SeriesNode, FrameNode)


def tables_in(structure: Any, arrays: Sequence[TracedArray]) -> dict[int, Any]:
    """What stands for the frames of the caller, by their numbers: one that is given twice is one."""
    found: dict[int, Any] = {}

    def note(value: Any) -> None:
        if isinstance(value, TABLES) and value.argument not in found:
            found[value.argument] = table_of(value, arrays)

    mapped(structure, note)
    return found


def table_of(node: SeriesNode | FrameNode, arrays: Sequence[TracedArray]) -> Any:
    """What stands for a frame or series of the caller, whose columns are among `arrays`."""
    if isinstance(node, FrameNode):
        columns = [
            _column(c, d, arrays, node) for c, d in zip(node.columns, node.dtypes, strict=True)
        ]
        made = TracedFrame(columns, node.names, node.rows)
        made.is_argument()
        return made
    if isinstance(node.values, ArrayNode):
        series = TracedSeries(arrays[node.values.at], node.rows, node.name)
        series.is_argument()
        return series
    assert isinstance(node.values, ObjectNode)
    known = Known(node.rows, node.dtype, "Series", node.name)
    return HostObject(arrays[node.values.at], (), known)


def _column(node: Node, dtype: Any, arrays: Sequence[TracedArray], frame: FrameNode) -> Column:
    if isinstance(node, ArrayNode):
        return arrays[node.at]
    assert isinstance(node, ObjectNode)
    return HostObject(arrays[node.at], (), Known(frame.rows, dtype, "Series", None))


def changes_of(table: Any) -> Iterator[tuple[Any, Any]]:
    """Columns of a frame of the caller that were assigned to, each with what is in it; None: it is gone. Of
    a series its elements, without a label.

    Raises UnsupportedError for changes that have no form.
    """
    if is_series(table):
        if table.changed:
            yield None, table
    elif type(table) is TracedFrame:
        columns, names = table.original
        left = list(table.columns)
        if [n for n in names if n in left] != left[: sum(n in left for n in names)]:
            raise refused(
                "columns of a frame that is an argument get other names: work on frame.copy()"
            )
        for label in names:
            if label not in left:
                yield label, None
        for number, label in enumerate(left):
            before = columns[list(names).index(label)] if label in names else None
            if table.parts[number] is not before:
                yield label, table.column(number)
    elif table.changed:
        raise refused("what pandas has of an argument is assigned to: work on a copy of it")
