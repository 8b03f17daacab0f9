"""Commands about jobs: algorithms, plan, submit, watch, cancel, result, receipt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from cairn_client.commands.common import (
    DatasetName,
    ExitCode,
    JobId,
    Json,
    amount_option,
    client,
    hint,
    print_json,
    print_pairs,
    print_table,
)
from cairn_client.errors import Unreachable
from cairn_client.job import Job
from cairn_client.progress import Show, in_words
from cairn_client.receipt import is_whole
from cairn_client.result import Result
from cairn_client.wire import JobFacts, PlanFacts

__all__ = ["add_to", "watched"]

Clusters = Annotated[int, typer.Option("--clusters", "-k", min=1, help="How many centres.")]
Epsilon = Annotated[str, amount_option("Epsilon to spend, such as 0.5.")]
Delta = Annotated[
    str | None, amount_option("Delta to spend; by default a small one, or 0 where none is offered.")
]
Objective = Annotated[Literal["means", "medians"], typer.Option(help="What is to be small.")]
Algorithm = Annotated[str, typer.Option(help="A name of `cairn algorithms`; `auto` chooses.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", help="An option of the algorithm, NAME=VALUE; repeat it.")
]
Sites = Annotated[str | None, typer.Option(help="A site set, for algorithms that choose among sites.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write it to this file (.csv, .json or .npy).")
]


def algorithms(as_json: Json = False) -> None:
    """List what can be asked for by name, with its guarantee and its options."""
    with client() as signed_in:
        found = signed_in.algorithms()
    if as_json:
        print_json(found)
        return
    rows = [
        [a.name, a.guarantee, "/".join(a.objectives), "/".join(a.domains), _options(a.options), a.summary]
        for a in found
    ]
    print_table(["name", "guarantee", "objectives", "rows", "options", "summary"], rows, "There are none.")


def _options(schema: Mapping[str, Any]) -> str:
    found = schema.get("properties", {})
    return ", ".join(f"{name}={each.get('default', '...')}" for name, each in found.items())


def plan(
    name: DatasetName,
    clusters: Clusters,
    epsilon: Epsilon,
    delta: Delta = None,
    objective: Objective = "means",
    algorithm: Algorithm = "auto",
    option: Options = None,
    sites: Sites = None,
    as_json: Json = False,
) -> None:
    """Show what a job would measure and cost, and how well it should do; free."""
    with client() as signed_in:
        quote = signed_in.dataset(name).plan(
            clusters,
            epsilon,
            delta,
            objective=objective,
            algorithm=algorithm,
            options=_read_options(option),
            sites=sites,
        )
    if as_json:
        print_json(quote)
        return
    _print_plan(quote)


def _print_plan(quote: PlanFacts) -> None:
    after = quote.remaining_after or {}
    error = quote.size_error
    noise = f"about ±{error:.3g} records; an average cluster has {quote.average_size:.4g}" if error else None
    print_pairs(
        [
            ("algorithm", quote.plan.get("algorithm")),
            ("why", quote.plan.get("reason")),
            ("cost", quote.cost),
            ("fits", "yes" if quote.fits else "no: less is left than it costs"),
            *((f"left of the {where} afterwards", amount) for where, amount in after.items()),
            ("noise in a size", noise),
            *_forecast(quote.forecast),
            *(("warning", each) for each in quote.warnings),
        ]
    )
    steps = [[s.get("name"), s.get("repeats"), s.get("purpose")] for s in quote.plan.get("steps", [])]
    print_table(["step", "times", "what it measures"], steps, "It measures nothing.")


_EXPECTED = {
    "smallest_cluster": ("smallest cluster found", "about {:.3g} records"),
    "noise_per_radius": ("noise in a centre", "about ±{:.2g} of its cluster's radius"),
    "noise_at_bounds": (
        "noise in a centre at worst",
        "about ±{:.2g} in the widest column, for a cluster as wide as the bounds",
    ),
}
_TOLD_OTHERWISE = {"cluster_share", "size_noise"}


def _forecast(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The known figures in words, then whatever else the algorithm has to say."""
    for name, (label, words) in _EXPECTED.items():
        if isinstance(given.get(name), float | int):
            yield label, words.format(given[name])
    rest = {name: each for name, each in given.items() if name not in _EXPECTED.keys() | _TOLD_OTHERWISE}
    for where, value in _flat(rest):
        yield f"forecast: {where}", value


def _flat(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        words = f"{path}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{words}, ")
        elif isinstance(value, list):
            numbers = [f"{each:.4g}" if isinstance(each, float) else str(each) for each in value[:8]]
            yield words, ", ".join(numbers) + (" ..." if len(value) > 8 else "")
        else:
            yield words, value


