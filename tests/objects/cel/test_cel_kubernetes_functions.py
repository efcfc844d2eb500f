"""Kubernetes' libraries: lists, sets, quantities, addresses, versions, named formats."""

from __future__ import annotations

import pytest

from tests.objects.cel.expressions import evaluated, failure


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [1].isSorted()", True),
        ("[1, 3].sum() + [4].sum()", 8),
        ("[1.5, 2.5].sum()", 4.0),
        ("string([duration('1m'), duration('1s')].sum())", "61s"),
        ("[3, 1, 2].min() + [3, 1, 2].max()", 4),
        ("['b', 'a'].min()", "a"),
        ("[1, 2, 2, 3].indexOf(2) + [1, 2, 2, 3].lastIndexOf(2)", 3),
        ("[1].indexOf(5)", -1),
        ("dyn([1.5, 2.5]).sum()", 4.0),
        ("sets.contains([1, 2, 3], [1, 3]) && !sets.contains([1], [2])", True),
        ("sets.equivalent([1, 1, 2], [2, 1])", True),
        ("sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [])", True),
    ],
)
def test_lists_and_sets(source: str, value: object):
    assert evaluated(source) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("isQuantity('1.3Gi') && !isQuantity('200K') && !isQuantity('Three') && !isQuantity(' 1')", True),
        ("quantity('200M').compareTo(quantity('0.2G'))", 0),
        ("quantity('50Mi').compareTo(quantity('50M'))", 1),
        ("quantity('150Mi').isGreaterThan(quantity('100Mi'))", True),
        ("quantity('50M').isLessThan(quantity('100M'))", True),
        ("quantity('50k').add(quantity('20k')) == quantity('70k')", True),
        ("quantity('50k').sub(20000) == quantity('30k')", True),
        ("quantity('50k').asInteger()", 50000),
        ("quantity('1500m').isInteger()", False),
        ("quantity('1500m').asApproximateFloat()", 1.5),
        ("quantity('-1').sign() + sign(quantity('0'))", -1),
    ],
)
def test_quantities(source: str, value: object):
    assert evaluated(source) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (
            "isIP('127.0.0.1') && isIP('::1') && !isIP('1.2.3.256') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%e')",
            True,
        ),
        ("ip('127.0.0.1').family() + ip('::1').family()", 10),
        ("ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified()", True),
        ("ip('169.254.1.1').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast()", True),
        ("ip('10.0.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()", True),
        ("ip('2001:DB8::abcd') == ip('2001:db8::ABCD')", True),
        ("ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8::abcd')", True),
        ("string(ip('::0001'))", "::1"),
        ("isCIDR('192.168.0.0/24') && !isCIDR('192.168.0.0/33') && !isCIDR('192.168.0.0')", True),
        (
            "cidr('192.168.0.0/24').containsIP('192.168.0.1') && !cidr('192.168.0.0/24').containsIP(ip('192.168.1.1'))",
            True,
        ),
        (
            "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/7'))",
            True,
        ),
        ("string(cidr('192.168.1.5/24').masked())", "192.168.1.0/24"),
        ("string(cidr('192.168.1.5/24').ip())", "192.168.1.5"),
        ("cidr('192.168.0.0/24').prefixLength()", 24),
        ("isURL('https://user:pw@example.com:80/') && isURL('/path') && !isURL('../rel') && !isURL('')", True),
        ("url('https://example.com:80/').getScheme()", "https"),
        ("url('https://example.com:80/').getHost()", "example.com:80"),
        ("url('https://[::1]:80/').getHostname()", "::1"),
        ("url('https://example.com:80/').getPort() + url('https://example.com/').getPort()", "80"),
        ("url('https://example.com/with space/').getEscapedPath()", "/with%20space/"),
        ("url('https://e.com/?k1=a&k2=b&k2=c').getQuery()", {"k1": ["a"], "k2": ["b", "c"]}),
        ("url('/path').getHost()", ""),
    ],
)
def test_addresses(source: str, value: object):
    assert evaluated(source) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("isSemver('1.0.0-alpha.1+build') && !isSemver('1.0') && !isSemver('v1.0.0') && !isSemver('01.0.0')", True),
        ("isSemver('v1.0', true) && semver('v01.02', true) == semver('1.2.0')", True),
        ("semver('1.2.3').major() * 100 + semver('1.2.3').minor() * 10 + semver('1.2.3').patch()", 123),
        ("semver('1.0.0-alpha').isLessThan(semver('1.0.0'))", True),
        ("semver('1.0.0-2').isLessThan(semver('1.0.0-10'))", True),
        ("semver('1.0.0-2').isLessThan(semver('1.0.0-a'))", True),
        ("semver('1.10.0').compareTo(semver('1.9.9'))", 1),
        ("semver('1.0.0+a') == semver('1.0.0+b')", True),
    ],
)
def test_versions(source: str, value: object):
    assert evaluated(source) == value


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("dns1123Label", "my-name", "My-name"),
        ("dns1123Subdomain", "a.b", "a..b"),
        ("dns1035Label", "a1", "1a"),
        ("qualifiedName", "example.com/Name", "a/b/c"),
        ("dns1123LabelPrefix", "my-prefix-", "-x"),
        ("dns1123SubdomainPrefix", "my.prefix-", ".x"),
        ("dns1035LabelPrefix", "my-prefix-", "1-"),
        ("labelValue", "", "-"),
        ("uri", "http://example.com", "example"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("byte", "aGVsbG8=", "aGVsbG8"),
        ("date", "2021-01-01", "2021-13-01"),
        ("datetime", "2021-01-01T00:00:00Z", "2021-01-01"),
    ],
)
def test_a_named_format_returns_nothing_for_good_text_and_complaints_for_bad(name: str, good: str, bad: str):
    assert evaluated(f"format.{name}().validate(self).hasValue()", self=good) is False
    assert evaluated(f"format.named('{name}').value().validate(self).value().size() > 0", self=bad) is True


def test_an_unknown_format_is_none():
    assert evaluated("format.named('nonsense').hasValue()") is False


def test_a_formats_complaint_is_in_kubernetes_words():
    assert evaluated("format.dns1123Label().validate('A').value()[0]") == (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("[1].filter(x, x > 1).min()", "min called on empty list"),
        ("[1].filter(x, x > 1).max()", "max called on empty list"),
        ("quantity('1.5').asInteger()", "cannot convert value to integer"),
        (
            "quantity('x')",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("ip('x')", 'IP Address "x" parse error during conversion from string: unable to parse IP'),
        ("cidr('1.2.3.4/x')", "network address parse error during conversion from string: bad prefix length"),
        ("url('x')", 'URL parse error during conversion from string: parse "x": invalid URI for request'),
        ("semver('1.0')", "No Major.Minor.Patch elements found"),
    ],
)
def test_what_the_libraries_refuse(source: str, message: str):
    assert failure(source) == message
