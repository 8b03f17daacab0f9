"""Secret coins that decide which records take part in a coverage loop."""

import hashlib

import numpy as np
import numpy.typing as npt

#: Coins that one call of SHAKE-256 yields.
_COINS_PER_BLOCK = 4096


class Coins:
    """A secret coin for each record, by its ordinal: the same in every round, chunking and retry of a task.

    Only the loop has the key. It appears in no repr and is pickled only for chunk tasks.
    """

    __slots__ = ("_key", "keep")

    def __init__(self, key: bytes, keep: int) -> None:
        """A record stays with probability keep / 2^64."""
        if len(key) != 32 or not 0 <= keep <= 1 << 64:
            raise ValueError("coins need a key of 32 bytes and a chance of at most 2^64")
        self._key = key
        self.keep = keep

    def __repr__(self) -> str:
        return "Coins(secret)"

    @property
    def name(self) -> str:
        """Identifies a loop in a cache without revealing anything about its coins."""
        return hashlib.sha256(b"name of a coverage loop" + self._key).hexdigest()

    def kept(self, first: int, count: int) -> npt.NDArray[np.bool_]:
        """Mask of the records with ordinals first .. first + count - 1 that take part."""
        if self.keep == 1 << 64:
            return np.ones(count, dtype=bool)
        blocks = range(first // _COINS_PER_BLOCK, (first + count - 1) // _COINS_PER_BLOCK + 1)
        words = np.frombuffer(b"".join(map(self._block, blocks)), dtype="<u8")
        skipped = first % _COINS_PER_BLOCK
        kept: npt.NDArray[np.bool_] = words[skipped : skipped + count] < np.uint64(self.keep)
        return kept

    def _block(self, number: int) -> bytes:
        return hashlib.shake_256(self._key + number.to_bytes(8, "little")).digest(8 * _COINS_PER_BLOCK)
