"""Sources cut encoded rows into chunks, in memory or in a file, and the chunks are the same."""

import gc
import pickle
from pathlib import Path

import numpy as np
import pytest

from core.data import ArraySource, DataSource, Dense, source


def rows_of(made: DataSource) -> list[np.ndarray]:
    return [np.asarray(loader().rows) for loader in made.loaders()]


@pytest.mark.parametrize("count", [1, 99, 100, 250])
def test_large_arrays_go_to_a_file_and_come_back_the_same(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = Dense.box(-3, 3, dimension=4, size=1000)
    rows = np.random.default_rng(count).normal(size=(count, 4))
    in_memory = ArraySource(domain, rows, chunk_rows=100)
    monkeypatch.setattr(source, "_IN_MEMORY_BYTES", 0)
    in_file = ArraySource(domain, rows, chunk_rows=100)
    for one, other in zip(rows_of(in_memory), rows_of(in_file), strict=True):
        assert one.dtype == other.dtype == np.int16
        assert np.array_equal(one, other)
    assert [loader().first for loader in in_file.loaders()] == list(range(0, count, 100))
    assert len({loader.key for loader in in_file.loaders()}) == len(in_file.loaders())


def test_a_loader_of_a_file_pickles_by_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_IN_MEMORY_BYTES", 0)
    domain = Dense.box(-3, 3, dimension=4, size=1000)
    made = ArraySource(domain, np.ones((500, 4)))
    (loader,) = made.loaders()
    assert len(pickle.dumps(loader)) < 1000
    assert np.array_equal(pickle.loads(pickle.dumps(loader))().rows, np.asarray(loader().rows))


def test_the_file_goes_with_its_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(source, "_IN_MEMORY_BYTES", 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = ArraySource(Dense.box(-3, 3, dimension=4, size=1000), np.ones((500, 4)))
    assert len(list(tmp_path.rglob("encoded"))) == 1
    del made
    gc.collect()
    assert list(tmp_path.iterdir()) == []
