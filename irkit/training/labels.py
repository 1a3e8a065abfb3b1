"""Labels are held to what they number."""

from __future__ import annotations

from typing import Any

import numpy as np

from irkit.frontends.numpy.arrays import is_traced, value_of
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import user_place
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Check


def check_labels(labels: Any, classes: int) -> None:
    """Raises IndexError, in a traced function when it runs, for labels that are not from 0 to below
    `classes`."""
    inside: Any = np.logical_and(labels >= 0, labels < classes).all()
    if is_traced(labels):
        message = f"a label is out of bounds for {classes} classes"
        recorder().require(Check(user_place(), message), value_of(array_of(inside)))
    elif not inside:
        raise IndexError(f"a label is out of bounds for {classes} classes")
