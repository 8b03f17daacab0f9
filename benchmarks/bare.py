"""The endpoint beside which submissions are measured: one INSERT and COMMIT, and nothing else."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from fastapi import FastAPI
from sqlalchemy import create_engine, text

__all__ = ["create"]

_INSERT = text("INSERT INTO submitted (key, body, at) VALUES (:key, :body, :at) RETURNING id")


def create() -> FastAPI:
    """The app of one process, for uvicorn."""
    app = FastAPI()
    pool = int(os.environ["BARE_POOL"])
    engine = create_engine(os.environ["BARE_DATABASE_URL"], pool_size=pool, max_overflow=0)

    @app.get("/ready")
    def ready() -> dict[str, str]:
        return {"state": "ready"}

    @app.post("/submit", status_code=202)
    def submit(body: dict[str, Any]) -> dict[str, Any]:
        values = {"key": "key", "body": json.dumps(body), "at": time.time_ns() // 1000}
        with engine.begin() as connection:
            number = connection.execute(_INSERT, values).scalar_one()
        return {"id": number, "state": "queued"}

    return app
