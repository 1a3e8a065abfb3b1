"""Whole numbers that ops of schedules carry: bytes, places, counts."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException


def check_figures(op: IRDLOperation, least: Mapping[str, int]) -> None:
    """Properties that are there must not be below their `least`. Raises VerifyException."""
    for name, low in least.items():
        given = op.properties.get(name)
        if isinstance(given, IntegerAttr) and given.value.data < low:
            raise VerifyException(
                f"'{op.name}' expects {name} of {low} or more, got {given.value.data}"
            )
