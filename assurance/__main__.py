"""Run a campaign: `python -m assurance audit`, `chaos`, `fuzz`, `soak`, `mutants`, `months` or `alerts`.

Each campaign is a module with a function `main`, which takes the options and returns the exit code.
"""

from __future__ import annotations

import importlib
import sys

CAMPAIGNS = {
    "audit": "assurance.audit.campaign",
    "chaos": "assurance.chaos.campaign",
    "fuzz": "assurance.fuzz.campaign",
    "soak": "assurance.chaos.soak",
    "mutants": "assurance.mutants.campaign",
    "months": "assurance.months",
    "alerts": "assurance.alerts",
}


def main(arguments: list[str]) -> int:
    """Run the campaign that the first argument names."""
    if not arguments or arguments[0] not in CAMPAIGNS:
        sys.stderr.write(f"usage: python -m assurance {{{','.join(CAMPAIGNS)}}} [options]\n")
        return 2
    code: int = importlib.import_module(CAMPAIGNS[arguments[0]]).main(arguments[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
