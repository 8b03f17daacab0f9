"""The web application: routes, error handlers and middleware."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from fastapi import APIRouter, FastAPI

from service import monitoring
from service.datasets import budget_routes, column_routes, preview_routes
from service.datasets import routes as dataset_routes
from service.datasets.catalogue import routes as catalogue_routes
from service.datasets.periods import routes as period_routes
from service.datasets.populations import routes as population_routes
from service.datasets.public_rows import routes as public_rows_routes
from service.datasets.sites import routes as site_routes
from service.http import documentation, pages, problems, public_keys
from service.http.context import Context
from service.http.head import HeadAsGet
from service.http.limits import RequestLimits
from service.http.route_limits import LimitsOfRoutes
from service.jobs import bounds_routes, ended_grants, request_routes
from service.jobs import routes as job_routes
from service.jobs.results import routes as result_routes
from service.operations import tracing
from service.operations.clock import Clock, SystemClock
from service.operations.database import Database
from service.operations.settings import Settings
from service.people import routes as people_routes
from service.people import sign_in_routes
from service.people.access_events import AccessEvents
from service.people.authentication import identify

_DESCRIPTION = """Differentially private clustering for a trusted data curator.

Send a key as `Authorization: Bearer <key>`. Errors are `application/problem+json` (RFC 9457); each `type`
is an address under which the problem is explained. Amounts of epsilon, rho and delta are exact decimals,
written as strings. HEAD is answered wherever GET is."""


def create_app(
    settings: Settings,
    *,
    database: Database | None = None,
    clock: Clock | None = None,
    extra_routers: Sequence[APIRouter] = (),
) -> FastAPI:
    """Create the app of one API process; `extra_routers` come first, so that a console can take `/`."""
    opened = database or Database(settings.database_address(), pool=settings.database_pool)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        _ = context.signing_keys  # a process without them should not start
        async with (
            monitoring.storing_requests(context),
            context.audit_batches.writing(),
            ended_grants.withdrawing(context),
        ):
            yield
        context.helper.close()
        if database is None:
            opened.dispose()

    app = FastAPI(
        title="Cairn",
        version=version("cairn-dp"),
        description=_DESCRIPTION,
        openapi_url=None,  # FastAPI would render the description for each request
        docs_url=None,  # FastAPI's page would fetch its scripts from another host
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        telemetry=tracing.OFF,
    )
    context = Context(settings, opened, clock or SystemClock())
    app.state.context = context
    for router in (
        *extra_routers,
        job_routes.router,
        result_routes.router,
        bounds_routes.router,
        request_routes.router,
        dataset_routes.router,
        budget_routes.router,
        catalogue_routes.router,
        period_routes.router,
        population_routes.router,
        site_routes.router,
        public_rows_routes.router,
        preview_routes.router,
        column_routes.router,
        people_routes.router,
        sign_in_routes.router,
        monitoring.router,
        public_keys.router,
        pages.router,
    ):
        app.router.routes.extend(router.routes)  # including a router would build its routes again
    problems.install(app)
    documentation.install(app)
    app.add_middleware(
        RequestLimits,
        settings=settings,
        authenticate=partial(identify, context),
        limits_of=LimitsOfRoutes(app.routes),
        access_events=AccessEvents(context),
    )
    app.add_middleware(HeadAsGet)  # the outermost
    return app
