"""A result in the analyst's hands: arrays, tables, labels, files, plots; all of it from released values."""

from __future__ import annotations

import builtins
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from cairn_client import MissingLibrary, Result
from cairn_client.commands.results import print_result
from cairn_client.formatting import rounded_to_noise
from cairn_client.plotting import map_of
from cairn_client.receipt import Receipt, digest_of, is_whole
from cairn_client.wire import NoiseFacts, ResultFacts
from core.data import Dense

CENTRES = [[1.0, 10.0], [9.0, 90.0]]


def facts(**changes: Any) -> ResultFacts:
    known: dict[str, Any] = {
        "job": "6f1cbb0e",
        "dataset": "flowers",
        "rehearsal": False,
        "algorithm": "summit",
        "objective": "means",
        "columns": ["a", "b"],
        "centres": CENTRES,
        "sizes": [30.5, 69.5],
        "draws": {},
        "details": {},
        "privacy": {"epsilon": "1", "delta": "0"},
        "receipt": "/v1/jobs/6f1cbb0e/receipt",
    }
    return ResultFacts(**{**known, **changes})


def domain(**changes: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "kind": "dense",
        "bounds": {"box": {"low": [0.0, 0.0], "high": [10.0, 100.0]}},
        "scaling": "unit",
    }
    return {"domain": {**known, **changes}, "steps": []}


def result(receipt: dict[str, Any] | None = None, **changes: Any) -> Result:
    return Result(facts(**changes), receipt or domain())


def test_a_representation_has_numbers_for_people() -> None:
    private = {"epsilon": "0.50", "delta": "0.000001", "unit": "record"}
    assert repr(result(privacy=private)).endswith("2 columns of flowers, epsilon 0.5, delta 1e-6>")


def test_centres_and_sizes_are_arrays() -> None:
    found = result()
    assert found.centres.shape == (2, 2)
    assert found.sizes is not None
    assert found.sizes.tolist() == [30.5, 69.5]


def test_a_frame_has_the_columns_by_name_and_the_sizes() -> None:
    frame = result().frame()
    assert list(frame.columns) == ["a", "b", "size"]
    assert frame.index.name == "cluster"
    assert frame.index.tolist() == [1, 2]
    assert frame["b"].tolist() == [10.0, 90.0]


def test_a_column_called_size_keeps_its_name() -> None:
    assert list(result(columns=["size", "b"]).frame().columns) == ["size", "b", "cluster_size"]


def test_columns_without_names_are_numbered() -> None:
    assert result(columns=None, sizes=None).columns == ["x0", "x1"]


def test_rows_are_labelled_in_the_geometry_of_the_dataset() -> None:
    row = np.array([[6.0, 30.0]])  # by the plain distance nearer to the first, by widths of columns as well
    tilted = np.array([[9.0, 45.0]])  # by the plain distance the first is nearer; by widths the second
    assert result().predict(row).tolist() == [0]
    assert result().predict(tilted).tolist() == [1]
    assert result(domain(scaling="none")).predict(tilted).tolist() == [0]


def test_labels_are_those_of_the_service_s_own_encoding() -> None:
    rng = np.random.default_rng(3)
    rows = rng.uniform([-2, -20], [12, 120], size=(500, 2))
    encoding = Dense.box([0, 0], [10, 100], size=500)
    near = encoding.encode(rows).astype(float)[:, None, :] - encoding.encode_points(CENTRES)[None, :, :]
    squared = (near**2).sum(axis=2)
    clear = np.abs(squared[:, 0] - squared[:, 1]) > 1e-3 * squared.max()
    assert (result().predict(rows) == squared.argmin(axis=1))[clear].all()


def test_rows_outside_a_ball_are_pulled_onto_it() -> None:
    ball = domain(bounds={"ball": {"radius": 1.0, "centre": [0.0, 0.0]}}, scaling="none")
    found = result(ball, centres=[[0.9, 0.1], [0.0, 0.8]])
    assert found.predict([[1000.0, 999.0], [5.0, 80.0]]).tolist() == [0, 1]


def test_rows_on_the_globe_are_labelled_around_it() -> None:
    globe = domain(bounds={"box": {"low": [-90.0, -180.0], "high": [90.0, 180.0]}}, scaling="none")
    globe["parameters"] = {"sites": {"kind": "coordinates", "metric": "great-circle", "points": []}}
    found = result(globe, centres=[[0.0, -179.0], [0.0, 150.0], [89.0, 0.0]])
    assert found.predict([[0.0, 179.0], [1.0, 160.0], [88.0, 175.0]]).tolist() == [0, 1, 2]


def test_a_frame_of_rows_is_read_by_name() -> None:
    rows = pandas.DataFrame({"b": [88.0], "note": ["x"], "a": [9.0]})
    assert result().predict(rows).tolist() == [1]


