"""What a program is compiled for."""

from __future__ import annotations

from irkit.errors import DeviceError

TARGETS = ("auto", "cpu", "cuda")
DEVICES = {"cpu": "cpu", "cuda": "h200"}
"""Target → the vDevice that is planned for."""


def resolve_target(target: str) -> str:
    """ "cpu" or "cuda". Raises DeviceError for a target that is unknown or absent."""
    if target not in TARGETS:
        raise DeviceError(f"target '{target}': expected {', '.join(TARGETS)}")
    if target == "cpu":
        return "cpu"
    from irkit.runtime.cuda import availability

    reason = availability.why_not()
    if reason is None:
        return "cuda"
    if target == "cuda":
        raise DeviceError(f"target 'cuda': {reason}")
    return "cpu"
