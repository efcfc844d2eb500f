"""Hashes of templates: what they depend on."""

from __future__ import annotations

from plimsoll.local.controller_manager.workloads.controlled_objects.template_hash import (
    compute_fingerprint,
    compute_template_hash,
)


def test_the_hash_label_does_not_distinguish_templates_and_everything_else_does():
    plain = {"metadata": {"labels": {"app": "a"}}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    labelled = {**plain, "metadata": {"labels": {"app": "a", "pod-template-hash": "x"}}}
    other = {**plain, "spec": {"volumes": [{"name": "v"}]}}
    assert compute_fingerprint(plain) == compute_fingerprint(labelled) != compute_fingerprint(other)


def test_the_hash_depends_on_collisions_and_not_on_the_order_of_fields():
    one, other = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert compute_template_hash(one) == compute_template_hash(other)
    assert len({compute_template_hash(one), compute_template_hash(one, 1), compute_template_hash(one, 2)}) == 3
    assert set(compute_template_hash(one)) <= set("bcdfghjklmnpqrstvwxz2456789")