@pytest.mark.parametrize("rows", [[[1.0]], [1.0, 2.0], [[np.nan, 1.0]]])
def test_rows_that_cannot_be_labelled_are_refused(rows: Any) -> None:
    with pytest.raises(ValueError, match="rows"):
        result().predict(rows)


@pytest.mark.parametrize("kind", ["csv", "json", "npy"])
def test_a_result_is_saved_and_read_back(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"centres.{kind}"
    result().save(path)
    if kind == "csv":
        assert path.read_text() == "cluster,a,b,size\n1,1.0,10.0,30.5\n2,9.0,90.0,69.5\n"
    elif kind == "json":
        assert json.loads(path.read_text())["centres"] == CENTRES
    else:
        assert np.load(path).tolist() == CENTRES


#: The noise of sizes with a standard deviation of 2.
TWO = NoiseFacts(size=2.0, centres=None, columns=None)


def test_a_table_has_the_noise_of_the_sizes_where_it_is_known(tmp_path: Path) -> None:
    found = result(noise=TWO)
    assert found.frame()["size_noise"].tolist() == [2.0, 2.0]
    found.save(tmp_path / "centres.csv")
    assert (tmp_path / "centres.csv").read_text().splitlines()[:2] == [
        "cluster,a,b,size,size_noise",
        "1,1.0,10.0,30.5,2.0",
    ]


def test_a_result_of_an_earlier_version_states_no_noise() -> None:
    assert result().size_error is None
    assert "noise" not in result().to_json()
    assert "size_noise" not in result().frame()


def test_the_command_says_when_the_noise_is_not_stated(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(result(), None, False)
    assert "this result does not state by how much" in capsys.readouterr().err
    print_result(result(noise=TWO), None, False)
    assert "±4 records in 95 of 100 runs" in capsys.readouterr().err


def test_a_saved_result_is_loaded_with_its_receipt(tmp_path: Path) -> None:
    result(noise=TWO).save(tmp_path / "result.json")
    loaded = Result.load(tmp_path / "result.json")
    assert loaded.facts == result(noise=TWO).facts
    assert loaded.size_error == 2.0
    assert loaded.predict([[9.0, 45.0]]).tolist() == [1]


def test_a_result_in_the_service_s_own_json_is_loaded_without_a_receipt(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(result().to_json()))
    loaded = Result.load(str(tmp_path / "result.json"))
    assert loaded.centres.tolist() == CENTRES
    with pytest.raises(ValueError, match="no receipt"):
        loaded.predict([[9.0, 45.0]])


def test_a_file_that_holds_the_centres_alone_is_not_loaded(tmp_path: Path) -> None:
    result().save(tmp_path / "centres.npy")
    with pytest.raises(ValueError, match="hold the centres alone"):
        Result.load(tmp_path / "centres.npy")


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="should end in"):
        result().save(tmp_path / "centres.xls")


def wide(width: int, **changes: Any) -> dict[str, Any]:
    return domain(bounds={"box": {"low": [0.0] * width, "high": [1.0] * width}}, **changes)


@pytest.mark.parametrize("width", [1, 2, 5, 30])
def test_a_plot_is_drawn_for_any_number_of_columns(width: int, tmp_path: Path) -> None:
    centres = np.linspace(0, 1, 4 * width).reshape(4, width).tolist()
    found = result(wide(width), centres=centres, columns=None, sizes=[1.0, 2.0, -1.0, 4.0], noise=TWO)
    found.plot().savefig(tmp_path / "centres.png")
    assert (tmp_path / "centres.png").stat().st_size > 5000
    assert found.plot().axes[-1].get_title() == "noisy sizes, with 95% error bars"


def test_a_plot_without_sizes_is_drawn() -> None:
    assert len(result(sizes=None).plot().axes) == 1


@pytest.mark.parametrize(
    "receipt",
    [
        domain(kind="sparse", radius=1.0, bounds=None),
        domain(bounds={"ball": {"radius": 1.0, "centre": [0.0, 0.0, 0.0]}}, scaling="none"),
    ],
    ids=["sparse", "ball"],
)
def test_a_plot_is_drawn_for_bounds_other_than_a_box(receipt: dict[str, Any]) -> None:
    found = result(receipt, centres=[[0.5, 0.0, 0.1], [0.0, 0.8, 0.0]], columns=["a", "b", "c"])
    assert len(found.plot().axes) == 3


def test_a_plot_numbers_the_clusters_from_1() -> None:
    centres, profiles, sizes = (
        result(wide(3), centres=[[0.1, 0.2, 0.3], [0.9, 0.8, 0.7]], columns=None).plot().axes
    )
    assert [text.get_text() for text in centres.texts] == ["1", "2"]
    assert profiles.get_images()[0].get_extent()[2:] == [2.5, 0.5]  # rows 1 and 2
    assert [bar.get_x() + bar.get_width() / 2 for bar in sizes.patches] == [1, 2]


def test_the_map_of_many_columns_keeps_the_distances_of_a_plane() -> None:
    plane = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    turned = plane @ np.linalg.qr(np.arange(1.0, 9.0).reshape(4, 2))[0].T
    flat, _ = map_of(result(wide(4, scaling="none"), centres=turned.tolist(), columns=None))
    distances = np.linalg.norm(flat[:, None] - flat[None], axis=2)
    assert distances == pytest.approx(np.linalg.norm(plane[:, None] - plane[None], axis=2))


def test_no_column_swamps_the_others_in_the_map_for_its_unit() -> None:
    """In widths of the columns the groups differ by age and height; in raw units, by income alone."""
    receipt = domain(bounds={"box": {"low": [0, 0, 0], "high": [100, 2, 1_000_000]}})
    centres = [[10.0, 0.2, 50_000.0], [90.0, 0.2, 51_000.0], [10.0, 1.2, 52_000.0], [90.0, 1.2, 53_000.0]]
    flat, names = map_of(result(receipt, centres=centres, columns=["age", "height", "income"]))
    assert all("income" not in name for name in names)
    assert np.ptp(flat, axis=0) == pytest.approx([0.8, 0.5], rel=0.01)


@pytest.mark.parametrize(("call", "library"), [("frame", "pandas"), ("plot", "matplotlib")])
def test_a_missing_library_is_named(call: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [library, *(each for each in sys.modules if each.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLibrary, match=f"pip install {library}"):
        getattr(result(), call)()


def test_the_client_needs_neither_pandas_nor_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] in {"pandas", "matplotlib", "IPython"}:
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert result().predict([[1.0, 1.0]]).tolist() == [0]
    assert "2 centres" in repr(result())


def test_a_changed_receipt_is_found_out() -> None:
    receipt: dict[str, Any] = {"job": "x", "charged": {"epsilon": "1"}, "share": 0.1}
    receipt["digest"] = digest_of(receipt)
    assert is_whole(receipt)
    assert not is_whole({**receipt, "charged": {"epsilon": "0.1"}})


def test_libraries_that_speak_arrow_read_a_result() -> None:
    import pyarrow

    table = pyarrow.table(result())
    assert table.column_names == ["cluster", "a", "b", "size"]
    assert table.column("b").to_pylist() == [10.0, 90.0]
    assert table == result().arrow()


def test_sizes_of_an_open_k_are_drawn_with_their_intervals() -> None:
    ends = {"size_low": [20.0, 60.0], "size_high": [45.0, 70.0]}
    level = {**ends, "centre_low": CENTRES, "centre_high": CENTRES}
    axes = result(level=level).plot().axes[-1]
    assert axes.get_title() == "noisy sizes, with 95% error bars"
    (lines,) = axes.containers[0].lines[2]
    reach = [segment[:, 1].tolist() for segment in lines.get_segments()]
    assert reach == [[20.0, 45.0], [60.0, 70.0]]


def test_a_receipt_prints_what_it_says() -> None:
    made = Receipt(
        {"job": "6f1c", "dataset": "flowers", "privacy": {"epsilon": "1", "delta": "0"}, "citation": "A <b>"}
    )
    assert repr(made) == "<Receipt of job 6f1c on flowers, epsilon 1, delta 0>"
    assert "A &lt;b&gt;" in made._repr_html_()
    assert json.loads(json.dumps(made))["job"] == "6f1c"


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        ((1234.5, 1160.2, 1309.0), (1230.0, 1160.0, 1310.0)),
        ((41.2345, 40.81, 41.65), (41.2, 40.8, 41.7)),
        ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        ((3.0, -math.inf, math.inf), (3.0, -math.inf, math.inf)),
    ],
)
def test_numbers_are_rounded_to_their_noise_as_the_service_rounds_them(
    value: tuple[float, float, float], rounded: tuple[float, float, float]
) -> None:
    assert rounded_to_noise(*value) == rounded


def test_intervals_of_a_single_k_are_in_tables_files_plots_and_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = {
        "size_low": [26.08, 65.08], "size_high": [34.92, 73.92],
        "centre_low": [[0.8, 9.8], [8.8, 89.8]], "centre_high": [[1.2, 10.2], [9.2, 90.2]],
    }  # fmt: skip
    found = result(noise=TWO, intervals=ends)
    assert found.frame()["a_high"].tolist() == [1.2, 9.2]
    found.save(tmp_path / "centres.csv")
    assert (tmp_path / "centres.csv").read_text().splitlines() == [
        "cluster,a,b,size,size_noise,size_low,size_high,a_low,a_high,b_low,b_high",
        "1,1.0,10.0,30.0,2.0,26.0,35.0,0.8,1.2,9.8,10.2",
        "2,9.0,90.0,70.0,2.0,65.0,74.0,8.8,9.2,89.8,90.2",
    ]
    print_result(found, None, False)
    shown = capsys.readouterr().out
    assert "26–35" in shown
    assert "9 (8.8 to 9.2)" in shown
    assert Result(found.facts, None).intervals == ends
