"""Why a case cannot be simulated."""

__all__ = ["NotModelledError"]


class NotModelledError(Exception):
    """A case that is not modelled; its text is the reason."""
