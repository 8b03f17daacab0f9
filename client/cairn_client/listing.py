"""The listing of a dataset in the catalogue, for people without a grant."""

from __future__ import annotations

from collections.abc import Collection

from cairn_client.transport import Transport
from cairn_client.wire import ListingFacts


class Listing:
    """Calls that list a dataset in the catalogue."""

    _transport: Transport

    def _path(self, rest: str = "") -> str:
        raise NotImplementedError

    def listing(self) -> ListingFacts:
        """What the catalogue shows of the dataset, and all that it could show."""
        return self._transport.request(ListingFacts, "GET", self._path("/listing"))

    def list_in_catalogue(self, shows: Collection[str] = (), title: str = "") -> ListingFacts:
        """Let everybody who is signed in find the dataset, by its name and a title.

        `shows` names the groups of public facts that they see, out of `listing().groups`. Balances, totals
        and numbers of rows are never shown.
        """
        body = {"title": title, "shows": list(shows)}
        return self._transport.request(
            ListingFacts, "PUT", self._path("/listing"), body=body, repeatable=True
        )

    def remove_from_catalogue(self) -> None:
        """Take the dataset out of the catalogue; grants stay as they are."""
        self._transport.call("DELETE", self._path("/listing"), repeatable=True)
