"""What NVIDIA GPUs of one architecture have in common: limits of a multiprocessor, and instructions.

Limits: CUDA C++ Programming Guide, "Compute Capabilities" (table "Technical Specifications per Compute
Capability"; results a clock and multiprocessor: "Arithmetic Instructions"). Instructions: PTX ISA, the target
notes of `cp.async`, `cp.async.bulk`, `mma`, `wgmma`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 1024
MINIMUM: Final = (8, 0)
"""The least compute capability that irkit compiles for: Ampere's."""


@dataclass(frozen=True)
class Architecture:
    """A machine-code target, and what its multiprocessors have.

    `name` is the assembler's, "sm_90a"; with an "a", code for it runs on that compute capability alone.
    `lanes` and `double_lanes` are multiply-adds a clock, in float32 and float64. `shared_bytes` is what one
    block may have (by opting in), `multiprocessor_shared_bytes` what all blocks of a multiprocessor have
    together, where each takes `RESERVED_SHARED_BYTES` more than it asks for.
    """

    name: str
    capability: tuple[int, int]
    threads: int
    blocks: int
    multiprocessor_shared_bytes: int
    lanes: int
    double_lanes: int
    registers: int = 64 * KIB

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that one block may have."""
        return self.multiprocessor_shared_bytes - RESERVED_SHARED_BYTES

    @property
    def suffix(self) -> str:
        """ "a" where code is for this compute capability alone, else empty."""
        return "a" if self.name.endswith("a") else ""

    # Instructions. What a later capability has too is a comparison; wgmma never came back.

    @property
    def has_early_launches(self) -> bool:
        """`griddepcontrol`: a kernel begins before the one queued before it has ended, and waits for it."""
        return self.capability >= (9, 0)

    @property
    def has_wgmma(self) -> bool:
        """`wgmma`: products of a warp group, of operands in shared memory."""
        return self.name == "sm_90a"


RESERVED_SHARED_BYTES: Final = 1 * KIB
"""Bytes of shared memory that the system takes for each block."""

_LIMITS: Final = (
    #            capability  threads blocks shared      lanes double
    Architecture("sm_80", (8, 0), 2048, 32, 164 * KIB, 64, 32),
    Architecture("sm_86", (8, 6), 1536, 16, 100 * KIB, 128, 2),
    Architecture("sm_87", (8, 7), 1536, 16, 164 * KIB, 128, 2),
    Architecture("sm_89", (8, 9), 1536, 24, 100 * KIB, 128, 2),
    Architecture("sm_90a", (9, 0), 2048, 32, 228 * KIB, 128, 64),
    Architecture("sm_100a", (10, 0), 2048, 32, 228 * KIB, 128, 64),
    Architecture("sm_103a", (10, 3), 2048, 32, 228 * KIB, 128, 2),
    Architecture("sm_110", (11, 0), 1536, 24, 228 * KIB, 128, 2),
    Architecture("sm_120", (12, 0), 1536, 24, 100 * KIB, 128, 2),
    Architecture("sm_121", (12, 1), 1536, 24, 100 * KIB, 128, 2),
)

ARCHITECTURES: Final[dict[str, Architecture]] = {a.name: a for a in _LIMITS}
"""Name of a machine-code target → what it is; those of `MINIMUM` and up that the toolchain knows."""


def runs_on(built: Architecture, capability: tuple[int, int]) -> bool:
    """Whether machine code for `built` runs on a GPU of `capability`: on that of later minor numbers too,
    unless it is for one capability alone."""
    if built.suffix:
        return capability == built.capability
    return capability[0] == built.capability[0] and capability >= built.capability


def architecture_for(capability: tuple[int, int]) -> Architecture | None:
    """The latest architecture whose machine code runs on a GPU of `capability`; None if there is none."""
    fitting = [a for a in _LIMITS if runs_on(a, capability)]
    return max(fitting, key=lambda a: a.capability, default=None)


def why_no_code(name: str, capability: tuple[int, int]) -> str | None:
    """Why irkit makes no machine code for a GPU called `name`; None if it does."""
    if architecture_for(capability) is not None:
        return None
    have, want = (".".join(map(str, c)) for c in (capability, MINIMUM))
    if capability < MINIMUM:
        return f"{name} has compute capability {have}, irkit needs {want} or later"
    return f"{name} has compute capability {have}, for which irkit makes no code"
