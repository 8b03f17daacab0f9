"""Tables of people, how they sign in (keys, identities of providers), and their sessions."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, String, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column, relationship

from service.operations.states import Role
from service.operations.tables.columns import Base, Id, Key, Name, PrincipalId, Sha256, one_of


class Principal(Base):
    """A person or a program, who may have keys, identities of providers, or both."""

    __tablename__ = "principals"
    audited = True

    id: Mapped[Id]
    name: Mapped[Name] = mapped_column(unique=True)
    role: Mapped[Role]
    created_by: Mapped[PrincipalId | None]
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]
    #: When keys stop working, unless a provider vouches for the person again; None: never for that reason.
    keys_end_at: Mapped[datetime | None]

    __table_args__ = (one_of("role", Role),)


class ApiKey(Base):
    """A key, of which only the SHA-256 is kept."""

    __tablename__ = "api_keys"
    audited = True

    id: Mapped[Id]
    principal_id: Mapped[PrincipalId] = mapped_column(index=True)
    handle: Mapped[str] = mapped_column(String(16), unique=True)
    digest: Mapped[Sha256]
    label: Mapped[Name]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    #: Names of the datasets that it is limited to; None: all that its holder may use.
    datasets: Mapped[list[Any] | None]
    #: It makes no request that changes anything.
    read_only: Mapped[bool] = mapped_column(server_default=false())


class Identity(Base):
    """A person's identity at a provider: a second way to sign in, apart from keys."""

    __tablename__ = "identities"
    harmless = "lets somebody in as the database does with a new key; what they do is recorded"

    id: Mapped[Id]
    principal_id: Mapped[PrincipalId] = mapped_column(index=True)
    #: The provider's issuer, and the person's `sub` there.
    issuer: Mapped[str] = mapped_column(String(255))
    subject: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    #: When the provider last vouched for the person; None: linked, and not used yet.
    confirmed_at: Mapped[datetime | None]
    #: When the person was last refused, if that was later: sessions and tokens of before are over.
    refused_at: Mapped[datetime | None]

    __table_args__ = (UniqueConstraint("issuer", "subject"),)


class BrowserSession(Base):
    """A browser that is signed in, with a key or by an identity; only the SHA-256 of its cookie is kept."""

    __tablename__ = "sessions"
    harmless = "lets somebody in as the database does with a new key; what they do is recorded"

    id: Mapped[Id]
    key_id: Mapped[int | None] = mapped_column(Key, ForeignKey("api_keys.id"), index=True)
    identity_id: Mapped[int | None] = mapped_column(Key, ForeignKey("identities.id"), index=True)
    handle: Mapped[str] = mapped_column(String(16), unique=True)
    digest: Mapped[Sha256]
    #: Kept by the browser after it is closed.
    remembered: Mapped[bool]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    key: Mapped[ApiKey | None] = relationship(lazy="joined")
    identity: Mapped[Identity | None] = relationship(lazy="joined")

    __table_args__ = (CheckConstraint("(key_id IS NULL) <> (identity_id IS NULL)", name="one_sign_in"),)
