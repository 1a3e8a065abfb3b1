"""What `np.ndarray` is for a traced function: the class of its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from irkit.frontends.numpy.places import refused


class _ArrayClass(type(np.ndarray)):
    """Equal to `np.ndarray`, which a tuple of classes from outside may hold."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, np.ndarray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, np.ndarray)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is np.ndarray

    def __hash__(cls) -> int:
        return hash(np.ndarray)

    def __call__(
        cls, shape: Any, dtype: Any = float, buffer: Any = None, *rest: Any, order: Any = "C"
    ) -> Any:
        """An array of no contents. Raises UnsupportedError for one in memory that is given."""
        from irkit.frontends.numpy.creation import MAKERS

        if buffer is not None or rest:
            raise refused("np.ndarray in memory that is given: a view of an array")
        return MAKERS["empty"](shape, dtype, order or "C")


class TracedArrayClass(np.ndarray, metaclass=_ArrayClass):
    """`np.ndarray`: makes arrays of the trace, and says what is one."""


TracedArrayClass.__name__ = TracedArrayClass.__qualname__ = "ndarray"
TracedArrayClass.__module__ = "numpy"
