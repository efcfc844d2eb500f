from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema import go_text
from plimsoll.objects.schema.go_text import GoStruct


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (fields.required("spec.a"), "spec.a: Required value"),
        (fields.required("spec.a", "because"), "spec.a: Required value: because"),
        (fields.invalid("spec.a", 0, "must be positive"), "spec.a: Invalid value: 0: must be positive"),
        (fields.invalid("spec.a", None, "must be set"), "spec.a: Invalid value: null: must be set"),
        (fields.invalid("spec.a", value=True, detail="must not"), "spec.a: Invalid value: true: must not"),
        (fields.invalid("spec.a", 0.5, "must be whole"), "spec.a: Invalid value: 0.5: must be whole"),
        (fields.invalid("", "x", "is odd"), '<nil>: Invalid value: "x": is odd'),
        (fields.not_supported("a", "c", ["x", "y"]), 'a: Unsupported value: "c": supported values: "x", "y"'),
        (fields.forbidden("a", "not here"), "a: Forbidden: not here"),
        (fields.duplicate("a[1]", {"b": 1, "a": "x"}), 'a[1]: Duplicate value: {"a":"x","b":1}'),
        (fields.too_long("a", 3), "a: Too long: may not be more than 3 bytes"),
        (fields.too_many("a", 4, 3), "a: Too many: 4: must have at most 3 items"),
        (fields.type_invalid("a", "string", "no"), 'a: Invalid value: "string": no'),
        (fields.not_found("a", "b"), 'a: Not found: "b"'),
        (fields.internal_error("a", "oops"), "a: Internal error: oops"),
    ],
)
def test_an_error_reads_as_kubernetes_writes_it(error: fields.FieldError, text: str):
    assert error.text == text


def test_text_is_quoted_as_go_quotes_it():
    assert go_text.quote('a"b\\c\n\x01é\u2028😀') == '"a\\"b\\\\c\\n\\x01é\\u2028😀"'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1_000_000, "1000000"),
        (1_000_000.0, "1e+06"),
        (123456.0, "123456"),
        (1234567.5, "1.2345675e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-2.5, "-2.5"),
        (0.0, "0"),
    ],
)
def test_numbers_are_printed_as_go_prints_them(value: float, text: str):
    assert go_text.format_number(value) == text


def test_structs_keep_their_order_and_markup_is_escaped():
    struct = GoStruct(fields={"Rule": "a > b && c", "Message": "", "Reason": None})

    assert go_text.as_json(struct) == '{"Rule":"a \\u003e b \\u0026\\u0026 c","Message":"","Reason":null}'


def test_a_single_error_has_no_brackets_and_repeated_ones_are_named_once():
    one, other = fields.required("a"), fields.required("b")

    assert fields.format_aggregate([one]) == "a: Required value"
    assert fields.format_aggregate([one, other, one]) == "[a: Required value, b: Required value]"


def test_the_status_of_a_refusal_names_the_object_and_every_cause():
    status = fields.build_invalid_status(kind="Pod", group="", name="a", errors=[fields.required("spec")])

    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Pod "a" is invalid: spec: Required value',
        "reason": "Invalid",
        "details": {
            "name": "a",
            "kind": "Pod",
            "causes": [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec"}],
        },
        "code": 422,
    }


def test_of_many_errors_the_first_are_listed_and_the_rest_is_counted():
    errors = [fields.required(f"spec[{number}]") for number in range(100_000)]
    status = fields.build_invalid_status(kind="Pod", group="", name="a", errors=errors)
    assert len(status["details"]["causes"]) == fields.MAX_LISTED_ERRORS
    assert status["message"].endswith(f"(and {100_000 - fields.MAX_LISTED_ERRORS} more errors)")


@given(text=st.text(alphabet='ab"\\é\n\u202e\U0001f4a9 \t', max_size=8))
def test_texts_are_quoted_character_by_character_as_go_quotes_them(text: str):
    quoted = "".join(go_text.quote(character)[1:-1] for character in text)
    assert go_text.quote(text) == f'"{quoted}"'
