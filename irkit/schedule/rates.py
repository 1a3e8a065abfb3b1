"""Rates of vDevices as data: what comes with irkit, and what `irkit-bench calibrate` measured on a machine.

Both are files of one form: a JSON object with `device`, `machine`, and `rates`, nanoseconds by name. Those of
a machine are in the folder of the environment variable IRKIT_RATES_DIR, else in the user's configuration
folder; none are looked for where the variable is empty.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Collection
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

from irkit.dialects.task.rates import RATES
from irkit.errors import UnsupportedError
from irkit.plain_json import parsed

Rates = dict[str, float]


@cache
def _given(device: str) -> Rates:
    text = (
        resources.files("irkit.schedule")
        .joinpath("default_rates", f"{device}.json")
        .read_text("utf-8")
    )
    return parse(text, f"irkit/schedule/default_rates/{device}.json")


def default_rates(device: str) -> Rates:
    """The rates that come with irkit for "cpu", "h200" or "test4"."""
    return dict(_given(device))


def cpu_rates() -> Rates:
    """The rates to plan with for a CPU: those of this machine as far as they were measured, else those that
    come with irkit. Raises UnsupportedError for a broken file."""
    if machine_file("cpu") is None:
        return default_rates("cpu")
    given = default_rates("cpu") | (_given("cpu-256") if _is_narrow() else {})
    return given | machine_rates("cpu")


def machine_rates(device: str) -> Rates:
    """What was measured on this machine; empty where nothing was. Raises UnsupportedError for a broken
    file."""
    path = machine_file(device)
    if path is None or not path.is_file():
        return {}
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnsupportedError(f"rates in '{path}': {error}") from None
    return parse(text, str(path))


@cache
def _is_narrow() -> bool:
    """Whether this machine has no vector registers of 512 bits."""
    from llvmlite.binding import get_host_cpu_features

    features = cast(dict[str, bool], get_host_cpu_features())
    return not features.get("avx512f", False)


def machine_file(device: str) -> Path | None:
    """Where the rates of the machine at hand are kept; None if there is to be no such place.

    A CPU's are kept by the processor's name, since "cpu" is another one on another machine.
    """
    configured = os.environ.get("IRKIT_RATES_DIR")
    if configured == "":
        return None
    if configured is not None:
        folder = Path(configured)
    else:
        from platformdirs import user_config_path

        folder = user_config_path("irkit") / "rates"
    name = f"cpu {processor()}" if device == "cpu" else device
    return folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.json"


@cache
def processor() -> str:
    """What this machine's processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def parse(text: str, where: str, known: Collection[str] = RATES) -> Rates:
    """The rates of a file, of those that are `known`. Raises UnsupportedError that says what is wrong, and
    where."""
    try:
        found: Any = parsed(text)
    except ValueError as error:
        raise UnsupportedError(f"rates in '{where}': no JSON: {error}") from None
    rates = cast("dict[str, Any]", found).get("rates") if isinstance(found, dict) else None
    if not isinstance(rates, dict):
        raise UnsupportedError(f"rates in '{where}': expected an object with an object 'rates'")
    for name, rate in cast("dict[str, Any]", rates).items():
        if name not in known:
            raise UnsupportedError(f"rates in '{where}': '{name}'; there are {', '.join(known)}")
        if not isinstance(rate, int | float) or isinstance(rate, bool) or not 0 < rate < math.inf:
            raise UnsupportedError(
                f"rates in '{where}': '{name}' is {rate!r}: expected nanoseconds above 0"
            )
    return {name: float(rate) for name, rate in cast("Rates", rates).items()}


def write(path: Path, device: str, machine: str, rates: Rates) -> None:
    """Write a file of rates; a reader sees the old one or all of the new. Raises OSError."""
    facts = {"device": device, "machine": machine, "rates": dict(sorted(rates.items()))}
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(".tmp")
    made.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    made.replace(path)
