"""Keys with limits: to some datasets, and to reading."""

from typing import Any

from tests.support.service import House, Person


def limited(house: House, who: str, **limits: Any) -> Person:
    made = house.carla.post(f"/v1/principals/{who}/keys", limits).json()
    return Person(house.client, who, made["key"])


def two_datasets(house: House) -> None:
    house.ready()
    house.ready("others")
    for name in ("flowers", "others"):
        assert house.submit(dataset=name).status_code == 202


def test_key_for_a_dataset_opens_no_other(small_house: House) -> None:
    two_datasets(small_house)
    jobs = {each["dataset"]: each["id"] for each in small_house.ada.get("/v1/jobs").json()["items"]}
    for who in ("ada", "carla"):
        key = limited(small_house, who, datasets=["flowers"])
        for path in ("/v1/datasets", "/v1/jobs"):
            found = key.get(path).json()["items"]
            assert {each.get("dataset", each.get("name")) for each in found} == {"flowers"}, path
        for name, status in (("flowers", 200), ("others", 404)):
            assert key.get(f"/v1/datasets/{name}").status_code == status
            assert key.get(f"/v1/datasets/{name}/ledger").status_code == status
            assert key.get(f"/v1/jobs/{jobs[name]}").status_code == status
            planned = key.post("/v1/plans", {"dataset": name, "k": 2, "algorithm": "sulq", "epsilon": "0.1"})
            assert planned.status_code == status
        assert small_house.submit(who=key, dataset="others").status_code == 404


def test_key_for_a_dataset_makes_no_dataset_and_manages_nobody(small_house: House) -> None:
    small_house.ready()
    key = limited(small_house, "carla", datasets=["flowers"])
    calls = [
        key.get("/v1/principals"),
        key.post("/v1/principals", {"name": "new", "role": "analyst"}),
        key.post("/v1/principals/carla/keys", {}),
        key.get("/v1/audit"),
        key.get("/metrics"),
        key.post(
            "/v1/datasets",
            {
                "name": "new",
                "dimension": 2,
                "bounds": {"ball": {"radius": 1}},
                "size": 9,
                "budget": {"epsilon": "1", "delta": "0"},
            },
        ),
    ]
    assert [each.status_code for each in calls] == [403] * len(calls)


def test_key_for_reading_changes_nothing(small_house: House) -> None:
    small_house.ready()
    key = limited(small_house, "ada", read_only=True)
    assert key.get("/v1/datasets/flowers").status_code == 200
    assert small_house.submit(who=key).status_code == 403
    assert key.post("/v1/sessions", {}).status_code == 403
    assert small_house.ada.get("/v1/jobs").json()["items"] == []


def test_limits_are_listed_and_hold_in_a_session(small_house: House) -> None:
    two_datasets(small_house)
    key = limited(small_house, "ada", datasets=["flowers"])
    cookie = key.post("/v1/sessions", {}).headers["set-cookie"].partition(";")[0]
    found = small_house.client.request("GET", "/v1/datasets", headers={"Cookie": cookie}).json()["items"]
    assert [each["name"] for each in found] == ["flowers"]
    people = small_house.carla.get("/v1/principals").json()["items"]
    [ada] = [each for each in people if each["name"] == "ada"]
    assert ada["keys"][-1]["datasets"] == ["flowers"]
