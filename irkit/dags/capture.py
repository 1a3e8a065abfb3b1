"""Launches of Numba kernels are handed to the DAG that is open, and none to the device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

Launcher = Callable[[Any, tuple[Any, ...]], None]
"""Takes a configured kernel and the arguments of its launch."""

_OPEN: ContextVar[Launcher | None] = ContextVar("irkit_open_dag", default=None)
_LOCK = threading.Lock()
_WATCHED: list[Any] = []
"""The method of Numba's that launches, while some DAG is open: once for each."""


@contextmanager
def capturing(launcher: Launcher) -> Generator[None]:
    """While it lasts, `kernel[grid, block](...)` in this thread goes to `launcher`."""
    _watch()
    token = _OPEN.set(launcher)
    try:
        yield
    finally:
        _OPEN.reset(token)
        _unwatch()


class Launching:
    """While it lasts, launches in this thread are done as ever."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _OPEN.set(None)

    def __exit__(self, *_: object) -> None:
        _OPEN.reset(self._token)


def _watch() -> None:
    configured: Any = import_module("numba.cuda.dispatcher")._LaunchConfiguration
    with _LOCK:
        launch = _WATCHED[0] if _WATCHED else configured.__call__
        _WATCHED.append(launch)

        def called(self: Any, *arguments: Any) -> None:
            launcher = _OPEN.get()
            if launcher is None:
                launch(self, *arguments)
            else:
                launcher(self, arguments)

        configured.__call__ = called


def _unwatch() -> None:
    configured: Any = import_module("numba.cuda.dispatcher")._LaunchConfiguration
    with _LOCK:
        launch = _WATCHED.pop()
        if not _WATCHED:
            configured.__call__ = launch
