from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.quantity import NANO, Format, Quantity

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("0", "0"),
        ("0m", "0"),
        ("-0", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("01", "1"),
        ("1.", "1"),
        (".5", "500m"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("1200", "1200"),
        ("1000", "1k"),
        ("12000", "12k"),
        ("1n", "1n"),
        ("1u", "1u"),
        ("1000n", "1u"),
        ("1500000n", "1500u"),
        ("1k", "1k"),
        ("1M", "1M"),
        ("1G", "1G"),
        ("1T", "1T"),
        ("1P", "1P"),
        ("1E", "1E"),
        ("1024", "1024"),
        ("1Ki", "1Ki"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Mi", "512Ki"),
        ("0.1Gi", "107374182400m"),
        ("1000Ki", "1000Ki"),
        ("1Ei", "1Ei"),
        ("0.5Ki", "512"),
        ("0.0001Ki", "102400u"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1e0", "1"),
        ("1.2e4", "12e3"),
        ("5e-3", "5e-3"),
        ("1e-3", "1e-3"),
        ("1e+2", "100"),
        ("-1", "-1"),
        ("-1.5Gi", "-1536Mi"),
        ("-250m", "-250m"),
    ],
)
def test_text_becomes_its_canonical_form(written: str, canonical: str):
    assert str(Quantity.parse(written)) == canonical


@pytest.mark.parametrize(
    ("written", "nano"),
    [("0.1n", 1), ("1.1n", 2), ("-0.1n", -1), ("0.0000000001", 1), ("1e-20", 1), ("1.0000000001", NANO + 1)],
)
def test_what_is_finer_than_a_billionth_is_rounded_away_from_zero(written: str, nano: int):
    assert Quantity.parse(written).nano == nano


@pytest.mark.parametrize("written", ["10E", "8Ei", "9223372036854775808", "1e30", "99999999999999999999999"])
def test_what_is_larger_than_kubernetes_can_hold_is_capped(written: str):
    assert Quantity.parse(written).round_up() == LARGEST
    assert Quantity.parse("-" + written).round_up() == -LARGEST


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("", "regular expression"),
        ("1.2.3", "regular expression"),
        ("5x", "regular expression"),
        ("NaN", "regular expression"),
        ("Infinity", "regular expression"),
        ("0x10", "regular expression"),
        ("1 Gi", "regular expression"),
        ("\N{ARABIC-INDIC DIGIT ONE}", "regular expression"),  # a digit, but not one of ours
        (".", "numeric part"),
        ("+", "numeric part"),
        ("m", "numeric part"),
        ("1.5Mi5", "suffix"),
        ("1i", "suffix"),
        ("1K", "suffix"),
        ("1mi", "suffix"),
        ("1e", "suffix"),
        ("1e-", "suffix"),
        ("1kk", "suffix"),
        ("1Gi1", "suffix"),
        ("1e400", "exponent 400 is out of range"),
        ("1e-99999999999", "out of range"),
        ("9" * 300, "300 characters"),
    ],
)
def test_what_is_no_quantity_is_refused_with_the_reason(written: str, complaint: str):
    with pytest.raises(InvalidQuantity, match=complaint):
        Quantity.parse(written)


@pytest.mark.parametrize("given_value", [math.nan, math.inf, 1e300, 10**300, True, None, [1], {}])
def test_values_that_yaml_can_hold_and_a_quantity_cannot(given_value: object):
    with pytest.raises(InvalidQuantity):
        Quantity.parse(given_value)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(
    ("number", "canonical"), [(2, "2"), (0.5, "500m"), (1e22, "9223372036854775807e0"), (-3, "-3")]
)
def test_bare_numbers_are_quantities(number: float, canonical: str):
    assert Quantity.parse(number) == Quantity.parse(canonical)


def test_rounding_to_units_counts_a_broken_unit_whole():
    assert Quantity.parse("1m").round_up() == 1
    assert Quantity.parse("1001m").round_up() == 2
    assert Quantity.parse("1u").to_milli() == 1
    assert Quantity.parse("-1500m").round_up() == -2


def test_a_sum_is_written_like_its_first_part_unless_that_is_zero():
    assert str(Quantity.parse("1Gi") + Quantity.parse("1024")) == "1048577Ki"
    assert str(Quantity.parse("0") + Quantity.parse("1Gi")) == "1Gi"
    assert str(Quantity.parse("1Gi") - Quantity.parse("1Mi")) == "1023Mi"
    assert str(3 * Quantity.parse("500m")) == "1500m"


def test_a_quantity_is_not_multiplied_by_what_is_not_whole():
    with pytest.raises(TypeError):
        Quantity.parse("1") * 1.5


def test_a_quantity_survives_copying_and_pickling():
    given = Quantity.parse("1Gi")
    for copied in (copy.copy(given), copy.deepcopy(given), pickle.loads(pickle.dumps(given))):
        assert (copied, str(copied)) == (given, "1Gi")


def test_a_number_that_python_itself_would_not_print_is_refused(reviewed: ReviewedSentences):
    with pytest.raises(InvalidQuantity) as raised:
        Quantity.parse(10**5000)
    reviewed(str(raised.value))


def test_a_quantity_cannot_be_changed():
    with pytest.raises(AttributeError):
        Quantity.parse("1").nano = 5


MANTISSAS = st.decimals(min_value=-(10**9), max_value=10**9, allow_nan=False, places=6).map(lambda d: format(d, "f"))
SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "e3": Fraction(1000),
    "e-3": Fraction(1, 1000),
}
TEXTS = st.tuples(MANTISSAS, st.sampled_from(sorted(SUFFIXES)))


def exact(text: tuple[str, str]) -> Fraction:
    return Fraction(text[0]) * SUFFIXES[text[1]]


@given(TEXTS)
def test_parsing_is_exact_up_to_a_billionth_and_never_rounds_towards_zero(text: tuple[str, str]):
    amount, parsed = exact(text), Quantity.parse("".join(text)).as_fraction()
    assert abs(amount) <= abs(parsed) < abs(amount) + Fraction(1, NANO)


@given(TEXTS)
def test_canonical_text_reads_back_as_the_same_quantity(text: tuple[str, str]):
    parsed = Quantity.parse("".join(text))
    again = Quantity.parse(str(parsed))
    assert again == parsed
    assert str(again) == str(parsed)


@given(TEXTS, TEXTS)
def test_order_is_that_of_exact_rationals(one: tuple[str, str], other: tuple[str, str]):
    a, b = Quantity.parse("".join(one)), Quantity.parse("".join(other))
    assert (a < b) == (a.as_fraction() < b.as_fraction())
    assert (a == b) == (a.as_fraction() == b.as_fraction())
    if a == b:
        assert hash(a) == hash(b)
    if abs(exact(one) - exact(other)) > Fraction(2, NANO):
        assert (a < b) == (exact(one) < exact(other))


@given(st.integers(-(2**62), 2**62), st.sampled_from(Format))
def test_whole_numbers_survive_in_every_format(whole: int, written_as: Format):
    assert Quantity.parse(str(Quantity.from_int(whole, written_as))).round_up() == whole


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_an_invalid_one(text: str):
    try:
        parsed = Quantity.parse(text)
    except InvalidQuantity:
        return
    assert Quantity.parse(str(parsed)) == parsed
