"""Segments: ops that a user named together, of which only what leaves them need be kept for a backward pass.

A name stands in the ops' locations, `loc("segment block 0"("model.py":8:1))`: it says nothing of what is
computed, and is handed on from op to op as lines are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FusedLoc, LocationAttr, ModuleOp, NameLoc, StringAttr
from xdsl.ir import Attribute

_MARK = "segment "


def marked(location: LocationAttr, segment: str | None) -> LocationAttr:
    """A location in a segment; as it is where there is none."""
    return location if segment is None else NameLoc(StringAttr(_MARK + segment), location)


def segment_of(location: Attribute) -> str | None:
    """The segment that a location is in."""
    match location:
        case NameLoc():
            if location.desc.data.startswith(_MARK):
                return location.desc.data.removeprefix(_MARK)
            return segment_of(location.location)
        case FusedLoc():
            parts = cast(ArrayAttr[Attribute], location.locations)
            return next(filter(None, map(segment_of, parts)), None)
        case _:
            return None


def unmarked(location: Attribute) -> Attribute:
    """A location without the segment that it is in."""
    if isinstance(location, NameLoc) and location.desc.data.startswith(_MARK):
        return location.location
    return location


def segments_of(module: ModuleOp) -> Iterator[tuple[int, str]]:
    """The places of a module's ops that are in segments, and which these are."""
    for place, op in enumerate(module.walk()):
        if (segment := segment_of(op.location)) is not None:
            yield place, segment
