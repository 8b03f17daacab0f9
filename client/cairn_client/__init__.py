"""Python client of a Cairn service, for analysts and curators, and the command `cairn`.

>>> from cairn_client import Client
>>> client = Client("http://127.0.0.1:8000", key)
>>> result = client.dataset("visits").cluster(k=3, epsilon=1)
>>> result.centres, result.sizes
"""

from cairn_client import errors
from cairn_client.access import AccessRequest
from cairn_client.client import Client, ball, box, ids, sparse
from cairn_client.columns import Column
from cairn_client.dataset import Dataset
from cairn_client.errors import *  # noqa: F403  the whole tree
from cairn_client.findings import Findings
from cairn_client.job import Job
from cairn_client.receipt import is_whole, verify
from cairn_client.result import Result
from cairn_client.wire import Amount

__all__ = [
    "AccessRequest",
    "Amount",
    "Client",
    "Column",
    "Dataset",
    "Findings",
    "Job",
    "Result",
    "ball",
    "box",
    "ids",
    "is_whole",
    "sparse",
    "verify",
]
__all__ += [
    name
    for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, errors.CairnError)
]
