"""Private k-means and k-medians as scikit-learn estimators, for rows that the caller holds.

Parameters are checked in `fit`, before a row is measured. What `fit` keeps is what the plan released: there
is no `labels_`, no `inertia_` and no `fit_predict`, because exact labels and losses of private rows are not
private; and there is no `random_state`, because a known seed would take the noise away again.
"""

import math
import warnings
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted, validate_data

from core.algorithms import registry
from core.data import (
    MAX_RECORDS,
    UNITS,
    ArraySource,
    DataSource,
    Dense,
    Geometry,
    Ids,
    Sparse,
    SparseSource,
    Stored,
    read_public_rows,
)
from core.data.base import whole
from core.errors import InvalidData, InvalidDomain, InvalidRequest
from core.kernels.geometry import nearest
from core.plan import KRange, Plan, Request
from core.postprocessing.bounds import unit_length
from core.postprocessing.synopsis import Synopsis
from core.privacy import RHO_UNIT, Budget, default_delta

#: The number of rows that is assumed where no order of magnitude is given.
ASSUMED_SIZE = 100_000


@dataclass(frozen=True)
class Guarantee:
    """The privacy guarantee of a fit."""

    epsilon: float
    delta: float
    rho: float
    rows_per_person: int

    @property
    def unit(self) -> str:
        """The unit of privacy: one row, or one person with all their rows."""
        return "row" if self.rows_per_person == 1 else "person"

    @classmethod
    def of(cls, plan: Plan) -> Self:
        rows = plan.domain.rows_per_person
        return cls(plan.budget.epsilon, plan.budget.delta, plan.rho_units / RHO_UNIT, rows)

    def __str__(self) -> str:
        whom = "row" if self.rows_per_person == 1 else f"person with up to {self.rows_per_person} rows"
        promise = f"epsilon = {self.epsilon:g}" + (f", delta = {self.delta:g}" if self.delta else " (pure)")
        return f"differential privacy for each {whom}, added or removed: {promise}; rho = {self.rho:.4g}"


