"""Numbers and ids as people read them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cairn_client.formatting import about, number, shorten, with_exponents


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (20_000, "20,000"),
        (12345.678, "12,346"),
        (0.012346, "0.01235"),
        (Decimal("0.50"), "0.5"),
        (1e-6, "1e-6"),
        (Decimal("0.000025"), "2.5e-5"),
        (0.0, "0"),
        (-3.14159, "-3.142"),
    ],
)
def test_a_number_is_grouped_and_rounded_after_the_point_only(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(4483.2, "4,480"), (53.46, "53"), (2.34, "2.3"), (0.0, "0"), (1234567.0, "1,230,000")],
)
def test_an_estimated_count_has_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert about(value) == text


def test_the_smallest_decimals_of_a_text_have_exponents() -> None:
    said = "your cap has epsilon 0.25 and delta 0.0000012345 left, at most 0.00001."
    assert with_exponents(said) == "your cap has epsilon 0.25 and delta 1.2345e-6 left, at most 1e-5."


def test_an_id_has_8_characters_and_more_only_where_two_begin_alike() -> None:
    assert shorten(["0123456789ab", "ba9876543210"]) == ["01234567", "ba987654"]
    assert shorten(["0123456789ab", "0123456799ab"]) == ["012345678", "012345679"]
    assert shorten(["0123456789ab", "0123456789ab"]) == ["01234567", "01234567"]
