"""Objects of a library in traced functions, and what they are: no library is imported for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder, tracing

CAPTURED = (np.ndarray, np.generic, int, float, str)
"""Attributes that are read when the function is traced: they must be what they were."""


class ForeignObject:
    """An object of a library, whose methods are `stand_in`s."""

    def __init__(self, value: Any, stand_in: Callable[[Any], Any]) -> None:
        super().__setattr__("__wrapped__", value)
        super().__setattr__("_stand_in", stand_in)

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """`isinstance` says what it says of the object."""
        return self.__wrapped__.__class__

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__wrapped__, name)
        capture = recorder().capture if tracing() else None
        if capture is not None and isinstance(found, CAPTURED):
            kind = type(self.__wrapped__).__name__
            return capture(f"{kind}.{name}", found, partial(getattr, self.__wrapped__, name))
        return self._stand_in(found)

    def __setattr__(self, name: str, value: Any) -> None:
        raise refused(
            f"an attribute, '{name}', of a {type(self.__wrapped__).__name__} that is no array is assigned to"
        )


def plain(value: Any) -> Any:
    """An object itself, where something stands for it."""
    return value.__wrapped__ if type(value) is ForeignObject else value


def is_estimator(value: object) -> bool:
    """Whether it is an estimator, as scikit-learn has them."""
    if isinstance(value, type):
        return False
    kind: Any = type(value)
    return hasattr(kind, "get_params") and hasattr(kind, "fit")


def is_booster(value: object) -> bool:
    """Whether it is what LightGBM and XGBoost have their trees in."""
    kind: Any = type(value)
    return kind.__name__ == "Booster" and kind.__module__.partition(".")[0] in (
        "lightgbm",
        "xgboost",
    )
