"""Mutants of `service`: the ledger, the queue, submission, and the locks that only PostgreSQL needs."""

from __future__ import annotations

LEDGER = {
    "service/ledger/units.py": (
        ("self.loss <= room.loss and self.delta", "self.loss <= room.loss or self.delta"),
        ("if min(self.loss, self.delta) < 0 or", "if"),
    ),
    "service/ledger/accounts.py": (
        ("return self.total - self.reserved - self.spent", "return self.total - self.spent"),
        ("return self.total - self.reserved - self.spent", "return self.total - self.reserved"),
        (
            "if total.loss < account.loss_total or total.delta < account.delta_total:",
            "if total.loss < account.loss_total and total.delta < account.delta_total:",
        ),
        ("(present.reserved + present.spent).fits(total)", "present.spent.fits(total)"),
        (
            "_require_room({key: balance(account) for key, account in paying.items()}, price)",
            "_require_room({AccountKey(): balance(accounts.dataset)}, price)",
        ),
        (
            "for key, account in paying.items():\n        cost = price.of(key)\n        account.loss_res",
            "for key, account in [(AccountKey(), accounts.dataset)]:\n        cost = price.of(key)\n"
            "        account.loss_res",
        ),
        ("account.delta_reserved += cost.delta", "account.delta_reserved += 0"),
        ("least_delta = min(", "least_delta = max("),
        (
            "if [row.kind for row in rows] != [EntryKind.RESERVE] or",
            "if EntryKind.RESERVE not in [row.kind for row in rows] or",
        ),
        (" or _payer(rows[0]) != payer:", ":"),
        ("account.delta_spent += cost.delta", "account.delta_spent += 0"),
        ("account.loss_reserved -= cost.loss", "account.loss_reserved -= 0"),
        ("return {key: self.found[key] for key", "return {key: self.found[AccountKey()] for key"),
        ("select(func.min(Account.delta_total", "select(func.max(Account.delta_total"),
        ("    account.loss_total, account.delta_total = total.loss, total.delta\n    append(", "    ("),
    ),
    "service/ledger/charging.py": (
        ("if population is not None:\n        keys", "if population is not None and grant:\n        keys"),
        ("return len(set(periods)) if unit and unit.has_accounts_of_periods else 1", "return 1"),
        ("tuple(sorted(set(periods))) if", "tuple(sorted(set(periods)))[:1] if"),
        ("rows_per_person * len(set(periods)) if", "rows_per_person if"),
    ),
    "service/ledger/entries.py": (
        ("        content.append(entry.periods)", "        pass"),
        ('    "actor",\n', ""),
        ('    "delta_units",\n', ""),
        ("previous=account.head,", "previous=GENESIS,"),
    ),
    "service/ledger/verification.py": (
        ("if entry.previous != found.head:", "if False:"),
        ("if entry.hash != hash_of(entry):", "if False:"),
        ("if entry.sequence != found.entries:", "if False:"),
        ("if job in self.open or job in self.settled:", "if job in self.open:"),
        ("(account.entries, account.head) != (found.entries, found.head)", "False"),
        ("if self.open.pop(job, None) != reservation:", "if self.open.pop(job, None) is None:"),
        ("if replayed != balance(account):", "if replayed.spent != balance(account).spent:"),
    ),
    "service/ledger/checkpoints.py": (
        ("if stored is not None and not keys.verifies(", "if stored is None and not keys.verifies("),
        ('return bool(session.scalar(query) == state["head"])', "return True"),
        ("or_(wanted != had, amounts, and_(LedgerEntry", "or_(wanted != had, and_(LedgerEntry"),
        ("amounts, and_(LedgerEntry.id.is_not(None), other_grant))", "amounts)"),
        ("state = None if whole or stored is None else", "state = None if stored is None else"),
    ),
    "service/ledger/accountants/zcdp.py": (
        ("return self.declared.delta_units // 2", "return self.declared.delta_units"),
        ("self.declared.delta_units - self._converting_delta)", "self.declared.delta_units)"),
        ("Cost(plan.rho_units, plan.approximate_delta_units)", "Cost(plan.rho_units, 0)"),
    ),
    "service/ledger/accountants/plain_sum.py": (
        ("Cost(plan.epsilon_units, plan.delta_units)", "Cost(plan.epsilon_units, 0)"),
    ),
}

