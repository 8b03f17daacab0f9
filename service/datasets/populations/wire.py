"""Wire types of populations."""

from typing import Literal

from pydantic import Field

from service.datasets.wire import AmountFacts, BudgetFacts
from service.http.wire import (
    NAME_PATTERN,
    Answer,
    Body,
    BudgetBody,
    Moment,
    Name,
    Page,
    Words,
    example,
    page_example,
)
from service.ledger.accountants import AccountantName

_TOTAL = {"epsilon": "3", "delta": "0.000001"}
_SPENT = {"epsilon": "0.5", "delta": "0"}
_ZERO = {"epsilon": "0", "delta": "0"}
_LEFT = {"epsilon": "2.5", "delta": "0.000001"}
_BUDGET = {"declared": _TOTAL, "total": _TOTAL, "spent": _SPENT, "reserved": _ZERO, "remaining": _LEFT}
_MEMBER = {
    "name": "stays",
    "owner": "carla",
    "state": "sealed",
    "joined_at": "2030-01-01T09:00:00.000Z",
    "one_row_per_person": False,
    "spent": _SPENT,
    "reserved": _ZERO,
}
_POPULATION = {
    "name": "patients-of-north",
    "owner": "carla",
    "description": "Everybody treated in the north since 2020.",
    "accountant": "sum",
    "budget": _BUDGET,
    "curators": ["bruno"],
    "created_at": "2030-01-01T09:00:00.000Z",
    "datasets": [_MEMBER],
    "others": None,
}
_JOIN = {"dataset": "stays", "one_row_per_person": False}


class PopulationBody(
    Body, json_schema_extra=example({"name": "patients-of-north", "accountant": "zcdp", "budget": _TOTAL})
):
    """A new population. Its total bounds what one person loses in all its datasets together."""

    name: Name
    description: Words = ""
    accountant: AccountantName = "zcdp"
    budget: BudgetBody
    curators: list[Name] = Field(
        default=[], max_length=100, description="other curators who may let their datasets join"
    )


class PopulationChanges(Body, json_schema_extra=example({"curators": ["bruno"]})):
    """What is to be changed; what is left out stays as it is."""

    description: Words | None = None
    curators: list[Name] | None = Field(default=None, max_length=100)


class JoinBody(Body, json_schema_extra=example(_JOIN)):
    """A sealed or retired dataset of the caller's own that is to join, with its history and for good."""

    dataset: str = Field(pattern=NAME_PATTERN, description="name of the dataset")
    one_row_per_person: bool = Field(
        default=False,
        description="of a dataset without an id column: nobody has two rows, or two in one period",
    )


class MemberFacts(Answer, json_schema_extra=example(_MEMBER)):
    """A dataset of a population, and what its jobs have cost one person, in the population's currency."""

    name: str
    owner: str
    state: Literal["sealed", "retired"]
    joined_at: Moment
    one_row_per_person: bool
    spent: AmountFacts
    reserved: AmountFacts


class OtherMembers(Answer):
    """Datasets of other curators, which are not named to the caller, together."""

    datasets: int
    spent: AmountFacts
    reserved: AmountFacts


class PopulationFacts(Answer, json_schema_extra=example(_POPULATION)):
    """A population, its balance, and what each of its datasets has used, the one that used most first."""

    name: str
    owner: str
    description: str
    accountant: AccountantName
    budget: BudgetFacts
    curators: list[str]
    created_at: Moment
    datasets: list[MemberFacts] = Field(
        description="all of them to the population's owner and to auditors; to others, their own"
    )
    others: OtherMembers | None = Field(description="null: there are no others")


class PopulationPage(Page[PopulationFacts], json_schema_extra=page_example(_POPULATION)):
    """A page of populations by name, and the cursor of the next."""
