"""Where gradients end."""

from __future__ import annotations

from typing import Any

import numpy as np

from irkit.frontends.numpy.custom import Custom
from irkit.frontends.numpy.nested import scoped
from irkit.frontends.numpy.recorder import tracing


def _copied(x: Any) -> Any:
    return x.copy()


_STOPPED = Custom(_copied, None, None, ends=True)


def stop_gradient(x: Any) -> Any:
    """A copy of an array that, where it is differentiated, is a constant."""
    return _STOPPED.record(scoped, (x,)) if tracing() else np.array(x)
