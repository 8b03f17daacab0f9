"""The web application: routes, problems and middleware, put together in one place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import APIRouter, FastAPI

from service.api import budgets, datasets, jobs, ops, principals, problems, sites
from service.api.context import Context
from service.api.shield import Shield
from service.clock import Clock, SystemClock
from service.db import Database
from service.settings import Settings

__all__ = ["create_app"]

_DESCRIPTION = """Differentially private clustering for a trusted data curator.

Send a key as `Authorization: Bearer <key>`. Errors are `application/problem+json` (RFC 9457); each `type`
is an address under which the problem is explained. Amounts of epsilon, rho and delta are exact decimals,
written as strings."""


def create_app(
    settings: Settings,
    *,
    database: Database | None = None,
    clock: Clock | None = None,
    extra_routers: Sequence[APIRouter] = (),
) -> FastAPI:
    """The app of one API process; `extra_routers` come first, so that a console can take `/`."""
    opened = database or Database(settings.database_address(), pool=settings.database_pool)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        if database is None:
            opened.dispose()

    app = FastAPI(
        title="Cairn",
        version=version("cairn-dp"),
        description=_DESCRIPTION,
        openapi_url="/openapi.json",
        docs_url=None,  # the framework's page would fetch its scripts from another host
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.state.context = Context(settings, opened, clock or SystemClock())
    for router in (
        *extra_routers,
        jobs.router,  # the busiest first: routes are tried in this order
        datasets.router,
        budgets.router,
        sites.router,
        principals.router,
        ops.router,
    ):
        app.include_router(router)
    problems.install(app)
    app.add_middleware(Shield, settings=settings)
    return app
