"""Functions on text: standard, strings extension, regex, format."""

from __future__ import annotations

import pytest

from tests.objects.cel.expressions import evaluated, failure, refusal


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')", True),
        ("'hello'.matches('l+') && matches('hello', '^h.*o$') && !'hello'.matches('^l')", True),
        ("'héllo'.charAt(1)", "é"),
        ("'abc'.charAt(3)", ""),
        ("'hello mellow'.indexOf('ello')", 1),
        ("'hello mellow'.indexOf('ello', 2)", 7),
        ("'hello'.indexOf('')", 0),
        ("'hello'.indexOf('x')", -1),
        ("'hello mellow'.lastIndexOf('ello')", 7),
        ("'hello mellow'.lastIndexOf('ello', 6)", 1),
        ("'hello'.lastIndexOf('')", 5),
        ("'ÄbC'.lowerAscii() + 'äbC'.upperAscii()", "ÄbcäBC"),
        ("'hello hello'.replace('he', 'we')", "wello wello"),
        ("'hello hello'.replace('he', 'we', 1)", "wello hello"),
        ("'hello'.replace('he', 'we', 0)", "hello"),
        ("'ab'.replace('', '_')", "_a_b_"),
        ("'a b c'.split(' ')", ["a", "b", "c"]),
        ("'a b c'.split(' ', 2)", ["a", "b c"]),
        ("'a b'.split(' ', 0)", []),
        ("'a b c'.split(' ', -1)", ["a", "b", "c"]),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("['a', 'b'].join() + ['c', 'd'].join('-')", "abc-d"),
        ("'tacocat'.substring(4)", "cat"),
        ("'tacocat'.substring(0, 4)", "taco"),
        ("' \\t x\\u00a0\\n'.trim()", "x"),
        ("strings.quote('a\"b\\n')", '"a\\"b\\n"'),
        ("'abc 123'.find('[0-9]+')", "123"),
        ("'abc'.find('[0-9]+')", ""),
        ("'1a2b3'.findAll('[0-9]')", ["1", "2", "3"]),
        ("'1a2b3'.findAll('[0-9]', 2)", ["1", "2"]),
        ("'1a2b3'.findAll('[0-9]', 0)", []),
    ],
)
def test_functions_on_text(source: str, value: object):
    assert evaluated(source) == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("'abc'.charAt(4)", "index out of range: 4"),
        ("'abc'.substring(4)", "index out of range: 4"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("'abc'.indexOf('a', 9)", "index out of range: 9"),
        ("'x'.matches(dyn('['))", "error parsing regexp: missing closing ]: `[`"),
    ],
)
def test_text_functions_fail_on_bad_positions_and_patterns(source: str, message: str):
    assert failure(source) == message


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("'%s is %s'.format(['a', 'b'])", "a is b"),
        ("'%d%%'.format([50])", "50%"),
        ("'%.2f'.format([3.14159])", "3.14"),
        ("'%f'.format([1.5])", "1.500000"),
        ("'%e'.format([1234.5])", "1.234500e+03"),
        ("'%x %X'.format([255, 255])", "ff FF"),
        ("'%x'.format(['hi'])", "6869"),
        ("'%b %o'.format([5, 8])", "101 10"),
        ("'%s'.format([[1, 2]])", "[1, 2]"),
        ("'%s'.format([{'b': 1, 'a': 2}])", "{a: 2, b: 1}"),
        ("'%s %s'.format([dyn(true), dyn(null)])", "true null"),
        ("'%s'.format([duration('90s')])", "90s"),
    ],
)
def test_format_fills_in_its_clauses(source: str, value: object):
    assert evaluated(source) == value


def test_format_needs_as_many_arguments_as_clauses():
    assert failure("'%s %s'.format(['a'])") == "index 1 out of range"


def test_format_wants_a_number_for_a_decimal_clause():
    assert failure("'%d'.format(['a'])") == (
        "error during formatting: decimal clause can only be used on integers, was given string"
    )


def test_mixed_arguments_of_format_are_a_mixed_list_and_refused():
    assert "expected type 'string' but found 'int'" in refusal("'%s %d'.format(['a', 1])")


def test_reverse_is_not_offered_by_this_version():
    assert "undeclared reference to 'reverse'" in refusal("'abc'.reverse()")


def test_lone_surrogates_from_json_do_not_break_patterns():
    assert evaluated("self.matches('b$')", self="\ud800b") is True
