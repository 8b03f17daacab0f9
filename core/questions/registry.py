"""The registry of questions: look a kind up by name, plan a question, run a plan."""

from core.data import Stored
from core.errors import InvalidRequest
from core.plan import Plan
from core.questions.base import Kind, Question
from core.questions.compare import Compare
from core.questions.explain import Explain
from core.questions.profile import Profile
from core.questions.quantiles import Quantiles
from core.questions.summary import Summary
from core.questions.table import CrossTable

#: In the order in which forms offer them.
_KINDS: dict[str, Kind] = {
    kind.name: kind() for kind in (Profile, Explain, Quantiles, Summary, CrossTable, Compare)
}


def names() -> tuple[str, ...]:
    return tuple(_KINDS)


def get(name: str) -> Kind:
    if name not in _KINDS:
        raise InvalidRequest(
            f"there is no question {name!r}; choose one of {', '.join(_KINDS)}", parameter="kind"
        )
    return _KINDS[name]


def plan(stored: Stored, question: Question) -> Plan:
    """The plan of a question: a pure function of public numbers."""
    return get(question.kind).plan(stored, question)
