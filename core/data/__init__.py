"""Public facts about a dataset, the encoding of its rows, and sources of chunks."""

from core.columns.base import Column
from core.columns.boolean import Boolean
from core.columns.category import Category
from core.columns.dates import Date
from core.columns.datetimes import DateTime
from core.columns.number import Number
from core.columns.reading import MISSING_CODE, Fault, Reading
from core.columns.registry import column_from_json
from core.columns.text import Text
from core.data.base import MAX_RECORDS
from core.data.dense import Dense
from core.data.domain import Domain, Ids, Sparse, Stored, clip_encoded, domain_from_json
from core.data.narrowing import NarrowedSource, bounded_columns, narrowed
from core.data.partition import Partition, PartitionFacts
from core.data.public_rows import PublicRowFacts, PublicRows, read_public_rows
from core.data.sites import SiteFacts, Sites, choose_sites, read_sites
from core.data.source import ArraySource, Chunk, ChunkLoader, DataSource, SparseSource, TableSource
from core.data.tables.geometry import Geometry
from core.data.tables.table import Table
from core.kernels.rows import UNITS

__all__ = [
    "MAX_RECORDS",
    "MISSING_CODE",
    "UNITS",
    "ArraySource",
    "Boolean",
    "Category",
    "Chunk",
    "ChunkLoader",
    "Column",
    "DataSource",
    "Date",
    "DateTime",
    "Dense",
    "Domain",
    "Fault",
    "Geometry",
    "Ids",
    "NarrowedSource",
    "Number",
    "Partition",
    "PartitionFacts",
    "PublicRowFacts",
    "PublicRows",
    "Reading",
    "SiteFacts",
    "Sites",
    "Sparse",
    "SparseSource",
    "Stored",
    "Table",
    "TableSource",
    "Text",
    "bounded_columns",
    "choose_sites",
    "clip_encoded",
    "column_from_json",
    "domain_from_json",
    "narrowed",
    "read_public_rows",
    "read_sites",
]
