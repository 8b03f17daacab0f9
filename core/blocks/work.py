"""The work of what algorithms have in common, from public numbers.

An operation takes about half a nanosecond of one core. What costs most is not always arithmetic: numbers of
rows that are passed over one by one take fifty times as long as those that are multiplied by a matrix, and
noise is drawn for every number that is released.
"""

from core.data import Domain

#: Operations of a multiply-add in a product of matrices, or of sparse rows with a matrix.
PRODUCT, SPARSE_PRODUCT = 0.1, 2.0
#: Operations to pass over one number of a row, and to release one number with noise.
PASS, VALUE = 5.0, 800.0
#: Entries of a sparse row, of which nothing is declared.
_ENTRIES = 16


def numbers(domain: Domain) -> float:
    """Numbers that are stored of a record."""
    return float(min(domain.dimension, _ENTRIES) if domain.kind == "sparse" else domain.dimension)


def product(domain: Domain, columns: float) -> float:
    """Operations to multiply all records by a matrix of so many columns."""
    each = SPARSE_PRODUCT if domain.kind == "sparse" else PRODUCT
    return each * domain.size * numbers(domain) * columns


def lloyd_rounds(domain: Domain, centres: float, rounds: float) -> float:
    """Operations of rounds in all columns: records go to the nearest centre, and noisy means are released."""
    passed = PASS * domain.size * (2 * numbers(domain) + centres)
    return rounds * (passed + 2 * product(domain, centres) + VALUE * centres * domain.dimension)


def partition_levels(domain: Domain, dimension: int, levels: float) -> float:
    """Operations of levels of partition trees: records are told their cubes, whose children are counted."""
    return levels * (domain.size * (90.0 + 8.0 * dimension) + 2000 * VALUE)


def coverage_picks(picks: float) -> float:
    """Operations of the picks of a coverage loop, whatever the number of records."""
    return 500 * VALUE * picks
