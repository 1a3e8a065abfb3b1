"""Whether a program's machine code can run on a GPU."""

from __future__ import annotations

from irkit.architectures import ARCHITECTURES, runs_on
from irkit.runtime.cuda.driver import Device
from irkit.runtime.cuda.facts import LaunchFacts


def why_elsewhere(planned: str, facts: LaunchFacts, on: Device) -> str | None:
    """Why a program that was planned for the vDevice `planned` cannot run `on` a GPU; None if it can."""
    built = ARCHITECTURES.get(facts.arch)
    if built is None or not runs_on(built, on.capability):
        major, minor = on.capability
        return (
            f"this program was compiled for {facts.arch} ({planned}), the device is {on.name} of "
            f"compute capability {major}.{minor}"
        )
    needed = max((facts.shared_bytes, *facts.scratch))
    if needed > on.shared_bytes:
        return (
            f"this program was compiled for {planned}: it needs {needed} bytes of shared memory a "
            f"block, {on.name} has {on.shared_bytes}"
        )
    return None
