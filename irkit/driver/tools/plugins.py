"""`--load-plugin`: files that add to irkit by `irkit.extending`, as mlir-opt loads shared libraries."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from irkit.driver.diagnostics.diagnostic import UserError


def add_plugin_flag(parser: argparse.ArgumentParser) -> None:
    """Where a tool takes plugins; mlir-opt's names of the flag are taken too."""
    parser.add_argument(
        "--load-plugin",
        "--load-dialect-plugin",
        "--load-pass-plugin",
        dest="plugins",
        action="append",
        default=[],
        metavar="FILE.py",
        help="run register() of a Python file, which adds to irkit by irkit.extending",
    )


def load_plugins(paths: Sequence[str]) -> None:
    """Import each file and call its `register()`. Raises UserError for one that is no plugin.

    A plugin is code: load only what you trust.
    """
    for path in paths:
        register = getattr(_imported(path), "register", None)
        if not isinstance(register, Callable):
            raise UserError(f"plugin '{path}' has no function register()", "--load-plugin")
        register()


def _imported(path: str) -> ModuleType:
    """The module in a file, known by the file's name, so that what it adds can be found again."""
    file, name = Path(path).resolve(), Path(path).stem
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) == str(file):
            return known
        raise UserError(f"plugin '{path}': there is a module '{name}'", "--load-plugin")
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UserError(f"plugin '{path}' is no Python file", "--load-plugin")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (ImportError, OSError, SyntaxError) as error:
        del sys.modules[name]
        raise UserError(f"plugin '{path}': {error}", "--load-plugin") from None
    except BaseException:
        del sys.modules[name]
        raise
    return module
