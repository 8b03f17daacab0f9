"""A job as an analyst holds it: look, wait, cancel, take the result."""

from __future__ import annotations

import time
from typing import Any

from cairn_client.errors import JobCancelled, JobFailed, WaitTimeout
from cairn_client.progress import Show, automatic
from cairn_client.result import Result
from cairn_client.transport import Transport, retry_after
from cairn_client.wire import JobFacts, ResultFacts

__all__ = ["ENDED", "Job"]

#: The states in which nothing happens to a job any more.
ENDED = frozenset({"succeeded", "failed", "cancelled"})


class Job:
    """One request to cluster a dataset. It runs on the service, whether anybody waits for it or not."""

    def __init__(self, transport: Transport, facts: JobFacts):
        self._transport = transport
        #: What was last seen of the job; `refresh` looks again.
        self.facts = facts

    def __repr__(self) -> str:
        return f"<Job {self.id} on {self.facts.dataset}: {self.state}>"

    @property
    def id(self) -> str:
        """The job's id; `client.job(id)` comes back to it from anywhere."""
        return self.facts.id

    @property
    def state(self) -> str:
        """`queued`, `running`, `succeeded`, `failed` or `cancelled`, as last seen."""
        return self.facts.state

    @property
    def ended(self) -> bool:
        """Whether the job was last seen in a state that it does not leave."""
        return self.facts.state in ENDED

    def refresh(self) -> Job:
        """Look again; returns this job."""
        self._look()
        return self

    def wait(self, timeout: float | None = None, progress: bool | Show | None = None) -> Job:
        """Wait until the job has ended, and return it; WaitTimeout after `timeout` seconds.

        A broken connection is taken up again. `progress` is True for a bar, False for none, a function to be
        called with each `JobFacts`, or None for a bar where somebody looks (a terminal, a notebook). Stopping
        with Ctrl-C leaves the job running.
        """
        show = automatic() if progress is None or progress is True else progress or None
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while True:
                pause = self._look()
                if show is not None:
                    show(self.facts)
                if self.ended:
                    return self
                if end is not None and time.monotonic() + pause > end:
                    raise WaitTimeout(f"the job goes on: come back to it with client.job({self.id!r}).wait()")
                self._transport.sleep(pause)
        except KeyboardInterrupt as stopped:
            stopped.add_note(f"The job goes on: come back to it with client.job({self.id!r}).wait()")
            raise
        finally:
            if show is not None:
                show(None)

    def result(self, timeout: float | None = None, progress: bool | Show | None = None) -> Result:
        """What the job released, waiting for it if need be; JobFailed or JobCancelled if there is nothing."""
        if not self.ended:
            self.wait(timeout, progress)
        if self.state == "cancelled":
            raise JobCancelled(
                f"{self.facts.message or 'the job was cancelled'}: submit it again if you need it"
            )
        if self.state == "failed":
            raise JobFailed(self.facts.message or "the job ended without a result")
        facts = self._transport.get(ResultFacts, f"/v1/jobs/{self.id}/result")
        return Result(facts, self.receipt())

    def receipt(self) -> dict[str, Any]:
        """What was planned and charged, step by step, with its own digest."""
        answer = self._transport.call("GET", f"/v1/jobs/{self.id}/receipt")
        receipt: dict[str, Any] = answer.json()
        return receipt

    def cancel(self) -> Job:
        """Cancel the job while it is queued, and give its reservation back; NotCancellable afterwards."""
        answer = self._transport.call("DELETE", f"/v1/jobs/{self.id}", repeatable=False)
        self.facts = self._transport.read(JobFacts, answer)
        return self

    def _look(self) -> float:
        """See where the job stands; returns the pause the service asks for before the next look."""
        answer = self._transport.call("GET", f"/v1/jobs/{self.id}")
        self.facts = self._transport.read(JobFacts, answer)
        return retry_after(answer) or 1.0
