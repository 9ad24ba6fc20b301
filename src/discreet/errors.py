"""The one family of errors.

Every error that discreet raises on purpose descends from `DiscreetError`, says what was asked, why it
cannot be done, and what to write instead. Messages are built from public facts only.
"""


class DiscreetError(Exception):
    """The root of every error that discreet raises on purpose."""


class InvalidInput(DiscreetError, ValueError):
    """An argument is not what its name says: a NaN, a negative scale, a probability above one."""


class Unsupported(DiscreetError):
    """The question is well formed, but there is no theorem or no certified way to answer it."""


class NotPrivateWarning(UserWarning):
    """Randomness that can be repeated is in use: what it touches protects nobody."""
