"""Shared by all commands: exit codes, error messages in one sentence, common arguments and options."""

from collections.abc import Callable
from enum import IntEnum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cairn_client import errors
from cairn_client.client import Client
from cairn_client.commands.printing import hint
from cairn_client.wire import amount_text


class ExitCode(IntEnum):
    """Exit codes of `cairn`, documented in docs/commands.md."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_SIGNED_IN = 3
    NOT_FOUND = 4
    BUDGET = 5
    AWAY = 6
    NO_RESULT = 7
    BAD_DATA = 8
    INTERRUPTED = 130


_CODES: list[tuple[tuple[type[BaseException], ...], ExitCode]] = [
    ((errors.NotSignedIn, errors.Unauthorized, errors.Forbidden), ExitCode.NOT_SIGNED_IN),
    ((errors.NotFound,), ExitCode.NOT_FOUND),
    ((errors.BudgetExhausted, errors.PopulationExhausted), ExitCode.BUDGET),
    (
        (
            errors.Unreachable,
            errors.NotCairn,
            errors.Unavailable,
            errors.RateLimited,
            errors.TooManyQueued,
            errors.WaitTimeout,
        ),
        ExitCode.AWAY,
    ),
    ((errors.JobFailed, errors.JobCancelled), ExitCode.NO_RESULT),
    ((errors.BadFormat, errors.BadRows, errors.DigestMismatch, errors.TooLarge), ExitCode.BAD_DATA),
]


def exit_code(error: BaseException) -> ExitCode:
    """The exit code for an error."""
    return next((code for kinds, code in _CODES if isinstance(error, kinds)), ExitCode.REFUSED)


class Group(TyperGroup):
    """A command with sub-commands that reports an error in one sentence, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command."""
        try:
            return super().invoke(ctx)
        except errors.CairnError as error:
            code = exit_code(error)
            hint(sentence(error))
        except KeyboardInterrupt:
            code = ExitCode.INTERRUPTED
            hint("cairn: interrupted.")
        except (OSError, ValueError) as error:
            code = ExitCode.REFUSED
            hint(sentence(error))
        raise typer.Exit(code)


def sentence(error: Exception) -> str:
    """Return what went wrong and what to do next, in the words of the command."""
    text = str(error)
    if isinstance(error, errors.Unauthorized):
        text += ". Then sign in again with `cairn login`"
    elif isinstance(error, errors.BadFormat | errors.BadRows):
        text = text.replace("leave bad rows out", "leave bad rows out with `--on-bad-row drop`")
        text = text.replace(" Declare that if it may be public, and upload again", "")
    elif isinstance(error, errors.InvalidRequest) and "set of public sites" in text:
        text += "; choose one with --sites (`cairn sites list` shows them)"
    elif isinstance(error, errors.NotFound):
        text = text.replace("POST /v1/jobs", "`cairn submit`")
        text = text.replace("POST /v1/principals", "`cairn principals add NAME`")
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    return f"cairn: {text.rstrip('.')}."


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _amount(text: str) -> str:
    try:
        amount = amount_text(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if amount.startswith("-"):
        raise typer.BadParameter(f"{text!r} is below zero; write a number such as 0.5")
    return amount


def amount_option(words: str) -> Any:
    """An option for an amount of epsilon or delta."""
    return typer.Option(help=words, parser=_amount, metavar="NUMBER")


def _names(ask: Callable[[Client], list[str]]) -> Callable[[str], list[str]]:
    """Complete names in the shell; complete nothing if the service does not answer quickly."""

    def complete(incomplete: str) -> list[str]:
        try:
            with Client(timeout=2.0, patience=0.0) as signed_in:
                return [name for name in ask(signed_in) if name.startswith(incomplete)]
        except errors.CairnError:
            return []

    return complete


complete_datasets = _names(lambda signed_in: [each.name for each in signed_in.datasets()])
complete_jobs = _names(lambda signed_in: [each.id for each in signed_in.jobs(limit=20)])

DatasetName = Annotated[
    str,
    typer.Argument(help="Name of the dataset.", metavar="DATASET", autocompletion=complete_datasets),
]
JobId = Annotated[
    str,
    typer.Argument(
        help="Id of the job, or its first characters; the newest job by default.",
        metavar="JOB",
        autocompletion=complete_jobs,
    ),
]
