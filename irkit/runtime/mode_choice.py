"""Which mode a call runs in: the one that was asked for, or the fastest of those measured (`auto`)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from irkit.errors import DeviceError
from irkit.schedule.modes import Mode
from irkit.schedule.tables import Program

AUTO = "auto"
MODES: Mapping[str, tuple[Mode, ...]] = {
    "cpu": tuple(Mode),
    # On a GPU there is no thread of the host to run straight through on.
    "cuda": (Mode.PER_OP, Mode.PER_WAVE, Mode.PERSISTENT),
}
"""The modes of each target, as `mode=` takes them besides "auto"."""
NOT_PROVED = "the schedule is not proved for it"
# Calls of each mode that `auto` times, per size of batch, before it settles, beside the first. Of short calls
# more, until they took so many seconds: threads that were asleep take part from the third one on.
_TRIALS, _SHORT_TRIALS = 2, 7
_AWAKE_AFTER = 5e-4
# After how many times as many calls a choice is looked at again: the first, where looks add up, and others.
_SOON, _LATER = 2, 8
# A mode of long calls that took so many times as long as the fastest is called once in a look at all of them:
# callers wait for what is tried, and what a look finds is noise in figures, which is seldom as much.
_FAR = 1.25
# Calls of the chosen mode that must all be slow before it is doubted; doubled with each doubt.
_PATIENCE = 8
# Calls after which what was chosen in doubt is looked at again; doubled with each look.
_UNSURE = 32


def check_mode(target: str, mode: str) -> None:
    """Raises DeviceError unless programs of `target` can run in `mode`."""
    known = (AUTO, *MODES[target])
    if mode not in known:
        raise DeviceError(f"mode '{mode}' for {target}: expected {', '.join(known)}")


def not_proved(target: str, proved: Collection[str]) -> dict[Mode, str]:
    """The modes of `target` that a proof does not cover, with the reason."""
    return {mode: NOT_PROVED for mode in MODES[target] if mode not in proved}


def worth_measuring(program: Program) -> tuple[Mode, ...]:
    """The modes of a CPU that may be the fastest for a program: what one vEU runs alone, no thread helps."""
    busy = {v for a in program.appends for v in range(a.first_veu, a.first_veu + a.veus)}
    several = (Mode.PER_WAVE, Mode.PERSISTENT) if len(busy) > 1 else ()
    return (Mode.SERIAL, *several)


def _enough(seconds: Sequence[float]) -> bool:
    """Whether these calls of a mode, one behind another, tell what it takes."""
    if len(seconds) <= _TRIALS:
        return False
    return len(seconds) > _SHORT_TRIALS or sum(seconds) >= _AWAKE_AFTER


class Auto:
    """Measures the modes on real calls, per power of two of the batch, and keeps the fastest.

    A choice is looked at again after eight times as many calls, since the machine may have been busy; the
    first one, where calls are `watched`, after twice as many.
    Where calls can be timed without waiting for a device (`watched`), also as soon as the chosen mode's last
    calls were all slower than what a mode of the other kind, of one thread or of several, took when they were
    compared: then all are measured anew. Modes of one kind move together. What is chosen then may be so for a
    moment only, while others use the processors, and is looked at again soon.
    Since figures that move are seen there, a look after many calls adds to what was measured before: noise
    makes a call slower, and never faster. What was much slower, and is in the first call again, has no more.
    """

    def __init__(self, modes: Sequence[Mode], watched: bool = False) -> None:
        self.modes = tuple(modes)
        self.parts: list[Auto] = []
        self.times: dict[int, dict[Mode, list[float]]] = {}
        self.chosen: dict[int, Mode] = {}
        self._watched = watched and len(self.modes) > 1
        self._calls: dict[int, int] = {}
        self._review: dict[int, int] = {}
        # What the best of the other kind took; the chosen one's last calls, how many of them raise a doubt,
        # and after how many what was chosen in doubt is looked at again.
        self._other: dict[int, float] = {}
        self._last: dict[int, deque[float]] = {}
        self._patience: dict[int, int] = {}
        self._unsure: dict[int, int] = {}
        # The least that each mode took before, since the last doubt.
        self._least: dict[int, dict[Mode, float]] = {}

    def pick(self, rows: int) -> tuple[Mode, bool]:
        """(mode for this call, whether to report its time)"""
        size = rows.bit_length()
        calls = self._calls[size] = self._calls.get(size, 0) + 1
        chosen = self.chosen.get(size)
        if chosen is not None and (len(self.modes) == 1 or calls < self._review[size]):
            return chosen, self._watched
        if chosen is not None:
            self._look_again(size)
        self.times.setdefault(size, {m: [] for m in self.modes})
        # All calls of a mode in a row, as they will be: the one before leaves threads awake, or asleep.
        return next((m for m in self.modes if not self._is_tried(size, m)), self.modes[-1]), True

    def report(self, rows: int, mode: Mode, seconds: float) -> None:
        """Record a timed call; settles when every mode has been tried often enough."""
        size = rows.bit_length()
        if size in self.chosen:
            self._watch(size, mode, seconds)
            return
        self.times[size][mode].append(seconds)
        if all(self._is_tried(size, m) for m in self.modes):
            self._settle(size)

    def _is_tried(self, size: int, mode: Mode) -> bool:
        """Whether enough is known of a mode; in doubt nothing is that was before."""
        seconds, least = self.times[size][mode], self._least.get(size)
        if _enough(seconds) or not seconds or least is None:
            return _enough(seconds)
        known = min(least[mode], *seconds)
        return known > max(_FAR * min(least.values()), _AWAKE_AFTER)

    def _settle(self, size: int) -> None:
        tried = self.times[size]
        self._review[size] = self._next_look(size)
        # The first call of a mode pays for cold caches.
        least = self._least.get(size, {})
        best = {m: min([*tried[m][1:], least.get(m, math.inf)]) for m in self.modes}
        if self._watched:
            self._least[size] = best
        chosen = self.chosen[size] = min(best, key=lambda m: best[m])
        alone = chosen == Mode.SERIAL
        others = [seconds for m, seconds in best.items() if (m == Mode.SERIAL) != alone]
        self._other[size] = min(others, default=math.inf)
        self._last[size] = deque(maxlen=self._patience.setdefault(size, _PATIENCE))

    def _next_look(self, size: int) -> int:
        """At which call the choice made now is looked at again."""
        calls = self._calls[size]
        # What was noise in the first calls, which may all fall into one busy moment, is not kept for long.
        later = (_SOON if self._watched and size not in self._other else _LATER) * calls
        unsure = self._unsure.get(size)
        if unsure is None:
            return later
        self._unsure[size] = 2 * unsure
        return min(later, calls + unsure)

    def _look_again(self, size: int) -> None:
        self.chosen.pop(size, None)
        self.times[size] = {m: [] for m in self.modes}

    def _watch(self, size: int, mode: Mode, seconds: float) -> None:
        """Doubt the choice where its figures have moved above another's, ever more slowly."""
        if mode is not self.chosen.get(size):
            return
        last = self._last[size]
        last.append(seconds)
        if len(last) == last.maxlen and min(last) > self._other[size]:
            self._patience[size] = 2 * len(last)
            self._unsure.setdefault(size, _UNSURE)
            self._least.pop(size, None)
            self._look_again(size)

    def of_part(self) -> Auto:
        """One of the same modes, for calls that run a part of the program: they take another time."""
        self.parts.append(Auto(self.modes, self._watched))
        return self.parts[-1]

    def decisions(self) -> dict[str, Any]:
        """What has been measured and chosen, by size of batch; of parts, where no call ran the whole."""
        of_parts: dict[str, Any] = {}
        for part in self.parts:
            of_parts |= part.decisions()
        return of_parts | {
            f"rows < {1 << size}": {
                "mode": str(mode),
                "microseconds": {
                    str(m): round(min(t) * 1e6, 1) for m, t in self.times[size].items() if t
                },
            }
            for size, mode in sorted(self.chosen.items())
        }


