"""The route that shows a curator the first lines of a file before its dataset is described."""

from functools import partial

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response

from service.datasets.ingest.preview import MOST_ROWS, preview
from service.datasets.ingest.spool import Spool
from service.datasets.routes import FILE, receive
from service.http.context import Services
from service.http.json_limits import StrictRoute
from service.http.limits import Pace
from service.http.problems import answers
from service.people.authentication import Curator

router = APIRouter(prefix="/v1/previews", tags=["datasets"], route_class=StrictRoute)
_LINES = {
    "description": f"the names of the columns and at most {MOST_ROWS} rows, every field in quotes",
    "content": {"text/csv": {"schema": {"type": "string"}, "example": '"age","sex"\n"41","female"\n'}},
}


@router.post(
    "",
    response_class=Response,
    responses={**answers("bad-format", "too-large"), 200: _LINES},
    openapi_extra=FILE,
)
async def preview_file(request: Request, caller: Curator, context: Services) -> Response:
    """Get the first lines of a file as CSV, to describe its columns; nothing of it is stored.

    Of a spreadsheet it is the first sheet; long texts are cut.
    """
    settings = context.settings
    with Spool(settings.spool_directory, settings.max_upload_bytes) as spool:
        await receive(request, spool, Pace(settings))
        read = partial(preview, spool, request.headers.get("content-type", ""), settings)
        text = await to_thread.run_sync(read, limiter=context.uploads)
    return Response(text, media_type="text/csv")