def _read_options(given: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is JSON where it reads as such, else a word."""
    found: dict[str, Any] = {}
    for each in given or []:
        name, equals, text = each.partition("=")
        if not equals:
            raise typer.BadParameter("write an option of the algorithm as NAME=VALUE")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def submit(
    name: DatasetName,
    clusters: Clusters,
    epsilon: Epsilon,
    delta: Delta = None,
    objective: Objective = "means",
    algorithm: Algorithm = "auto",
    option: Options = None,
    sites: Sites = None,
    rehearsal: Annotated[bool, typer.Option("--rehearsal", help="Run on synthetic rows, for free.")] = False,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Submitting twice with the same key submits once.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the result and print it.")] = False,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Submit a job. Its cost is reserved now and charged when a worker takes it; -o waits like --watch."""
    with client() as signed_in:
        job = signed_in.dataset(name).submit(
            clusters,
            epsilon,
            delta,
            objective=objective,
            algorithm=algorithm,
            options=_read_options(option),
            sites=sites,
            rehearsal=rehearsal,
            idempotency_key=idempotency_key,
        )
        if watch or output is not None:
            _print_result(watched(job), output, as_json)
            return
    if as_json:
        print_json(job.facts)
        return
    typer.echo(job.id)
    hint(f"Queued for {job.facts.cost}; see it with `cairn job {job.id} --watch`.")


def jobs(
    dataset: Annotated[str | None, typer.Option(help="Only jobs on this dataset.")] = None,
    limit: Annotated[int, typer.Option(help="How many, newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """List your jobs, or the jobs on datasets you own, newest first."""
    with client() as signed_in:
        found = signed_in.jobs(limit) if dataset is None else signed_in.dataset(dataset).jobs(limit)
    if as_json:
        print_json([each.facts for each in found])
        return
    rows = [
        [
            f.id,
            f.dataset,
            f.analyst,
            f.state,
            f.request.get("k"),
            f.cost,
            "yes" if f.rehearsal else "",
            f.queued_at,
        ]
        for f in (each.facts for each in found)
    ]
    nothing = "There are no jobs yet: cairn submit DATASET -k 8 --epsilon 1"
    print_table(["id", "dataset", "analyst", "state", "k", "cost", "rehearsal", "queued"], rows, nothing)


def job(
    id: JobId = "latest",
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the result and print it.")] = False,
    as_json: Json = False,
) -> None:
    """Show where a job stands; --watch comes back to one that was left."""
    with client() as signed_in:
        found = signed_in.job(id)
        if watch:
            _print_result(watched(found), None, as_json)
            return
    if as_json:
        print_json(found.facts)
        return
    facts = found.facts
    print_pairs(
        [
            ("job", facts.id),
            ("dataset", facts.dataset),
            ("analyst", facts.analyst),
            ("state", in_words(facts)),
            ("algorithm", facts.algorithm),
            ("k", facts.request.get("k")),
            ("cost", f"{facts.cost}{' (rehearsal: nothing is charged)' if facts.rehearsal else ''}"),
            ("queued", facts.queued_at),
            ("finished", facts.finished_at),
            *([("message", facts.message)] if facts.message else []),
        ]
    )


def cancel(id: JobId = "latest", as_json: Json = False) -> None:
    """Cancel a queued job and give its reservation back."""
    with client() as signed_in:
        found = signed_in.job(id).cancel()
    if as_json:
        print_json(found.facts)
    else:
        typer.echo(f"{found.id} is cancelled; nothing was charged.")


def result(id: JobId = "latest", output: Output = None, as_json: Json = False) -> None:
    """Print or write a job's centres, waiting for them if need be."""
    with client() as signed_in:
        _print_result(watched(signed_in.job(id)), output, as_json)


def receipt(
    id: JobId = "latest",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it to this file, as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a job measured and was charged, step by step, and check the receipt's digest."""
    with client() as signed_in:
        found = signed_in.job(id).receipt()
    whole = is_whole(found)
    if output is not None:
        output.write_text(json.dumps(found, indent=2) + "\n")
    elif as_json:
        print_json(found)
    else:
        print_pairs(
            [
                ("job", found["job"]),
                ("dataset", found["dataset"]),
                ("guarantee", found.get("statement")),
                ("neighbours", found["neighbours"]),
                ("accountant", found["accountant"]),
                ("charged", ", ".join(f"{name} {value}" for name, value in found["charged"].items())),
                ("digest", f"{found['digest']} ({'right' if whole else 'WRONG'})"),
            ]
        )
        steps = [[s["name"], s["mechanism"]["kind"], s["repeats"], s["share"]] for s in found["steps"]]
        print_table(["step", "mechanism", "times", "share"], steps, "It measured nothing.")
    if not whole:
        hint("The digest does not fit the receipt: fetch it again, and ask the curator if it stays so.")
        raise typer.Exit(ExitCode.REFUSED)


# --- watching -----------------------------------------------------------------------------------------------


def watched(job: Job) -> Result:
    """The result of a job, watched until it is there; Ctrl-C leaves the job running."""
    if job.ended:
        return job.result()
    try:
        with _bar(job.facts) as show:
            return job.result(progress=show)
    except KeyboardInterrupt:
        hint(f"\nLeft job {job.id} running; come back with `cairn job {job.id} --watch`.")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except Unreachable:
        raise Unreachable(
            f"the connection broke, but the job goes on: come back with `cairn job {job.id} --watch`"
        ) from None


@contextmanager
def _bar(first: JobFacts) -> Iterator[Show]:
    """A bar on standard error, where that is a terminal."""
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


def _print_result(found: Result, output: Path | None, as_json: bool) -> None:
    if output is not None:
        found.save(output)
        hint(f"Wrote {len(found.centres)} centres to {output}.")
    if as_json:
        print_json(found.facts)
        return
    if output is not None:
        return
    if found.facts.rehearsal:
        hint("A rehearsal on synthetic rows: this says nothing about the data.")
    sizes = [] if found.sizes is None else ["size"]
    rows = [
        [number, *centre, *([] if found.sizes is None else [found.sizes[number].item()])]
        for number, centre in enumerate(found.centres.tolist())
    ]
    if len(found.columns) > 12:
        typer.echo(f"{len(rows)} centres with {len(found.columns)} columns: write them with -o centres.csv")
        return
    print_table(["cluster", *found.columns, *sizes], rows, "There are no centres.")


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (algorithms, plan, submit, jobs, job, cancel, result, receipt):
        app.command()(command)
