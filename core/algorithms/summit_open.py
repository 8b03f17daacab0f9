"""Tuned constants of the house algorithm where a request leaves k open (`summit_open.md`)."""

#: Share of the histogram of all distances, from which the loss is estimated.
POOLED = 0.03
POOLED_BINS, POOLED_FACTOR = 60, 1.1
#: Fine clusters hold at least `FINE_RECORDS / mu` records on average: the noise in smaller ones makes the
#: answer for every k worse. There are at least `LEAST_FINE`, to merge from.
FINE_RECORDS, LEAST_FINE = 40.0, 16
#: Fine clusters for each one of the largest k: a few more than asked for, so that merging can drop those that
#: noise has misplaced.
FINE_PER_CLUSTER = 9 / 8
#: Made-up rows have all columns, and so many values must fit in memory.
MOST_OPEN_COLUMNS = 4096
#: Values in the centres for all k of a range together; each is kept with an interval.
MOST_OPEN_VALUES = 1 << 21

#: Fine clusters are many and settle slowly, and with plenty of records in few columns noise in their means
#: is the lesser evil. So moves of all rounds but the last of each kind are longer than measured.
LONG_EXPLORE, LONG_REFINE = 1.6, 1.8

#: Made-up rows of explored clusters, rounds in which they are fitted, and rounds of Lloyd's algorithm on them
#: before fine clusters are refined: more than that follow the model rather than the records.
SETTLE_ROWS, SETTLE_FITS, SETTLE_ROUNDS = 6000, 3, 10
#: A centre that would move farther than this share of the way to the next one stays where it is.
SETTLE_REACH = 0.5
