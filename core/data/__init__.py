"""Public facts about a dataset, the encoding of its rows, and sources of chunks."""

from core.data.base import MAX_RECORDS
from core.data.dense import Dense
from core.data.domain import Domain, Ids, Sparse, clip_encoded, domain_from_json
from core.data.sites import SiteFacts, Sites, choose_sites, read_sites
from core.data.source import ArraySource, Chunk, ChunkLoader, DataSource, SparseSource
from core.kernels.rows import UNITS

__all__ = [
    "MAX_RECORDS",
    "UNITS",
    "ArraySource",
    "Chunk",
    "ChunkLoader",
    "DataSource",
    "Dense",
    "Domain",
    "Ids",
    "SiteFacts",
    "Sites",
    "Sparse",
    "SparseSource",
    "choose_sites",
    "clip_encoded",
    "domain_from_json",
    "read_sites",
]
