"""Views of a population: its balance and its datasets, as its owner, other curators and auditors see them."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from service import ledger
from service.ledger import accountants
from service.ledger.accountants import Accountant, Amount
from service.ledger.verification import charged_to_population
from service.operations.states import EntryKind, Role
from service.operations.tables import Dataset, LedgerEntry, Population, Principal
from service.people.authentication import Caller


def facts(session: Session, population: Population, caller: Caller) -> dict[str, Any]:
    """Describe a population. Its owner and auditors see every dataset, other curators name only their own."""
    accountant = accountants.of(population)
    charged = charged_to_population(session, population.id)
    members = _members(session, population)
    sees_all = caller.role == Role.AUDITOR or population.owner_id == caller.id
    shown = [each for each in members if sees_all or each[0].owner_id == caller.id]
    hidden = [charged[each.id] for each, _, _ in members if not sees_all and each.owner_id != caller.id]
    shown.sort(key=lambda each: -(charged[each[0].id].spent.loss + charged[each[0].id].reserved.loss))
    return {
        "name": population.name,
        "owner": session.get_one(Principal, population.owner_id).name,
        "description": population.description,
        "accountant": population.accountant,
        "budget": {
            "declared": accountants.declared(accountant.declared),
            **accountant.amounts(ledger.of_population(session, population.id)),
        },
        "curators": population.curators,
        "created_at": population.created_at,
        "datasets": [
            {
                "name": dataset.name,
                "owner": owner,
                "state": dataset.state,
                "joined_at": joined_at,
                "one_row_per_person": dataset.one_row_per_person,
                **_used(accountant, [charged[dataset.id]]),
            }
            for dataset, owner, joined_at in shown
        ],
        "others": {"datasets": len(hidden), **_used(accountant, hidden)} if hidden else None,
    }


def _members(session: Session, population: Population) -> list[tuple[Dataset, str, Any]]:
    """Return the datasets with the names of their owners and when they joined, by name."""
    query = (
        select(Dataset, Principal.name, LedgerEntry.at)
        .join(Principal, Principal.id == Dataset.owner_id)
        .join(LedgerEntry, LedgerEntry.dataset_id == Dataset.id)
        .where(LedgerEntry.population_id == population.id, LedgerEntry.kind == EntryKind.JOIN)
        .order_by(Dataset.name)
    )
    return [(dataset, owner, at) for dataset, owner, at in session.execute(query)]


def _used(accountant: Accountant, charged: list[ledger.Balance]) -> dict[str, Amount]:
    return {
        what: accountant.amount(ledger.total_of(getattr(each, what) for each in charged))
        for what in ("spent", "reserved")
    }
