"""The route that lists the kinds of columns that a table can have."""

from fastapi import APIRouter

from service.datasets import columns
from service.datasets.columns import ColumnKindList
from service.http.json_limits import StrictRoute
from service.http.problems import answers
from service.people.authentication import Anyone

router = APIRouter(prefix="/v1/column-kinds", tags=["datasets"], route_class=StrictRoute)


@router.get("", responses=answers())
def list_column_kinds(_caller: Anyone) -> ColumnKindList:
    """List the kinds of columns of a table, with the facts to declare of each as JSON Schema."""
    return columns.kinds()
