"""A submitted job to follow, wait for or cancel, and the way to its result."""

from __future__ import annotations

import hashlib
import io
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from cairn_client.errors import DamagedTranscript, JobCancelled, JobFailed, WaitTimeout
from cairn_client.findings import Findings
from cairn_client.progress import Show, automatic
from cairn_client.receipt import Receipt
from cairn_client.result import Result
from cairn_client.transport import Transport, retry_after
from cairn_client.wire import DifferencesFacts, FindingsFacts, JobFacts, Number, ResultFacts

#: Most characters in the header of an array with a field for each column.
_HEADER = 1 << 20
#: The states that a job does not leave.
ENDED = frozenset({"succeeded", "failed", "cancelled"})


class _Answers:
    """Further answers of a job that left k open."""

    def __init__(self, transport: Transport, id: str):
        self._transport, self._path = transport, f"/v1/jobs/{id}"

    def result(self, k: int) -> ResultFacts:
        return self._transport.request(ResultFacts, "GET", f"{self._path}/result", query={"k": k})

    def ask(self, kind: str, epsilon: Number, **request: Any) -> Findings:
        from cairn_client.questions import ask

        dataset = self._transport.request(JobFacts, "GET", self._path).dataset
        return ask(self._transport, dataset, kind, epsilon, **request).findings()

    def sample(self, count: int) -> npt.NDArray[Any]:
        headers = {"Accept": "application/x-npy"}
        answer = self._transport.call("GET", f"{self._path}/sample", query={"n": count}, headers=headers)
        rows: npt.NDArray[Any] = np.load(
            io.BytesIO(answer.content), allow_pickle=False, max_header_size=_HEADER
        )
        return rows


class Job:
    """A clustering, or a question. It runs on the service, whether or not anybody waits for it."""

    def __init__(self, transport: Transport, facts: JobFacts):
        self._transport = transport
        #: The job as last fetched; `refresh` fetches it again.
        self.facts = facts

    def __repr__(self) -> str:
        name = f" {self.facts.name!r}" if self.facts.name else ""
        return f"<Job {self.id}{name} on {self.facts.dataset}: {self.state}>"

    @property
    def id(self) -> str:
        """The job's id; `client.job(id)` finds it again."""
        return self.facts.id

    @property
    def state(self) -> str:
        """`queued`, `running`, `succeeded`, `failed` or `cancelled`, as last fetched."""
        return self.facts.state

    @property
    def kind(self) -> str:
        """`cluster`, or the kind of question."""
        return str(self.facts.request.get("kind", "cluster"))

    @property
    def ended(self) -> bool:
        """True if the job has succeeded, failed or been cancelled, as last fetched."""
        return self.facts.state in ENDED

    def refresh(self) -> Job:
        """Fetch the job's state again; returns this job."""
        self._look()
        return self

    def wait(self, timeout: float | None = None, progress: bool | Show | None = None) -> Job:
        """Wait until the job has ended, and return it; raises WaitTimeout after `timeout` seconds.

        A lost connection is restored. `progress` is a function to call with each `JobFacts`, False for no
        progress bar, or None for a bar in a terminal or a notebook. Ctrl-C stops waiting and leaves the job
        running.
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
                    raise WaitTimeout(
                        f"the job is still running: return to it with client.job({self.id!r}).wait()"
                    )
                self._transport.sleep(pause)
        except KeyboardInterrupt as stopped:
            stopped.add_note(f"The job keeps running: return to it with client.job({self.id!r}).wait()")
            raise
        finally:
            if show is not None:
                show(None)

    def result(self, timeout: float | None = None, progress: bool | Show | None = None) -> Result:
        """The job's result, after waiting for it; raises JobFailed or JobCancelled if there is none."""
        if self.kind != "cluster":
            raise ValueError(f"this job is a {self.kind}, which has no centres: call job.findings()")
        self._wait_for_success(timeout, progress)
        facts = self._transport.request(ResultFacts, "GET", f"/v1/jobs/{self.id}/result")
        return Result(facts, self.receipt(), _Answers(self._transport, self.id))

    def findings(self, timeout: float | None = None, progress: bool | Show | None = None) -> Findings:
        """The answer of a question, after waiting for it; raises JobFailed or JobCancelled without one."""
        if self.kind == "cluster":
            raise ValueError("this job is a clustering: call job.result()")
        self._wait_for_success(timeout, progress)
        path = f"/v1/jobs/{self.id}/result"
        facts = self._transport.request(FindingsFacts, "GET", path)
        lines = {"Accept": "text/csv"}
        return Findings(facts, self.receipt(), lambda: self._transport.call("GET", path, headers=lines).text)

    def differences(self, other: Job) -> DifferencesFacts:
        """Two profiles by the same clusters, of two datasets, side by side with their differences; free."""
        path, query = f"/v1/jobs/{self.id}/differences", {"second": other.id}
        return self._transport.request(DifferencesFacts, "GET", path, query=query)

    def _wait_for_success(self, timeout: float | None, progress: bool | Show | None) -> None:
        if not self.ended:
            self.wait(timeout, progress)
        if self.state == "cancelled":
            raise JobCancelled(
                f"{self.facts.message or 'the job was cancelled'}: submit it again if you need it"
            )
        if self.state == "failed":
            raise JobFailed(self.facts.message or "the job ended without a result")

    def receipt(self) -> Receipt:
        """Fetch the receipt: the measurements and the charge, step by step, with a digest."""
        answer = self._transport.call("GET", f"/v1/jobs/{self.id}/receipt")
        return Receipt(answer.json())

    def transcript(self) -> bytes:
        """Fetch the transcript: every released value, to be replayed by `cairn-server replay`.

        It has the SHA-256 that the receipt names, or DamagedTranscript is raised.
        """
        content = self._transport.call("GET", f"/v1/jobs/{self.id}/transcript").content
        named = self.receipt().get("transcript") or {}
        if hashlib.sha256(content).hexdigest() != named.get("sha256"):
            raise DamagedTranscript("this is not the transcript that the receipt names: fetch it again")
        return content

    def describe(self, name: str | None = None, note: str | None = None) -> Job:
        """Name the job, or write a note about it; None leaves the present text, "" removes it.

        The curator of the dataset can read both.
        """
        texts = {"name": name, "note": note}
        body = {field: text for field, text in texts.items() if text is not None}
        self.facts = self._transport.request(JobFacts, "PUT", f"/v1/jobs/{self.id}/note", body=body)
        return self

    def cancel(self) -> Job:
        """Cancel the job and release its reservation; raises NotCancellable unless it is queued."""
        self.facts = self._transport.request(JobFacts, "DELETE", f"/v1/jobs/{self.id}", repeatable=False)
        return self

    def end(self) -> Job:
        """End a job on one's own dataset, as its curator; the charge of a running job stays."""
        answer = self._transport.call("POST", f"/v1/jobs/{self.id}/end", repeatable=False)
        self.facts = self._transport.read(JobFacts, answer)
        return self

    def _look(self) -> float:
        """Fetch the job; returns how many seconds the service asks to wait before the next request."""
        answer = self._transport.call("GET", f"/v1/jobs/{self.id}")
        self.facts = self._transport.read(JobFacts, answer)
        return retry_after(answer) or 1.0
