"""The modes: ways in which the walkers of an emitted program carry one schedule out."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """How far a run keeps the rTasks of a schedule apart; docs/architecture.md has what each is on a target.

    Members are equal to their names, so that IR, saved programs and users spell them as text.
    """

    SERIAL = "serial"
    """All rTasks one after another, in program order, on the caller's thread."""
    PER_OP = "per-op"
    """One append after another; on a GPU those of a wave side by side."""
    PER_WAVE = "per-wave"
    """One wave after another: waits are satisfied by the joins between waves."""
    PERSISTENT = "persistent"
    """Every vEU walks its own list, and waits on counters."""
