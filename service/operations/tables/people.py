"""Tables of people, their keys and their sessions."""

from datetime import datetime

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from service.operations.states import Role
from service.operations.tables.columns import Base, Id, Key, Name, PrincipalId, Sha256, one_of


class Principal(Base):
    """A person or a program that may hold keys."""

    __tablename__ = "principals"

    id: Mapped[Id]
    name: Mapped[Name] = mapped_column(unique=True)
    role: Mapped[Role]
    created_by: Mapped[PrincipalId | None]
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]

    __table_args__ = (one_of("role", Role),)


class ApiKey(Base):
    """A key, of which only the SHA-256 is kept."""

    __tablename__ = "api_keys"

    id: Mapped[Id]
    principal_id: Mapped[PrincipalId] = mapped_column(index=True)
    handle: Mapped[str] = mapped_column(String(16), unique=True)
    digest: Mapped[Sha256]
    label: Mapped[Name]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class BrowserSession(Base):
    """A browser that is signed in with a key; only the SHA-256 of its cookie is kept."""

    __tablename__ = "sessions"

    id: Mapped[Id]
    key_id: Mapped[int] = mapped_column(Key, ForeignKey("api_keys.id"), index=True)
    handle: Mapped[str] = mapped_column(String(16), unique=True)
    digest: Mapped[Sha256]
    #: Kept by the browser after it is closed.
    remembered: Mapped[bool]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    key: Mapped[ApiKey] = relationship(lazy="joined")
