"""Routes of the catalogue and of listings."""

from dataclasses import asdict

from fastapi import APIRouter
from sqlalchemy.orm import Session

from service.datasets import access
from service.datasets.catalogue import listings
from service.datasets.catalogue.wire import CatalogueEntry, CataloguePage, ListingBody, ListingFacts
from service.datasets.routes import DatasetName
from service.http.context import Services
from service.http.json_limits import StrictRoute
from service.http.paging import Paging
from service.http.problems import answers
from service.operations.tables import Dataset
from service.people.authentication import Curator, Overseer, Reader

router = APIRouter(prefix="/v1", tags=["catalogue"], route_class=StrictRoute)


@router.get("/catalogue", responses=answers())
def list_catalogue(caller: Reader, context: Services, paging: Paging) -> CataloguePage:
    """List the datasets that can be asked for: those that their owners list for people without a grant."""
    with context.database.read() as session:
        found = listings.page(session, caller, after=paging.after(str) or "", limit=paging.fetch)
        shown, following = paging.cut(found, lambda each: each.name)
        open_to_caller = access.accessible(session, caller, [each.id for each in shown])
        items = [_entry(session, each, accessible=each.id in open_to_caller) for each in shown]
    return CataloguePage(items=items, next=following)


@router.get("/catalogue/{name}", responses=answers())
def get_catalogue_entry(name: DatasetName, caller: Reader, context: Services) -> CatalogueEntry:
    """Get what a listed dataset's owner chose to show."""
    with context.database.read() as session:
        dataset = listings.find(session, name, caller)
        found = access.accessible(session, caller, [dataset.id])
        return _entry(session, dataset, accessible=bool(found))


@router.get("/datasets/{name}/listing", responses=answers())
def get_listing(name: DatasetName, caller: Overseer, context: Services) -> ListingFacts:
    """Get what the catalogue shows of a dataset, and all that it could show, before anything is chosen."""
    with context.database.read() as session:
        return _listing(session, access.find(session, name, caller).dataset)


@router.put("/datasets/{name}/listing", responses=answers("not-sealed", "retired"))
def put_listing(name: DatasetName, body: ListingBody, caller: Curator, context: Services) -> ListingFacts:
    """List a sealed dataset in the catalogue, for everybody who is signed in, or change what is shown of it.

    Its name and title are shown, and of its public facts the groups that you name.
    """
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        listings.put(session, dataset, body.title, body.shows, actor=caller.name, at=context.clock.now())
        return _listing(session, dataset)


@router.delete("/datasets/{name}/listing", status_code=204, responses=answers("not-sealed", "retired"))
def delete_listing(name: DatasetName, caller: Curator, context: Services) -> None:
    """Take a dataset out of the catalogue; grants stay as they are."""
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        listings.remove(session, dataset, actor=caller.name, at=context.clock.now())


def _entry(session: Session, dataset: Dataset, *, accessible: bool) -> CatalogueEntry:
    listing = dataset.listing or {}
    return CatalogueEntry.model_validate(
        {
            "name": dataset.name,
            "title": listing["title"] or dataset.name,
            "since": listing["since"],
            "groups": [asdict(each) for each in listings.groups(session, dataset, listing["shows"])],
            "accessible": accessible,
        }
    )


def _listing(session: Session, dataset: Dataset) -> ListingFacts:
    listing = dataset.listing or {"title": "", "shows": [], "since": None}
    offered = listings.groups(session, dataset, list(listings.GROUPS))
    return ListingFacts.model_validate({**listing, "groups": [asdict(each) for each in offered]})
