"""From a running service to a first private result: start `make run`, then run this in another terminal.

It uses the demo's address and analyst key, which `make run` keeps beside its database. With an address and
a key as arguments it asks another service.
"""

import sys
from pathlib import Path

from cairn_client import BudgetExhausted, Client, is_whole

if len(sys.argv) == 3:
    url, key = sys.argv[1:]
else:
    url = Path("var/demo-address.txt").read_text().strip()
    key = Path("var/demo-keys.txt").read_text().split()[1]

with Client(url, key) as client:
    # Who am I, and what may I use?
    me = client.whoami()
    print(f"Signed in as {me.name} ({me.role}); datasets: {[each.name for each in client.datasets()]}")
    visits = client.dataset("visits")
    assert visits.facts.cap is not None, "only analysts have a cap: use an analyst's key"
    print(f"{visits.facts.description} Left for me: {visits.facts.cap.remaining}")

    # What would three centres cost, and what would be left? Asking is free.
    plan = visits.plan(k=3, epsilon=0.5)
    assert plan.remaining_after is not None, "the job does not fit what is left"
    print(f"By {plan.plan['algorithm']}, for {plan.cost}; left afterwards: {plan.remaining_after['cap']}")

    # Ask. The service charges the ledger before it reads a row; we wait for the answer.
    result = visits.cluster(k=3, epsilon=0.5)
    assert result.sizes is not None, "this algorithm releases no sizes"
    for number, (centre, size) in enumerate(zip(result.centres, result.sizes, strict=True), 1):
        print(f"  {number}: about {size:6.0f} visits: {centre[0]:5.1f} minutes, at {centre[1]:4.1f} o'clock")

    # The answer is private already: label rows of our own with it, keep it, share it.
    print(f"A visit of 70 minutes at 18:00 belongs to cluster {result.predict([[70.0, 18.0]])[0] + 1}")
    result.save("centres.csv")
    print("The centres are in centres.csv")

    # The receipt says what was promised, and has not been changed on the way.
    print(f"{result.receipt['statement']}; receipt whole: {is_whole(result.receipt)}")

    # What does not fit is refused, with the numbers.
    try:
        visits.cluster(k=3, epsilon=9)
    except BudgetExhausted as refusal:
        print(f"Refused: {refusal.requested.epsilon} asked, {refusal.remaining.epsilon} left")
