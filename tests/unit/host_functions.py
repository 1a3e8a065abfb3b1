"""Functions of somebody else's module, as the host calls them."""

# pyright: basic
from __future__ import annotations

from typing import Any

import numpy as np


def scaled(x, by):
    return np.sin(x) * by


def branching(x):
    return x * 3 if x.max() > 0.5 else x - 1


def swallows(x):
    try:
        return x + 1 if float(x.ravel()[0]) > -100 else x
    except irkit_errors():
        return x - 1


def irkit_errors():
    return (Exception,)


def doubles_in_place(x):
    if x.size and x.max() > -1e9:
        x *= 2


def accumulates(x, y):
    if y.size and y.max() > -1e9:
        x += y.mean()


def structured(given, name):
    a, (b, n) = given["a"], given["b"]
    if a.sum() > 1e9:
        return None
    return {name: (a + b) / n, "parts": (a.copy(), b * 2), "count": int((a > 1).sum())}


def positive(x):
    return x[[v > 0 for v in x.tolist()]]


def window(x):
    return x[1:] if x.sum() > -1e9 else x


_KEPT = np.zeros(4)


def remembered(x):
    if x.sum() > -1e9:
        _KEPT[...] = x
    return _KEPT


def gives_back(x):
    x *= 2 if x.sum() > -1e9 else 1
    return x


def text(x):
    return str(x.tolist())


def below(x, most):
    if x.max() >= most:
        raise ValueError("too large")
    return x + 1


def applied(function, x):
    return function(x) if x.sum() > -1e9 else x


def rolled(x, window):
    import pandas

    series: Any = pandas.Series(x)
    return series.rolling(window, min_periods=1).mean().to_numpy(copy=True)


def fitted(model, x, y):
    model.fit(x, y)
    return len(x)


def centred(frame):
    """Of a frame of pandas: its columns less their means."""
    return frame.assign(**{name: frame[name] - frame[name].mean() for name in frame.columns})


FACTORS = [2.0]


def by_factor(x):
    """By what may change."""
    return x * FACTORS[0]
