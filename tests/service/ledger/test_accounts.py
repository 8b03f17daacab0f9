"""The ledger reserves, charges and voids exactly, once, and notices tampering, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Barrier, Thread

import pytest
from sqlalchemy import text

from assurance.chaos import periods
from core.privacy import DELTA_UNIT, EPSILON_UNIT
from core.privacy.budget import to_units
from service import ledger
from service.ledger import entries, verification
from service.ledger.charging import AccountKey
from service.ledger.units import Cost
from service.operations.database import Database
from service.operations.tables import Dataset, Grant, Principal

pytestmark = pytest.mark.both_databases

AT = datetime(2030, 1, 1, tzinfo=UTC)


def cost(epsilon: str, delta: str = "0") -> Cost:
    return Cost(to_units(epsilon, EPSILON_UNIT, "epsilon"), to_units(delta, DELTA_UNIT, "delta"))


@pytest.fixture
def books(database: Database) -> Database:
    """A dataset of epsilon 1 and delta 1e-6 with two analysts, capped at 1 and 0.5."""
    with database.write() as session:
        for number, role in ((1, "curator"), (2, "analyst"), (3, "analyst")):
            session.add(Principal(id=number, name=f"p{number}", role=role, created_at=AT))
        session.flush()
        session.add(
            Dataset(
                id=1, name="d", owner_id=1, description="", state="sealed", domain={}, accountant="sum",
                epsilon_units=1, delta_units=0, planned_release=True, created_at=AT,
            )
        )  # fmt: skip
        session.flush()
        for number in (1, 2):
            session.add(
                Grant(
                    id=number,
                    dataset_id=1,
                    principal_id=number + 1,
                    epsilon_units=1,
                    delta_units=0,
                    created_at=AT,
                )
            )
        session.flush()
        ledger.open_account(session, 1, cost("1", "1e-6"), actor="p1", at=AT)
        ledger.set_cap(session, 1, 1, cost("1", "1e-6"), actor="p1", at=AT)
        ledger.set_cap(session, 1, 2, cost("0.5", "1e-6"), actor="p1", at=AT)
    return database


def reserve(books: Database, job: str, amount: Cost, grant: int = 1) -> None:
    with books.write() as session:
        ledger.reserve(
            session, ledger.lock_paying(session, 1, grant), job, ledger.Price(amount), actor="p2", at=AT
        )


def settle(books: Database, how: str, job: str, grant: int = 1) -> Cost:
    with books.write() as session:
        verb = {"charge": ledger.charge, "void": ledger.void}[how]
        return verb(session, ledger.lock(session, 1, grant), job, actor="worker", at=AT)


def held(books: Database, grant: int | None = None) -> ledger.Balance:
    with books.read() as session:
        return ledger.balance(ledger.find(session, 1, grant))


def faults(books: Database) -> list[str]:
    with books.read() as session:
        return verification.verify(session, 1).faults


def test_ten_reservations_of_a_tenth_exactly_fill_one(books: Database) -> None:
    for number in range(10):
        reserve(books, f"job{number}", cost("0.1"))
    assert held(books).remaining.loss == 0
    with pytest.raises(ledger.Overdrawn) as refusal:
        reserve(books, "eleventh", cost("1e-12"))
    assert refusal.value.balance.remaining == Cost(0, 10**12)
    for number in range(10):
        settle(books, "charge", f"job{number}")
    assert held(books) == ledger.Balance(cost("1", "1e-6"), Cost(0, 0), cost("1"))
    assert faults(books) == []


def test_cannot_reserve_more_delta_than_remains(books: Database) -> None:
    reserve(books, "a", cost("0.1", "0.000001"))
    with pytest.raises(ledger.Overdrawn):
        reserve(books, "b", cost("0.1", "1e-18"))


def test_cannot_reserve_more_than_the_cap(books: Database) -> None:
    reserve(books, "a", cost("0.5"), grant=2)
    with pytest.raises(ledger.Overdrawn) as refusal:
        reserve(books, "b", cost("1e-12"), grant=2)
    assert refusal.value.account.grant == 2
    assert held(books).reserved == cost("0.5")


def test_charge_moves_the_reservation_to_spent_in_both_accounts(books: Database) -> None:
    reserve(books, "a", cost("0.3", "1e-7"))
    assert settle(books, "charge", "a") == cost("0.3", "1e-7")
    for grant in (None, 1):
        assert held(books, grant).spent == cost("0.3", "1e-7")
        assert held(books, grant).reserved == Cost(0, 0)


def test_void_gives_the_reservation_back(books: Database) -> None:
    reserve(books, "a", cost("1"))
    settle(books, "void", "a")
    assert held(books).remaining == cost("1", "1e-6")
    reserve(books, "b", cost("1"))


@pytest.mark.parametrize("first", ["charge", "void"])
@pytest.mark.parametrize("second", ["charge", "void"])
def test_job_is_settled_once(books: Database, first: str, second: str) -> None:
    reserve(books, "a", cost("0.5"))
    settle(books, first, "a")
    before = held(books)
    with pytest.raises(ledger.NotReserved):
        settle(books, second, "a")
    assert held(books) == before


def test_job_that_was_never_reserved_cannot_be_charged(books: Database) -> None:
    with pytest.raises(ledger.NotReserved):
        settle(books, "charge", "unknown")


def test_total_can_be_raised_but_not_lowered(books: Database) -> None:
    with books.write() as session:
        ledger.raise_total(session, ledger.lock(session, 1), cost("2", "1e-6"), actor="p1", at=AT)
    with pytest.raises(ledger.Overdrawn), books.write() as session:
        ledger.raise_total(session, ledger.lock(session, 1), cost("1.9", "1e-6"), actor="p1", at=AT)
    assert held(books).total == cost("2", "1e-6")
    assert faults(books) == []


def test_cap_can_be_lowered_to_what_is_used_and_no_further(books: Database) -> None:
    reserve(books, "a", cost("0.2"))
    settle(books, "charge", "a")
    reserve(books, "b", cost("0.1"))
    with books.write() as session:
        ledger.set_cap(session, 1, 1, cost("0.3"), actor="p1", at=AT)
    with pytest.raises(ledger.Overdrawn), books.write() as session:
        ledger.set_cap(session, 1, 1, cost("0.299999999999"), actor="p1", at=AT)
    assert faults(books) == []


def test_refused_reservation_leaves_no_trace(books: Database) -> None:
    with books.read() as session:
        before = len(entries.page(session, 1))
    with pytest.raises(ledger.Overdrawn):
        reserve(books, "a", cost("1.1"))
    with books.read() as session:
        assert len(entries.page(session, 1)) == before


def _tamper(books: Database, statement: str) -> None:
    """What an intruder with the database's superuser password would do: switch the trigger off first."""
    with books.engine.begin() as connection:
        if books.is_sqlite:
            connection.execute(text("DROP TRIGGER ledger_entries_no_update"))
            connection.execute(text("DROP TRIGGER ledger_entries_no_delete"))
        else:
            connection.execute(text("ALTER TABLE ledger_entries DISABLE TRIGGER ALL"))
        connection.execute(text(statement))


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE ledger_entries SET loss_units = 1 WHERE sequence = 5", "altered"),
        ("UPDATE ledger_entries SET actor = 'nobody' WHERE sequence = 4", "altered"),
        ("DELETE FROM ledger_entries WHERE sequence = 4", "missing"),
        ("DELETE FROM ledger_entries WHERE sequence = 5", "newest entries are missing"),
        ("UPDATE accounts SET loss_spent = 0", "differs from what its entries add up to"),
        ("UPDATE accounts SET loss_total = 7000000000000", "differs from what its entries add up to"),
    ],
)
def test_verify_notices_tampering(books: Database, statement: str, finding: str) -> None:
    reserve(books, "a", cost("0.3"))
    settle(books, "charge", "a")
    assert faults(books) == []
    _tamper(books, statement)
    assert any(finding in fault for fault in faults(books))


