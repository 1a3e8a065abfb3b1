"""Whether a program that is about to run is the one whose schedule was proved."""

from __future__ import annotations

from irkit.errors import ArtifactError
from irkit.runtime.artifact import Artifact
from irkit.schedule.tables import Program


def check_proof(artifact: Artifact, program: Program) -> None:
    """Raises ArtifactError unless the emitted table is of the proof that the artifact's IR carries.

    That the table itself is whole is seen when it is read (`irkit.schedule.tables.build_tables`).
    """
    scheduled = artifact.ir.get("schedule")
    if scheduled is not None and f'verified = "{program.verified}"' not in scheduled:
        raise ArtifactError(
            f"the program's table is of proof {program.verified[:23]}..., which is not that of its IR"
        )
