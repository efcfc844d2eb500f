from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.field_selectors import FieldSelector, FieldTerm, parse_field_selector

TERMS = st.builds(
    FieldTerm,
    field=st.sampled_from(["metadata.name", "spec.nodeName", "status.phase"]),
    value=st.text(alphabet="ab\\,=! ", max_size=6),
    equal=st.booleans(),
)


@pytest.mark.parametrize(
    ("text", "fields", "selected"),
    [
        ("", {"metadata.name": "x"}, True),
        ("metadata.name=x", {"metadata.name": "x"}, True),
        ("metadata.name==x", {"metadata.name": "x"}, True),
        ("metadata.name!=x", {"metadata.name": "x"}, False),
        ("spec.nodeName=", {}, True),
        ("spec.nodeName!=", {}, False),
        ("metadata.namespace=a,metadata.name=b", {"metadata.namespace": "a", "metadata.name": "b"}, True),
        ("metadata.namespace=a,metadata.name=b", {"metadata.namespace": "a", "metadata.name": "c"}, False),
        (",,metadata.name=x,", {"metadata.name": "x"}, True),
        (r"metadata.name=a\,b\=c\\d", {"metadata.name": r"a,b=c\d"}, True),
    ],
)
def test_matching(text: str, fields: dict[str, str], selected: bool):
    assert parse_field_selector(text).matches(fields) is selected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("metadata.name in (a)", "invalid selector: 'metadata.name in (a)'; can't understand 'metadata.name in (a)'"),
        ("a=b=c", "invalid field selector: unescaped character in value: ="),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_complaints_are_the_api_servers(text: str, complaint: str):
    with pytest.raises(InvalidSelector) as caught:
        parse_field_selector(text)

    assert caught.value.problem == complaint


def test_fields_and_exact_values_can_be_asked_for():
    selector = parse_field_selector("spec.nodeName=n1,metadata.name!=x")

    assert selector.fields == ("metadata.name", "spec.nodeName")
    assert selector.get_exact_value("spec.nodeName") == "n1"
    assert selector.get_exact_value("metadata.name") is None


@settings(max_examples=300, deadline=None)
@given(st.lists(TERMS, max_size=4))
def test_text_reads_back(terms: list[FieldTerm]):
    selector = FieldSelector(terms=tuple(sorted(terms, key=str)))

    assert parse_field_selector(str(selector)) == selector
