"""Run a benchmark: `python -m benchmarks NAME`, one name for each module here that offers one.

A module becomes a sub-command by defining a function `main` (its parameters are the options, its docstring
the help) or, where it needs sub-commands of its own, a `typer.Typer` called `app`. Other modules are helpers.
"""

import importlib
import pkgutil

import typer

import benchmarks


def commands() -> typer.Typer:
    """Every benchmark there is, as one command line."""
    found = typer.Typer(no_args_is_help=True, add_completion=False, help="Benchmarks of Cairn.")

    @found.callback()
    def several() -> None:
        """Keep the name of a sub-command even while there is only one."""

    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name == "__main__":
            continue
        loaded = importlib.import_module(f"benchmarks.{module.name}")
        if hasattr(loaded, "app"):
            found.add_typer(loaded.app, name=module.name)
        elif hasattr(loaded, "main"):
            found.command(name=module.name)(loaded.main)
    return found


if __name__ == "__main__":
    commands()(prog_name="python -m benchmarks")
