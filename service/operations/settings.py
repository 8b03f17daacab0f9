"""Settings of the service, read from the environment (`CAIRN_...`); docs/operations.md lists each one."""

from __future__ import annotations

import os
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

_PLACEHOLDERS = {"", "cairn", "changeme", "change-me", "default", "demo", "password", "postgres", "secret"}
#: Package of the extra `otel` that sends traces.
_EXPORTER = "opentelemetry-exporter-otlp-proto-http"
KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


class Settings(BaseSettings):
    """Everything that can be set, with its default and its reason."""

    model_config = SettingsConfigDict(
        env_prefix="CAIRN_", extra="ignore", frozen=True, use_attribute_docstrings=True
    )

    mode: Literal["development", "production"] = "development"
    """`production` refuses placeholder secrets."""
    database_url: str = "sqlite:///var/cairn.sqlite3"
    """Address of the database: `sqlite:///path` or `postgresql+psycopg://user:password@host/name`."""
    database_password_file: Path | None = None
    """File that holds the database password, to keep it out of the environment."""
    database_pool: int = Field(default=10, ge=1, le=200)
    """Database connections one process keeps open at most."""
    host: str = "127.0.0.1"
    """Address the API listens on."""
    port: int = Field(default=8000, ge=0, le=65535)
    """Port the API listens on."""
    public_url: str = ""
    """Address under which people reach the service, for printed commands; default http://host:port."""
    forwarded_allow_ips: str = "127.0.0.1"
    """Proxies whose X-Forwarded-* headers are believed, comma separated."""
    api_processes: int = Field(default=1, ge=1, le=64)
    """API processes that `serve` starts."""
    worker_processes: int = Field(default=1, ge=0, le=256)
    """Worker processes that `serve` and `worker` start; 0 with `serve` means none."""
    metrics_token: SecretStr = SecretStr("")
    """Bearer token a Prometheus scraper may use for /metrics; empty: curators and operators only."""
    metrics_token_file: Path | None = None
    """File that holds the scrape token."""
    signing_key_file: Path | None = None
    """File of the signing key; default: `signing-key.pem` next to an SQLite database, else in `var`."""
    heads_file: Path | None = None
    """File to which signed ends of ledgers and audit log are appended; default: beside the signing key."""
    spool_directory: Path | None = None
    """Directory for uploads while they are read (nameless files); default: the system's own."""
    cache_directory: Path = Path("var/cache")
    """Directory in which workers keep encoded chunks between passes, readable by them alone."""
    cache_bytes: int = Field(default=4 * GIB, ge=0)
    """Most the chunk cache of one machine holds, in bytes; 0 switches it off."""
    view_cache_bytes: int = Field(default=384 * MIB, ge=0)
    """Memory a worker process may keep what it derived from chunks in, in bytes."""
    chunk_bytes: int = Field(default=32 * MIB, ge=4096, le=256 * MIB)
    """Encoded size one stored chunk aims at, in bytes: a task of about a tenth of a second."""
    max_body_bytes: int = Field(default=MIB, ge=1024)
    """Largest JSON body, in bytes; more answers 413."""
    max_upload_bytes: int = Field(default=16 * GIB, ge=1024)
    """Largest upload, in bytes, packed and unpacked; more answers 413."""
    draft_days: float = Field(default=7.0, gt=0)
    """Days after which uploaded rows that nobody sealed are deleted."""
    max_sites_bytes: int = Field(default=64 * MIB, ge=1024)
    """Largest site set, in bytes; more answers 413."""
    body_idle_seconds: float = Field(default=30.0, gt=0)
    """Longest pause in a request's body before it is given up."""
    body_bytes_per_second: float = Field(default=4096.0, gt=0)
    """Slowest a request's body may arrive, beyond the longest pause, before it is given up."""
    header_seconds: float = Field(default=20.0, gt=0)
    """Longest the head of a request may take before its connection is closed."""
    caller_rate: float = Field(default=100.0, gt=0)
    """Allowance of a caller per second and API process; a request uses 1, a plan or job 20, each 64 KiB 1."""
    caller_burst: float = Field(default=1000.0, gt=0)
    """Allowance that a caller can save up."""
    caller_requests_at_once: int = Field(default=16, ge=1)
    """Requests of one caller that an API process handles at once; more are answered 429."""
    keyless_rate: float = Field(default=100.0, gt=0)
    """Requests without a key (pages, health checks) per second, API process and address; four times as many
    in all. Further ones wait for up to 2 seconds."""
    session_hours: float = Field(default=12.0, gt=0)
    """Hours after which a browser must sign in again, unless the person asked to stay signed in."""
    remembered_session_days: float = Field(default=30.0, ge=0)
    """Days for which a browser may stay signed in when the person asks for it; 0 does not allow it."""
    providers_file: Path | None = None
    """TOML file of the identity providers that people may sign in by."""
    provider_minutes: float = Field(default=60.0, gt=0)
    """Minutes for which a provider's word counts; then a browser goes back to it, and a token must be new."""
    max_connections: int = Field(default=1000, ge=10)
    """Connections one API process holds open; more are answered 503."""
    max_queued_jobs: int = Field(default=20, ge=1)
    """Jobs one analyst may have queued or running."""
    max_open_requests: int = Field(default=20, ge=1)
    """Requests for access that one person may have open or make in a day."""
    second_epsilon: Decimal | None = Field(default=None, gt=0, le=1000, decimal_places=12)
    """Epsilon above which a grant or a total needs a second curator's yes; none: one curator decides."""
    second_delta: Decimal = Field(default=Decimal("0.00001"), ge=0, lt=1, decimal_places=18)
    """Delta above which it needs a second curator's yes, if an epsilon is set."""
    rehearsals_per_minute: int = Field(default=10, ge=1)
    """Rehearsals one analyst may submit in a minute."""
    rehearsal_rows: int = Field(default=20_000, ge=1)
    """Most synthetic rows a rehearsal draws."""
    rehearsal_operations: float = Field(default=5e11, gt=0)
    """Most arithmetic operations a rehearsal may need; more is refused as `work-limit`."""
    rehearsal_seconds: float = Field(default=120.0, gt=0)
    """Longest a rehearsal may run before it is ended as failed; at most 10 seconds or twice its plan."""
    rehearsal_days: float = Field(default=1.0, gt=0)
    """Days after which results of rehearsals are deleted."""
    rehearsal_bytes: int = Field(default=256 * MIB, ge=0)
    """Bytes that results of one analyst's rehearsals may take; the oldest are deleted when another starts."""
    max_operations: float = Field(default=1e14, gt=0)
    """Most arithmetic operations a plan may need; more is refused as `work-limit`."""
    max_memory_bytes: int = Field(default=4 * GIB, gt=0)
    """Most memory a worker may hold before its job is ended, in bytes; never more than its share of the
    container's limit. A plan may need 512 MiB and the view cache less; more is refused as `work-limit`."""
    max_released_values: int = Field(default=500_000, ge=1000)
    """Most coordinates of centres that one clustering may release (k times columns); more is refused as
    `work-limit`."""
    transcript_bytes: int = Field(default=64 << 20, ge=0)
    """Longest transcript that is stored with a result; receipts of longer ones say that it was not kept."""
    job_seconds: float = Field(default=3600.0, gt=0)
    """Longest a job may run before it is ended as failed; one that is planned to run longer is refused."""
    release_margin: float = Field(default=1.5, ge=1, le=100)
    """Time after which the result of a job appears, as a multiple of the estimate of its run time."""
    lease_seconds: float = Field(default=30.0, gt=0)
    """A worker that has not been heard of for this long is taken for dead."""
    poll_seconds: float = Field(default=0.2, gt=0)
    """Shortest pause between looks into an empty queue."""
    poll_most_seconds: float = Field(default=2.0, gt=0)
    """Longest pause between looks into an empty queue."""
    stop_seconds: float = Field(default=4.0, ge=0)  # Docker kills a container after 10
    """Time after SIGTERM until a worker gives its job back; the API takes half of it at most."""
    retention_days: int = Field(default=0, ge=0)
    """Days until `prune` deletes the plans of cancelled jobs and rehearsals; 0 keeps them."""
    access_days: int = Field(default=365, ge=0)
    """Days until `prune` deletes from the audit log who read what, signed in or was refused; 0 keeps it."""
    health_directory: Path | None = None
    """Directory in which each worker process touches a file while it works, for `cairn-server health`."""
    default_page: int = Field(default=50, ge=1)
    """Entries on a page of a list when the request names no limit."""
    log_format: Literal["json", "text"] = "text"
    """Form of log lines."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe log line that is written."""
    traces_url: str = ""
    """Address of a collector of traces (OTLP), such as `http://collector:4318/v1/traces`; empty: none."""
    cluster: str = ""
    """Address of a Dask scheduler (`tls://host:8786`); empty: chunk tasks run in the worker."""
    cluster_seconds: float = Field(default=60.0, gt=0)
    """Longest a job waits for a task on the cluster, if it is not planned to take longer, before its own
    process does the rest."""

    @field_validator("port", mode="before")
    @classmethod
    def _ignore_service_link(cls, value: object) -> object:
        """Use the default where Kubernetes has set CAIRN_PORT for a Service that is named `cairn`."""
        link = isinstance(value, str) and value.startswith(("tcp://", "udp://", "sctp://"))
        return cls.model_fields["port"].default if link else value

    @field_validator("traces_url")
    @classmethod
    def _require_opentelemetry(cls, value: str) -> str:
        """Refuse an address that nothing can be sent to."""
        if value and urlsplit(value).scheme not in ("http", "https"):
            raise ValueError("name an address such as http://collector:4318/v1/traces, or none")
        try:
            if value:
                version(_EXPORTER)
        except PackageNotFoundError:
            raise ValueError(
                "traces need OpenTelemetry: install `cairn-dp[otel]`, or name no address"
            ) from None
        return value

    @model_validator(mode="after")
    def _refuse_default_secrets(self) -> Settings:
        if self.mode != "production":
            return self
        parts = urlsplit(self.database_url)
        if parts.hostname and not self.database_password_file and (parts.password or "") in _PLACEHOLDERS:
            raise ValueError(
                "production mode refuses a placeholder database password: put a random one into the file "
                "that CAIRN_DATABASE_PASSWORD_FILE names"
            )
        token = self.metrics_token.get_secret_value()
        if token and (token.lower() in _PLACEHOLDERS or len(token) < 24):
            raise ValueError(
                "production mode refuses a guessable CAIRN_METRICS_TOKEN: use at least 24 random characters, "
                "or leave it empty"
            )
        if self.cluster.startswith("tcp:"):
            raise ValueError(
                "production mode refuses a cluster without TLS: name it as tls://host:8786 in CAIRN_CLUSTER"
            )
        return self

    @property
    def address(self) -> str:
        """The address to print for people."""
        return self.public_url or f"http://{self.host}:{self.port}"

    @property
    def uses_sqlite(self) -> bool:
        """True when the database is a file of this machine."""
        return self.database_url.startswith("sqlite")

    def signing_key_path(self) -> Path:
        """The file that holds the signing key."""
        if self.signing_key_file:
            return self.signing_key_file
        folder = Path(self.database_url.partition("///")[2]).parent if self.uses_sqlite else Path("var")
        return folder / "signing-key.pem"

    def heads_path(self) -> Path:
        """The file of the signed heads."""
        return self.heads_file or self.signing_key_path().with_name("heads.jsonl")

    def health_file(self, process: int) -> Path | None:
        """The file that a worker process touches to show that it is not stuck."""
        return self.health_directory / f"worker-{process}" if self.health_directory else None

    def scrape_token(self) -> str:
        """The token of the scraper, or an empty string."""
        if self.metrics_token_file:
            return self.metrics_token_file.read_text().strip()
        return self.metrics_token.get_secret_value()

    def database_address(self) -> str:
        """The database's address with the password of the secret file filled in."""
        if not self.database_password_file:
            return self.database_url
        from sqlalchemy.engine import make_url

        password = self.database_password_file.read_text().strip()
        return make_url(self.database_url).set(password=password).render_as_string(hide_password=False)

    def as_environment(self) -> dict[str, str]:
        """The environment under which a child process reads these same settings."""
        environment = dict(os.environ)
        for name, value in self:
            if value is None:
                continue
            text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
            environment[f"CAIRN_{name.upper()}"] = text
        return environment
