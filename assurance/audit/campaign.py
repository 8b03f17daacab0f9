"""The privacy audits: `python -m assurance audit` runs all parts, or the one that is named, with its options.

python -m assurance audit replays --count 5000   replay runs on generated pairs of neighbours
python -m assurance audit runs --minutes 60      bound the loss of mechanisms and algorithms by counting
"""

from __future__ import annotations

from assurance.audit import neighbours, runs

PARTS = {"replays": neighbours.main, "runs": runs.main}


def main(arguments: list[str]) -> int:
    """Run one part with its options, or all parts; the exit code is 1 if a part found a fault."""
    if arguments and arguments[0] in PARTS:
        return PARTS[arguments[0]](arguments[1:])
    return max(part(arguments) for part in PARTS.values())
