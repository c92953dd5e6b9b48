"""Why a case cannot be simulated."""

__all__ = ["IF_KNOWN", "NotModelledError"]

IF_KNOWN = "; if you know: "
"""Parts what a case does not state from the options of the command line that say it."""


class NotModelledError(Exception):
    """A case that is not modelled; its text is the reason."""
