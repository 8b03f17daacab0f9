"""Commands for jobs: algorithms, plan, submit, watch, cancel, end, result, transcript."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from cairn_client.client import Client
from cairn_client.commands.common import DatasetName, ExitCode, JobId, Json
from cairn_client.commands.printing import hint, print_json, print_pairs, print_table
from cairn_client.commands.requests import (
    Algorithm,
    Clusters,
    Columns,
    Delta,
    Epsilon,
    Objective,
    Options,
    PeriodsOption,
    RehearseOn,
    Scaling,
    Sites,
    Weights,
    request_of,
    table_request,
)
from cairn_client.commands.results import print_findings, print_result, print_view
from cairn_client.errors import NotFound, Unreachable
from cairn_client.formatting import shorten
from cairn_client.job import Job
from cairn_client.progress import Show, in_words
from cairn_client.result import Result
from cairn_client.wire import JobFacts, PlanFacts

T = TypeVar("T")


def _asked_text(request: Mapping[str, Any]) -> str:
    """Write a number of clusters, or a range, as `parsed_clusters` reads it; a dash for a question."""
    k = request.get("k")
    if k is None:
        return "–"
    return f"{k['from']}-{k['to']}" if isinstance(k, dict) else str(k)


Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the result to this file (.csv, .json or .npy).")
]


def algorithms(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show this one and its options.")] = None,
    as_json: Json = False,
) -> None:
    """List the algorithms, or show the options of one of them."""
    with Client() as signed_in:
        found = [each for each in signed_in.algorithms() if name in (None, each.name)]
    if name is not None and not found:
        raise NotFound(f"there is no algorithm {name}: see `cairn algorithms`", status=404)
    if print_json(found, as_json):
        return
    rows = [[a.name, a.guarantee, ", ".join(a.objectives), ", ".join(a.domains), a.summary] for a in found]
    print_table(["name", "guarantee", "objectives", "rows", "summary"], rows, "There are none.")
    own = [a.name for a in found if a.origin == "house"]
    if own and len(own) < len(found):
        typer.echo(f"\n{' and '.join(own)} is Cairn's own; the others are from the literature.")
    if name is not None:
        options = found[0].options.get("properties", {}).items()
        table = [
            [option, each.get("default", "automatic"), each.get("description")] for option, each in options
        ]
        typer.echo()
        print_table(["option", "default", "meaning"], table, f"{name} has no options.")
    else:
        hint("\nSee the options of one with `cairn algorithms NAME`.")


def plan(
    name: DatasetName,
    clusters: Clusters,
    epsilon: Epsilon,
    delta: Delta = None,
    objective: Objective = "means",
    algorithm: Algorithm = "auto",
    option: Options = None,
    sites: Sites = None,
    columns: Columns = None,
    weight: Weights = None,
    scaling: Scaling = None,
    periods: PeriodsOption = None,
    as_json: Json = False,
) -> None:
    """Show what a job would cost and how well it should do. Free; exit code 5 if the job does not fit."""
    with Client() as signed_in:
        request = request_of(objective, algorithm, option, sites)
        request |= table_request(columns, weight, scaling) | {"periods": periods}
        quote = signed_in.dataset(name).plan(clusters, epsilon, delta, **request)
    print_plan(quote, as_json)


def print_plan(quote: PlanFacts, as_json: bool) -> None:
    """Print a plan with its price and its forecast; exit with code 5 if the job does not fit."""
    if not print_json(quote, as_json):
        _print_plan(quote)
    if not quote.fits:
        raise typer.Exit(ExitCode.BUDGET)


def _labels(periods: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(str(each["label"]) for each in periods)


def _print_plan(quote: PlanFacts) -> None:
    after, shortfall = quote.remaining_after or {}, quote.shortfall
    print_pairs(
        [
            ("algorithm", quote.plan.get("algorithm", quote.plan.get("kind"))),
            ("why", quote.plan.get("reason") or "you chose it"),
            *([("periods", _labels(quote.periods))] if quote.periods else []),
            *([("version", quote.version)] if (quote.version or 1) > 1 else []),
            ("cost", quote.cost),
            *([("population", quote.population.sentence)] if quote.population and quote.fits else []),
            ("fits", f"{shortfall['sentence']} {shortfall['next']}" if shortfall else "yes"),
            ("result", f"{quote.planned_seconds:g} s after a worker takes the job"),
            *((f"left of the {where} after it", amount) for where, amount in after.items()),
            *(
                (figure["label"].lower(), f"{figure['value']} {figure['explanation']}".rstrip())
                for figure in quote.accuracy.get("figures", [])
            ),
            ("verdict", quote.verdict),
            *(("warning", each) for each in quote.warnings),
            ("quote", quote.quote),
        ]
    )
    typer.echo()
    steps = [[s.get("name"), s.get("repeats"), s.get("purpose")] for s in quote.plan.get("steps", [])]
    print_table(["step", "times", "what it measures"], steps, "No measurements.")


def submit(
    name: DatasetName,
    clusters: Clusters,
    epsilon: Epsilon,
    delta: Delta = None,
    objective: Objective = "means",
    algorithm: Algorithm = "auto",
    option: Options = None,
    sites: Sites = None,
    columns: Columns = None,
    weight: Weights = None,
    scaling: Scaling = None,
    periods: PeriodsOption = None,
    rehearsal: Annotated[
        bool, typer.Option("--rehearsal", help="Run on synthetic rows instead of the data; free.")
    ] = False,
    rehearse_on: RehearseOn = None,
    quote: Annotated[
        str | None,
        typer.Option(help="The quote that `cairn plan` printed: refuse to be charged anything else."),
    ] = None,
    job_name: Annotated[str | None, typer.Option("--name", help="A name for the job, to find it by.")] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(help="A key of your choice: submitting again with the same key returns the same job."),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the result and print it.")] = False,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Submit a job and print its id.

    With --watch or -o, wait for the result. The cost is reserved now and charged when a worker starts the
    job.
    """
    with Client() as signed_in:
        request = request_of(objective, algorithm, option, sites)
        request |= table_request(columns, weight, scaling) | {"periods": periods}
        request["rehearsal"] = rehearsal
        request["rehearse_on"] = None if rehearse_on is None else signed_in.job(rehearse_on).id
        request["idempotency_key"] = idempotency_key
        request["quote"] = quote
        job = signed_in.dataset(name).submit(clusters, epsilon, delta, **request)
        if job_name is not None:
            job.describe(job_name)
        if watch or output is not None:
            print_result(watched(job), output, as_json)
            return
    if print_json(job.facts, as_json):
        return
    typer.echo(job.id)
    cost = "free of charge" if job.facts.rehearsal else f"at a cost of {job.facts.cost}"
    hint(f"Queued {cost}. Watch it with `cairn job {_short(job)} --watch`.")


