"""The work of what algorithms have in common, from public numbers.

An operation takes about half a nanosecond of one core. What costs most is not always arithmetic: numbers of
rows that are passed over one by one take fifty times as long as those that are multiplied by a matrix, each
record takes additional time, and noise is drawn for every number that is released. The numbers here were
read off profiles, stage by stage (`docs/performance.md`).
"""

from core.data import Domain

PRODUCT = 0.1  # Operations of a multiply-add in a product of matrices.
SPARSE_PRODUCT = 1.0  # Operations of a multiply-add in a product of sparse rows with a matrix.
PASS = 5.0  # Operations to pass over one number of a row.
ENTRY = 40.0  # Operations to pass over an entry of a sparse row.
VALUE = 800.0  # Operations to release one number with noise.
RECORD = 140.0  # Operations for a record in a round of Lloyd's algorithm, whatever its width.
CENTRE = 3.0  # Operations to compare a record with a centre.
_ENTRIES = 16  # Entries of a sparse row, of which nothing is declared.


def numbers(domain: Domain) -> float:
    """Numbers that are stored of a record."""
    return float(min(domain.dimension, _ENTRIES) if domain.kind == "sparse" else domain.dimension)


def projection(domain: Domain, columns: float) -> float:
    """Operations to project all records to this many columns."""
    if domain.kind == "sparse":
        read = numbers(domain) * (ENTRY / 2 + SPARSE_PRODUCT * columns)
    else:
        read = domain.dimension * (PASS + PRODUCT * columns)
    return domain.size * (RECORD + read + PASS * columns)


def dense_rounds(size: float, columns: float, centres: float, rounds: float) -> float:
    """Operations of rounds of Lloyd's algorithm on dense rows, without noise."""
    return rounds * size * (RECORD + PASS * columns + CENTRE * centres + PRODUCT * columns * centres)


def lloyd_rounds(domain: Domain, centres: float, rounds: float) -> float:
    """Operations of rounds in all columns: records go to the nearest centre, and noisy means are released."""
    if domain.kind == "sparse":
        each = domain.size * numbers(domain) * (ENTRY + SPARSE_PRODUCT * centres)
    else:
        each = dense_rounds(domain.size, domain.dimension, centres, 1)
    return rounds * (each + VALUE * centres * domain.dimension)


def partition_levels(domain: Domain, dimension: int, levels: float) -> float:
    """Operations of levels of partition trees: records are told their cubes, whose children are counted."""
    return levels * (domain.size * (20.0 + 9.0 * dimension) + 2000 * VALUE)


def coverage_picks(picks: float) -> float:
    """Operations of the picks of a coverage loop, whatever the number of records."""
    return 500 * VALUE * picks
