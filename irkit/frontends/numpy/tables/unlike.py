"""What pandas computes otherwise than the arrays of a trace."""

from __future__ import annotations


class Unlike(Exception):
    """A call that is not compiled: it is the host's. No error of the user's."""