def jobs(
    dataset: Annotated[str | None, typer.Option(help="Only jobs on this dataset.")] = None,
    search: Annotated[str | None, typer.Option(help="Only jobs with this in their name or note.")] = None,
    limit: Annotated[int, typer.Option(help="How many jobs to show.")] = 20,
    as_json: Json = False,
) -> None:
    """List your jobs, newest first. A curator sees all jobs on their datasets."""
    with Client() as signed_in:
        found = signed_in.jobs(limit, dataset=dataset, search=search)
    if print_json([each.facts for each in found], as_json):
        return
    ids = shorten(each.id for each in found)
    rows = [
        [
            id,
            f.dataset,
            f.analyst,
            f.state,
            _asked_text(f.request),
            "rehearsal" if f.rehearsal else str(f.cost).partition(",")[0],
            f.queued_at,
        ]
        for id, f in zip(ids, (each.facts for each in found), strict=True)
    ]
    nothing = "There are no jobs yet: cairn submit DATASET -k 8 --epsilon 1"
    headings = ["id", "dataset", "analyst", "state", "k", "cost", "queued"]
    if any(each.facts.name for each in found):
        headings.append("name")
        rows = [[*row, each.facts.name] for row, each in zip(rows, found, strict=True)]
    print_table(headings, rows, "No job matches." if search else nothing)


def job(
    id: JobId = "latest",
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the result and print it.")] = False,
    as_json: Json = False,
) -> None:
    """Show the state of a job."""
    with Client() as signed_in:
        found = signed_in.job(id)
        if watch:
            _print_outcome(found, None, None, as_json)
            return
    if print_json(found.facts, as_json):
        return
    facts = found.facts
    print_pairs(
        [
            ("job", facts.id),
            *((field, text) for field, text in (("name", facts.name), ("note", facts.note)) if text),
            ("dataset", facts.dataset),
            ("analyst", facts.analyst),
            ("state", in_words(facts)),
            ("algorithm", facts.algorithm),
            *([("k", _asked_text(facts.request))] if found.kind == "cluster" else [("kind", found.kind)]),
            ("cost", f"{facts.cost}{' (rehearsal: nothing is charged)' if facts.rehearsal else ''}"),
            ("queued", facts.queued_at),
            ("finished", facts.finished_at),
            *([("message", facts.message)] if facts.message else []),
        ]
    )