def test_concurrent_reservations_never_overspend(books: Database) -> None:
    barrier = Barrier(12)
    outcomes: list[bool] = []

    def attempt(number: int) -> None:
        barrier.wait()
        try:
            reserve(books, f"job{number}", cost("0.15"), grant=1)
            outcomes.append(True)
        except ledger.Overdrawn:
            outcomes.append(False)

    threads = [Thread(target=attempt, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count(True), len(outcomes)) == (6, 12)
    assert held(books).remaining == cost("0.1", "1e-6")
    assert faults(books) == []


def test_failed_transaction_leaves_the_session_usable(books: Database) -> None:
    def fail_midway() -> None:
        with books.write() as session:
            ledger.reserve(
                session, ledger.lock(session, 1, 1), "a", ledger.Price(cost("1")), actor="p2", at=AT
            )
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_midway()
    reserve(books, "b", cost("1"))


@pytest.fixture
def monthly(books: Database) -> Database:
    """Two periods of epsilon 1 and 0.4 beside the dataset's account, where analyst 2 has a cap of 0.5."""
    with books.write() as session:
        caps = {1: cost("1", "1e-6"), 2: cost("0.5", "1e-6")}
        for label, total in (("2026-01", cost("1", "1e-6")), ("2026-02", cost("0.4", "1e-6"))):
            ledger.open_period(session, ledger.lock(session, 1), label, total, caps, actor="p1", at=AT)
    return books


BOTH = ("2026-01", "2026-02")


def reserve_in(monthly: Database, job: str, amount: str, periods: tuple[str, ...], grant: int | None) -> None:
    with monthly.write() as session:
        accounts = ledger.lock(session, 1, grant, periods)
        ledger.reserve(session, accounts, job, ledger.Price(cost(amount)), actor="p2", at=AT)


def test_job_on_two_periods_is_charged_in_full_to_each_and_to_nothing_else(monthly: Database) -> None:
    reserve_in(monthly, "a", "0.3", BOTH, 1)
    with monthly.write() as session:
        ledger.charge(session, ledger.lock(session, 1, 1, BOTH), "a", actor="worker", at=AT)
    with monthly.read() as session:
        spent = {key: each.spent for key, each in ledger.balances(session, 1, 1).items()}
        untouched = ledger.balances(session, 1, 2)[AccountKey("2026-01", 2)]
    paid = {AccountKey(label, grant): cost("0.3") for label in BOTH for grant in (None, 1)}
    assert spent == {AccountKey(): cost("0"), AccountKey(grant=1): cost("0"), **paid}
    assert untouched.spent == cost("0")
    assert faults(monthly) == []


def test_refusal_names_every_account_that_lacks_room_and_changes_nothing(monthly: Database) -> None:
    with pytest.raises(ledger.Overdrawn) as refusal:
        reserve_in(monthly, "a", "0.6", BOTH, 2)
    assert refusal.value.account == AccountKey("2026-02")
    assert set(refusal.value.short) == {AccountKey("2026-02"), *(AccountKey(each, 2) for each in BOTH)}
    assert refusal.value.largest.loss == cost("0.4").loss
    reserve_in(monthly, "b", "0.4", BOTH, 2)
    assert faults(monthly) == []


def test_reservation_is_settled_in_the_accounts_that_it_was_made_in(monthly: Database) -> None:
    reserve_in(monthly, "a", "0.3", BOTH, None)
    for labels in (("2026-01",), ("",)):
        with monthly.write() as session, pytest.raises(ledger.NotReserved):
            ledger.charge(session, ledger.lock(session, 1, None, labels), "a", actor="worker", at=AT)


def test_cap_is_set_in_every_period_and_never_below_what_one_has_used(monthly: Database) -> None:
    reserve_in(monthly, "a", "0.3", ("2026-01",), 1)
    with monthly.write() as session, pytest.raises(ledger.Overdrawn):
        ledger.set_cap(session, 1, 1, cost("0.2"), periods=BOTH, actor="p1", at=AT)
    with monthly.write() as session:
        ledger.set_cap(session, 1, 1, cost("0.35"), periods=("", *BOTH), actor="p1", at=AT)
    with pytest.raises(ledger.Overdrawn):
        reserve_in(monthly, "b", "0.36", ("2026-02",), 1)
    assert faults(monthly) == []


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE accounts SET loss_spent = 0 WHERE period = '2026-02'",
        "UPDATE ledger_entries SET periods = '[\"2026-01\"]' WHERE kind = 'charge'",
    ],
)
def test_verification_notices_what_was_changed_in_one_period(monthly: Database, tampering: str) -> None:
    reserve_in(monthly, "a", "0.3", BOTH, None)
    with monthly.write() as session:
        ledger.charge(session, ledger.lock(session, 1, None, BOTH), "a", actor="worker", at=AT)
    with monthly.write() as session:
        if monthly.is_sqlite:
            session.execute(text("DROP TRIGGER ledger_entries_no_update"))
        else:
            session.execute(text("ALTER TABLE ledger_entries DISABLE TRIGGER ALL"))
        session.execute(text(tampering))
    assert faults(monthly)


@pytest.mark.parametrize("give_back", [False, True])
def test_jobs_on_overlapping_ranges_race_for_the_last_budget_of_periods(
    database: Database, give_back: bool
) -> None:
    assert periods.race(database, 4, give_back=give_back) == []
