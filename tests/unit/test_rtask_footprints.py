"""What rTasks touch: found once for all passes, and anew where a body changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import irkit
from benchmarks.products import Case
from benchmarks.rtask_times import Prepared
from irkit.dialects.access_boxes import operand_boxes
from irkit.dialects.task import ROperatorOp
from irkit.passes.task import rtask_footprints
from irkit.passes.task.rtask_footprints import RTaskFootprints
from irkit.schedule.model import Launch


def prepared(terms: int) -> tuple[Prepared, ROperatorOp]:
    text = Case("test", (16, terms), (terms, 32)).text("float32")
    made = Prepared.of("test", irkit.parse(text), "h200", False)
    (op,) = made.roperators()
    return made, op


def launched(of: Prepared, op: ROperatorOp) -> Launch:
    name = op.sym_name.data
    return RTaskFootprints(of.module, of.device).launch(name, name, [0, 1], [2])


def test_boxes_are_found_once_for_all_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ROperatorOp] = []

    def found(op: ROperatorOp, grid: Sequence[int] | None) -> object:
        asked.append(op)
        return operand_boxes(op, grid)

    monkeypatch.setattr(rtask_footprints, "operand_boxes", found)
    made, op = prepared(8)
    one, other = launched(made, op), launched(made, op)
    assert len(asked) == 1
    assert one.reads[0].boxes is other.reads[0].boxes
    with pytest.raises(ValueError, match="read-only"):
        one.reads[0].boxes[0] = 0


def test_another_body_has_its_own_boxes() -> None:
    made, op = prepared(8)
    assert launched(made, op).reads[0].boxes[0].tolist()[1] == [0, 8]
    _, longer = prepared(24)
    body = op.detach_region(op.body)
    op.add_region(longer.detach_region(longer.body))
    assert launched(made, op).reads[0].boxes[0].tolist()[1] == [0, 24]
    assert body.block.args