def note(
    id: JobId,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help='The note; "" removes it.')] = None,
    name: Annotated[str | None, typer.Option(help='A name for the job; "" removes it.')] = None,
) -> None:
    """Name a job of yours, or write a note about it. The dataset's curator can read both."""
    with Client() as signed_in:
        found = signed_in.job(id).describe(name, text)
    typer.echo(f"Job {_short(found)}: name {found.facts.name!r}, note {found.facts.note!r}.")


def cancel(id: JobId = "latest", as_json: Json = False) -> None:
    """Cancel a queued job and release the budget that it reserved."""
    with Client() as signed_in:
        found = signed_in.job(id).cancel()
    if not print_json(found.facts, as_json):
        typer.echo(f"Job {_short(found)} is cancelled; nothing was charged.")


def end(id: JobId, as_json: Json = False) -> None:
    """End a job on your dataset, as its curator. The charge of a running job stays."""
    with Client() as signed_in:
        found = signed_in.job(id).end()
    if not print_json(found.facts, as_json):
        typer.echo(f"Job {_short(found)}: {found.facts.message}.")


def result(
    id: JobId = "latest",
    k: Annotated[
        int | None, typer.Option("--k", min=1, help="Number of clusters, of a job that left it open.")
    ] = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Print a job's centres, or the answer of a question, or write them to a file. Waits for the end."""
    with Client() as signed_in:
        _print_outcome(signed_in.job(id), k, output, as_json)


def _print_outcome(job: Job, k: int | None, output: Path | None, as_json: bool) -> None:
    """Print what a job of any kind released, once it has ended."""
    if job.kind != "cluster":
        print_findings(wait_for(job, job.findings), output, as_json)
        return
    found = watched(job)
    print_result(found if k is None else found.at(k), output, as_json)


def differences(
    first: Annotated[str, typer.Argument(metavar="FIRST", help="The job of a profile.")],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="Another one by the same clusters.")],
    as_json: Json = False,
) -> None:
    """Set two profiles side by side, of two periods or two places, with their differences; free."""
    with Client() as signed_in:
        found = signed_in.job(first).differences(signed_in.job(second))
    if not print_json(found, as_json):
        print_view(found.view)


def transcript(
    id: JobId = "latest",
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the transcript to this file.")] = Path(
        "transcript"
    ),
) -> None:
    """Save what a job released, for `cairn-server replay`. Also checks it against the receipt."""
    with Client() as signed_in:
        output.write_bytes(signed_in.job(id).transcript())
    typer.echo(f"Wrote {output}.")


def _short(job: Job) -> str:
    return shorten([job.id])[0]


# --- watching -----------------------------------------------------------------------------------------------


def watched(job: Job) -> Result:
    """Wait for a job's result with a progress bar; Ctrl-C leaves the job running."""
    return wait_for(job, job.result)


def wait_for(job: Job, result: Callable[..., T]) -> T:
    """Wait for what a job releases with a progress bar; Ctrl-C leaves the job running."""
    if job.ended:
        return result()
    try:
        with _bar(job.facts) as show:
            return result(progress=show)
    except KeyboardInterrupt:
        hint(f"\nJob {_short(job)} keeps running. Return to it with `cairn job {_short(job)} --watch`.")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except Unreachable:
        again = f"return to it with `cairn job {_short(job)} --watch`"
        raise Unreachable(f"the connection was lost, but the job keeps running: {again}") from None


@contextmanager
def _bar(first: JobFacts) -> Iterator[Show]:
    """A progress bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=console, disable=not console.is_terminal)
    with bar:
        task = bar.add_task(f"{first.dataset}: {in_words(first)}", total=None)

        def show(job: JobFacts | None) -> None:
            if job is None:
                return
            measured, planned = (job.progress.measured, job.progress.planned) if job.progress else (0, None)
            if job.state == "succeeded":
                measured, planned = 1, 1
            bar.update(task, completed=measured, total=planned, description=f"{job.dataset}: {in_words(job)}")

        yield show


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (algorithms, plan, submit, jobs, job, note, cancel, end, result, differences, transcript):
        app.command()(command)
