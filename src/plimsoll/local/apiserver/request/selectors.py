"""Label and field selectors of a request, as one predicate for stored objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.field_selectors import FieldSelector, FieldTerm, parse_field_selector
from plimsoll.core.label_selector_parsing import parse_label_selector
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.strategies.field_labels import FieldLabels

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.request.options import ListOptions
    from plimsoll.local.apiserver.resources.registry import ServedResource
    from plimsoll.local.apiserver.storage import Stored


def build_matcher(options: ListOptions, resource: ServedResource) -> Callable[[Stored], bool] | None:
    """None if everything is selected; raises the 400 for selectors that cannot be read or asked of this kind."""
    try:
        labels = parse_label_selector(options.label_selector) if options.label_selector else None
        fields = parse_field_selector(options.field_selector) if options.field_selector else None
    except InvalidSelector as error:
        raise status_errors.bad_request(error.problem) from error
    by_fields = None if fields is None else _as_stored(fields, resource)
    if labels is not None and labels.is_empty:
        labels = None
    if labels is None and by_fields is None:
        return None
    if by_fields is None:
        assert labels is not None
        by_labels = labels.matches
        return lambda stored: by_labels(stored.labels)
    if labels is None:
        return lambda stored: by_fields.matches(stored.fields)
    return lambda stored: labels.matches(stored.labels) and by_fields.matches(stored.fields)


def _as_stored(selector: FieldSelector, resource: ServedResource) -> FieldSelector | None:
    known = FieldLabels(resource)
    terms = []
    for term in selector.terms:
        name = known.find_stored_name(term.field)
        if name is None:
            raise status_errors.bad_request(known.describe_unsupported_label(term.field))
        terms.append(FieldTerm(field=name, value=term.value, equal=term.equal))
    return FieldSelector(terms=tuple(terms)) if terms else None
