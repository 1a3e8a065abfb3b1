"""What Numba is told from outside: machine code hangs on it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.errors import UnsupportedError

# What changes no code.
_HARMLESS = frozenset(
    f"NUMBA_{name}"
    for name in (
        "CACHE_DIR",
        "COLOR_SCHEME",
        "CUDA_LOW_OCCUPANCY_WARNINGS",
        "CUDA_WARN_ON_IMPLICIT_COPY",
        "DISABLE_PERFORMANCE_WARNINGS",
        "NUM_THREADS",
        "THREADING_LAYER",
        "THREADING_LAYER_PRIORITY",
        "WARNINGS",
    )
)


def numba_settings() -> tuple[tuple[str, str], ...]:
    """Names and values, by the environment and by a file `.numba_config.yaml` where the process is.

    Raises UnsupportedError where Numba is told to compile nothing, or what it cannot change any more.
    """
    config: Any = import_module("numba.core.config")
    # As Numba does before it compiles a function.
    try:
        config.reload_config()
    except RuntimeError as error:
        raise UnsupportedError(f"Numba does not take its settings: {error}") from None
    if config.DISABLE_JIT:
        raise UnsupportedError("NUMBA_DISABLE_JIT: programs are machine code that Numba makes")
    told: dict[str, object] = config._env_reloader.old_environ
    return tuple(sorted((name, str(told[name])) for name in told if name not in _HARMLESS))