QUEUE = {
    "service/jobs/queue.py": (
        ("if job.attempts >= MOST_ATTEMPTS:", "if job.attempts > MOST_ATTEMPTS:"),
        ("(Job.state == JobState.RUNNING) & (Job.lease_expires_at < now)", "Job.state == JobState.RUNNING"),
        (
            "ledger.charge(session, accounts, job.id, actor=worker, at=now)\n        return True",
            "pass\n        return True",
        ),
        ("if allowed and understood:", "if understood:"),
        ("if allowed and understood:", "if allowed:"),
        (
            "        ledger.void(session, accounts, job.id, actor=worker, at=now)\n    if allowed",
            "        pass\n    if allowed",
        ),
        (", Job.lease == claim.lease)", ")"),
        ('"released_at": claim.released_at(now),', '"released_at": now,'),
        (
            "for stored in (Answer, TranscriptPart, JournalEntry, Result):",
            "for stored in (Answer, TranscriptPart, JournalEntry):",
        ),
        ("if release.state_at(locked, now, held=True).finished_at is not None:", "if False:"),
        ('"attempts": Job.attempts - 1', '"attempts": Job.attempts'),
        (
            "if locked.state != JobState.QUEUED:\n        return False",
            "if locked.state == JobState.SUCCEEDED:\n        return False",
        ),
        ("_void(session, locked, actor=actor, now=now)\n    faults", "faults"),
        ("            func.coalesce(recent.c.operations, 0),\n", ""),
        ("            Job.rehearsal,\n            func", "            func"),
        ("            case((Job.worker == worker, 0), else_=1),\n", ""),
        ("    job.attempts += 1\n", ""),
        ("EndReason.LOST, now, _released_at(job, dataset, now))", "EndReason.LOST, now, now)"),
        (
            "if locked.state == JobState.QUEUED:\n        _void",
            "if locked.state != JobState.SUCCEEDED:\n        _void",
        ),
        (
            "    if job.claimed_at is None:\n        job.claimed_at = now",
            "    if True:\n        job.claimed_at = now",
        ),
        ("        transcripts.store(session, claim.job_id, result.transcript)\n", ""),
    ),
}

SUBMIT = {
    "service/jobs/submit.py": (
        ("if found is not None and found.request_digest != _digest(body):", "if False:"),
        ("counted.unfinished + counted.unreleased >= limits", "counted.unfinished >= limits"),
        ("counted.unreleased >= limits.queued_jobs", "counted.unreleased > limits.queued_jobs"),
        ("if counted.last_hour >= dataset.jobs_per_hour:", "if counted.last_hour > dataset.jobs_per_hour:"),
        ("        Job.rehearsal.is_(False),\n", ""),
        ('        Job.dataset_id == bindparam("dataset"),\n', ""),
        ("if not access.is_open(session, right.dataset.id, right.grant_id, body.kind):", "if False:"),
        ("scalar_one() >= limits.rehearsals_per_minute:", "scalar_one() > limits.rehearsals_per_minute:"),
        ("    planned.require_quoted(body.quote)\n", ""),
        (
            "ledger.lock(session, right.dataset.id, right.grant_id)",
            "ledger.lock(session, right.dataset.id, None)",
        ),
        ("loss_units=planned.cost.loss,", "loss_units=0,"),
        ("    if not body.rehearsal:\n        try:", "    if True:\n        try:"),
        ("if counted.earlier is not None:", "if counted.earlier is None:"),
        ('refusal.whose == "dataset" or right.grant is None', "right.grant is None"),
        (
            "canonical = json.dumps(body.asked(), sort_keys=True",
            'canonical = json.dumps({"k": body.k}, default=str',
        ),
    ),
    "service/jobs/planned.py": (
        ("if body.rehearsal and operations > limits.rehearsal_operations:", "if False:"),
        ("NOTHING if body.rehearsal else right.accountant.cost(plan)", "right.accountant.cost(plan)"),
    ),
}

LOCKS = {
    "service/ledger/accounts.py": (("    .with_for_update()\n", ""),),
    "service/jobs/submit.py": ((".with_for_update(key_share=True)", ""),),
    "service/jobs/queue.py": (
        (".with_for_update(skip_locked=True, of=Job)", ""),
        (".with_for_update()\n    return session.scalars(locked", "\n    return session.scalars(locked"),
    ),
}