class _PrivateClustering(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type information
    """Base of both estimators."""

    _objective: ClassVar[str]

    cluster_centers_: npt.NDArray[np.float64]
    cluster_sizes_: npt.NDArray[np.float64] | None
    synopsis_: Synopsis | None
    plan_: Plan
    privacy_: Guarantee
    n_features_in_: int

    def __init__(
        self,
        n_clusters: int | tuple[int, int] = 8,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        bounds: tuple[Any, Any] | Mapping[str, tuple[float, float]] | None = None,
        radius: float | None = None,
        center: npt.ArrayLike | None = None,
        size_bound: int | None = None,
        rows_per_person: int = 1,
        scaling: str = "unit",
        algorithm: str = "auto",
        public_rows: npt.ArrayLike | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.radius = radius
        self.center = center
        self.size_bound = size_bound
        self.rows_per_person = rows_per_person
        self.scaling = scaling
        self.algorithm = algorithm
        self.public_rows = public_rows
        self.executor = executor

    def fit(self, X: Any, y: None = None, groups: npt.ArrayLike | None = None) -> Self:
        """Find private centres of the rows of `X`.

        Parameters
        ----------
        X : array, memory map, DataFrame, scipy.sparse matrix or DataSource
            The rows. Values outside the bounds are clipped to them.
        y : ignored
            Present for pipelines.
        groups : array-like of shape (n_rows,)
            The person that each row belongs to. Of each person the first `rows_per_person` rows are used and
            the others left out, so the guarantee holds however many rows a person has. Without it, nothing
            checks that a person has at most `rows_per_person` rows.
        """
        if isinstance(X, DataSource):
            self._refuse_own_limits(groups)
            source = X
        else:
            rows = self._readable(X, fitting=True)
            made = self._domain(rows)
            if groups is not None:
                rows = rows[_first_rows(groups, rows.shape[0], made.rows_per_person)]
            source = _source(made, rows)
        domain = source.domain
        plan = registry.plan(domain, self._request(domain))
        for text in domain.warnings:  # computed from bounds alone
            warnings.warn(text, UserWarning, stacklevel=2)
        found = registry.run(plan, source, self.executor)
        self.cluster_centers_ = found.centres
        self.cluster_sizes_ = found.sizes
        self.synopsis_ = found.synopsis
        self.plan_ = plan
        self.privacy_ = Guarantee.of(plan)
        self.n_features_in_ = domain.dimension
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int32]:
        """The index of the centre nearest to each row of `X`, in the geometry of the fit.

        Reads the released centres and the given rows only: labels of the caller's own rows are the caller's,
        and publishing those of private rows is not private.
        """
        rows, centres = self._encoded(X)
        return nearest(rows, centres, UNITS)[0].astype(np.int32)

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Distances of each row of `X` to the centres, in the geometry of the fit.

        With `scaling="unit"` a box is measured in half-widths of its columns. As with `predict`, distances of
        private rows are not private.
        """
        rows, centres = self._encoded(X)
        distances: npt.NDArray[np.float64] = euclidean_distances(rows.astype(np.float64), centres)
        return distances * unit_length(self.plan_.domain)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the columns that `transform` returns, one for each centre."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{number}" for number in range(len(self.cluster_centers_))], dtype=object)

    def _encoded(self, X: Any) -> tuple[Any, npt.NDArray[np.int64]]:
        """Rows and released centres in the whole units of the domain."""
        check_is_fitted(self)
        domain = self.plan_.domain
        if isinstance(domain, Ids):
            raise InvalidRequest("site numbers have no nearest centre without the distances between sites")
        if isinstance(domain, Geometry):
            raise InvalidRequest("predict and transform read no tables")
        rows = self._readable(X, fitting=False)
        if isinstance(domain, Dense):
            dense = rows.toarray() if isinstance(rows, sp.csr_array | sp.csr_matrix) else rows
            return domain.encode(dense), domain.encode_points(self.cluster_centers_)
        centres = np.rint(self.cluster_centers_ / domain.unit_lengths()).astype(np.int64)
        return domain.encode(rows), centres

    def _readable(self, X: Any, *, fitting: bool) -> Any:
        """Rows as a numeric array or a CSR matrix without missing values; any number of them, or none."""
        return validate_data(self, X, accept_sparse="csr", reset=fitting, ensure_min_samples=0)

    def _refuse_own_limits(self, groups: npt.ArrayLike | None) -> None:
        limits = ("bounds", "radius", "center", "size_bound")
        given = [name for name in limits if getattr(self, name) is not None]
        given += ["rows_per_person"] if self.rows_per_person != 1 else []
        given += ["groups"] if groups is not None else []
        if given:
            raise InvalidDomain(
                f"a DataSource brings its own limits and size: leave out {', '.join(given)}",
                parameter=given[0],
            )

    def _domain(self, rows: Any) -> Dense | Sparse:
        """The public facts about the rows; of the rows themselves only the number of columns is used."""
        dimension = rows.shape[1]
        size = ASSUMED_SIZE if self.size_bound is None else self.size_bound
        declared: dict[str, Any] = {
            "size": whole(size, "size_bound", 1, MAX_RECORDS),
            "rows_per_person": _plain(self.rows_per_person),
        }
        if self.bounds is None and self.radius is None:
            raise _wrong_bounds(
                f"{type(self).__name__} needs limits of the rows: bounds=(low, high), each one number or one "
                "per column; bounds={column: (low, high)} for a DataFrame; or radius (and center). Give what "
                "is known without looking at the rows: limits taken from the data would reveal its outermost "
                "rows and void the guarantee"
            )
        if self.bounds is not None and (self.radius is not None or self.center is not None):
            raise _wrong_bounds("give bounds, or radius and center, but not both")
        if sp.issparse(rows):
            return Sparse(dimension=dimension, radius=self._radius_about_origin(dimension), **declared)
        columns = self._columns()
        if self.bounds is None:
            centre: Any = self.center
            return Dense.ball(self.radius, centre, dimension=dimension, columns=columns, **declared)
        low, high = self._low_and_high()
        return Dense.box(low, high, columns, dimension=dimension, scaling=self.scaling, **declared)

    def _low_and_high(self) -> tuple[Any, Any]:
        if isinstance(self.bounds, Mapping):
            return self._bounds_by_name(self.bounds)
        try:
            low, high = self.bounds  # type: ignore[misc]  # whatever does not unpack is refused
        except (TypeError, ValueError):
            raise _wrong_bounds(
                "bounds must be a pair (low, high), each one number or one per column"
            ) from None
        return low, high

    def _bounds_by_name(self, bounds: Mapping[str, Any]) -> tuple[Any, Any]:
        """Bounds in the order of the DataFrame's columns."""
        names = list(getattr(self, "feature_names_in_", ()))
        if not names:
            raise _wrong_bounds("bounds by column name need a DataFrame with named columns")
        missing = [name for name in names if name not in bounds]
        unknown = [str(name) for name in bounds if name not in names]
        if missing or unknown:
            raise _wrong_bounds(
                "bounds must name each column of the DataFrame once"
                + (f"; without bounds: {', '.join(missing)}" if missing else "")
                + (f"; not in the DataFrame: {', '.join(unknown)}" if unknown else "")
            )
        try:
            low, high = zip(*(bounds[name] for name in names), strict=True)
        except (TypeError, ValueError):
            raise _wrong_bounds("bounds must give each column a pair (low, high)") from None
        return list(low), list(high)

    def _radius_about_origin(self, dimension: int) -> float:
        """Sparse rows lie in a ball about the origin: the given one, or the one around the given box."""
        if self.bounds is None:
            if self.center is not None and np.any(np.asarray(self.center) != 0):
                raise InvalidDomain("sparse rows lie about the origin: leave center out", parameter="center")
            return self.radius  # type: ignore[return-value]  # the domain checks it
        low, high = self._low_and_high()
        box = Dense.box(low, high, dimension=dimension, size=1)
        reach = np.maximum(np.abs(np.array(box.low)), np.abs(np.array(box.high)))
        return math.sqrt(dimension) * float(reach.max()) if np.ptp(reach) == 0 else math.hypot(*reach)

    def _columns(self) -> list[str] | None:
        """Names of columns for the receipt, where the rows have distinct ones."""
        names = list(getattr(self, "feature_names_in_", ()))
        return names if names and len(set(names)) == len(names) else None

    def _request(self, domain: Stored) -> Request:
        delta = default_delta(domain.size) if self.delta is None else self.delta
        budget = Budget.at_most(_plain(self.epsilon), _plain(delta))
        public = None if self.public_rows is None else read_public_rows(domain, self.public_rows)
        return Request(self._k(), budget, self._objective, self.algorithm, public_rows=public)

    def _k(self) -> Any:
        """One number of clusters, or a range."""
        if isinstance(self.n_clusters, tuple) and len(self.n_clusters) == 2:
            return KRange(*(_plain(number) for number in self.n_clusters))
        return _plain(self.n_clusters)

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy; an executor is a resource of the process and is shared, not copied."""
        parameters = self.get_params(deep=False)
        executor = parameters.pop("executor")
        copies = {name: clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(**copies, executor=executor)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = True
        return tags


class PrivateKMeans(_PrivateClustering):
    """Differentially private k-means: centres that minimise the sum of squared distances.

    Parameters
    ----------
    n_clusters : int or (int, int)
        Number of centres; or the first and the last of a range, of which every number is answered by one fit.
    epsilon : float
        Privacy loss to spend on this fit, for each row, or for each person with `rows_per_person`.
    delta : float or None
        None takes min(1e-6, 1 / (10 * size_bound)); 0 asks for pure differential privacy.
    bounds : (low, high) or {column: (low, high)}
        Limits of the values, each one number or one per column; by column name for a DataFrame. They must be
        known without looking at the rows. Rows outside are clipped.
    radius, center : float and array-like
        A ball in place of a box; `center` defaults to the origin.
    size_bound : int or None
        Public order of magnitude of the number of rows; None assumes 100,000. A wrong one costs accuracy,
        never privacy.
    rows_per_person : int
        The most rows that one person contributes. Give `fit` the `groups` of the rows to enforce it.
    scaling : "unit" or "none"
        "unit" brings every column of a box to the same range, "none" keeps the columns' own units.
    algorithm : str
        A name in `core.algorithms.registry`, or "auto".
    public_rows : array-like of shape (n_public_rows, n_features) or None
        Rows of the same kind that are public, and of none of the people in `X`: the guarantee does not cover
        them. Means of many columns learn from them, after a private check that they are of the same kind;
        where `plan_.public_rows` is None they were not used.
    executor : concurrent.futures.Executor or None
        Where chunks of rows are processed; None works in this process.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The released centres, inside the bounds.
    cluster_sizes_ : array of shape (n_clusters,) or None
        Noisy sizes of the clusters, or None where the algorithm releases none.
    plan_ : Plan
        Every measurement that was made, and its noise.
    synopsis_ : Synopsis or None
        After a fit with a range: `synopsis_.at(k)` for every k in it, `synopsis_.sample(n)` for made-up rows.
        `cluster_centers_` and `cluster_sizes_` are then those of the suggested k.
    privacy_ : Guarantee
        The promise of this fit; printed, a sentence.
    n_features_in_ : int
        Number of columns.
    """

    _objective = "means"


class PrivateKMedians(_PrivateClustering):
    """Differentially private k-medians: centres that minimise the sum of distances.

    Parameters and attributes are those of `PrivateKMeans`.
    """

    _objective = "medians"


def _wrong_bounds(message: str) -> InvalidDomain:
    return InvalidDomain(message, parameter="bounds")


def _source(domain: Dense | Ids | Sparse, rows: Any) -> DataSource:
    return SparseSource(domain, rows) if isinstance(domain, Sparse) else ArraySource(domain, rows)


def _first_rows(groups: npt.ArrayLike, count: int, most: int) -> npt.NDArray[np.intp]:
    """Positions of the first `most` rows of each person; which rows of one are kept depends on no other."""
    people = np.asarray(groups)
    if people.shape != (count,):
        raise InvalidData(f"groups must be one-dimensional with one entry for each of the {count} rows")
    if any(map(_is_missing, people.tolist())):
        raise InvalidData("groups has missing entries: every row needs the person it belongs to")
    numbers: dict[Any, int] = {}
    person = np.array([numbers.setdefault(each, len(numbers)) for each in people.tolist()], dtype=np.intp)
    order = np.argsort(person, kind="stable")
    starts = np.searchsorted(person[order], person[order])  # where this person's rows begin in `order`
    within = np.arange(count) - starts
    return np.sort(order[within < most])


def _is_missing(person: Any) -> bool:
    try:
        return person is None or bool(person != person)
    except TypeError:  # pandas.NA has no truth value
        return True


def _plain(number: Any) -> Any:
    """A numpy scalar as a Python number."""
    return number.item() if isinstance(number, np.generic) else number
