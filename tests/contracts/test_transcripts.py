"""Under fixed bits every algorithm and question releases what the file `golden/transcripts.jsonl` says."""

import pytest

from tests.contracts.cases import Case
from tests.contracts.library import questions, registry
from tests.contracts.transcripts import golden_transcripts, tiny_cases, tiny_transcript, transcript


def test_every_algorithm_has_a_golden_transcript() -> None:
    assert list(golden_transcripts()) == [case.name for case in tiny_cases()]
    assert {case.algorithm for case in tiny_cases()} == {*registry.names(), *questions.names()}


@pytest.mark.parametrize("name", [*registry.names(), *questions.names()])
def test_the_same_bits_release_the_golden_values(name: str) -> None:
    kept = golden_transcripts()
    found = {case.name: tiny_transcript(case) for case in tiny_cases() if case.algorithm == name}
    assert found == {case: kept[case] for case in found}


def test_another_commits_noise_can_be_borrowed() -> None:
    case = Case("sulq", "means", "box", "approximate")
    own = transcript(case)
    louder = [{**mechanism, "mu": mechanism["mu"] / 2} for mechanism in own["mechanisms"]]
    assert transcript(case, own["mechanisms"]) == own
    assert transcript(case, louder)["released"] != own["released"]