class ModeChoice:
    """The mode of each call of one executor.

    `refused`: modes that this program cannot run in here, with the reason. `measured`: those among which
    `auto` chooses, of which the refused are left out.
    Raises DeviceError where `mode`, or all of them, are refused.
    """

    def __init__(
        self,
        target: str,
        mode: str,
        measured: Sequence[Mode],
        refused: Mapping[Mode, str] | None = None,
    ) -> None:
        self._target, self.refused = target, dict(refused or {})
        self.allowed = tuple(m for m in MODES[target] if m not in self.refused)
        if not self.allowed:
            reasons = "; ".join(f"{m}: {reason}" for m, reason in self.refused.items())
            raise DeviceError(f"no mode is left to run the program in: {reasons}")
        # What is never fastest is still better than nothing.
        modes = [m for m in measured if m in self.allowed] or self.allowed[:1]
        self.auto = Auto(modes, watched=target == "cpu")
        self.mode = mode

    @property
    def mode(self) -> str:
        """ "auto", or the mode of every call. Setting it raises DeviceError if it is unknown or refused."""
        return self._mode

    @mode.setter
    def mode(self, mode: str) -> None:
        check_mode(self._target, mode)
        fixed = Mode(mode) if mode != AUTO else None
        if fixed is not None and fixed in self.refused:
            raise DeviceError(
                f"mode '{mode}': {self.refused[fixed]}; allowed: auto, {', '.join(self.allowed)}"
            )
        self.fixed, self._mode = fixed, mode

    def pick(self, rows: int, auto: Auto | None = None) -> tuple[Mode, bool]:
        """(mode for this call, whether to report its time); `auto` is that of a part of the program."""
        if self.fixed is not None:
            return self.fixed, False
        return (auto or self.auto).pick(rows)
