"""Every error that `core` raises on purpose, as one tree.

    CoreError
    ├── InvalidRequest          a request or a public fact is wrong (also a ValueError)
    │   ├── InvalidBudget
    │   ├── InvalidDomain
    │   ├── EpsilonTooSmall
    │   ├── WorkLimitExceeded
    │   └── UnknownAlgorithm
    ├── InvalidData             the caller's own array cannot be read (also a ValueError)
    ├── InvalidTranscript       a transcript is damaged, or of another run (also a ValueError)
    └── PlanViolation           an algorithm asked the probe for what was not planned

All of them are raised before a row is measured, and none of their texts depends on rows.
"""


class CoreError(Exception):
    """Root of the tree."""


class InvalidRequest(CoreError, ValueError):
    """A parameter of a request is wrong; `parameter` names it."""

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


class InvalidBudget(InvalidRequest):
    """An epsilon or delta that no budget can hold."""


class InvalidDomain(InvalidRequest):
    """Public facts about a dataset that contradict each other or are missing."""


class EpsilonTooSmall(InvalidRequest):
    """The offered budget is too small for the algorithm to plan anything useful."""


class WorkLimitExceeded(InvalidRequest):
    """The plan would run too long or need too much memory, judged from public numbers."""


class UnknownAlgorithm(InvalidRequest):
    """No algorithm of that name, or none that fits the objective and the domain."""


class InvalidData(CoreError, ValueError):
    """The caller's own array is not something that can be encoded."""


class InvalidTranscript(CoreError, ValueError):
    """A transcript that cannot be read, or does not belong to the plan or receipt that it was given with."""


class PlanViolation(CoreError):
    """A measurement that the plan does not hold; refused before a row is read."""
