"""A root's nest as a target runs it."""

from __future__ import annotations

from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.roperator_root import Root
from irkit.rkernels.rkernel import Target
from irkit.rkernels.scheduled.block_layout import BlockLayout
from irkit.rkernels.scheduled.layout import Layout


def layout_of(target: Target, root: Root, schedule: ScheduleAttr) -> Layout:
    """Raises UnsupportedError for a schedule that the root cannot be run by on this target."""
    if target == "cuda":
        return BlockLayout.of(root, schedule)
    return Layout.of(root, schedule)
