from __future__ import annotations

from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from plimsoll.objects.owners import LONGEST_CHAIN, OwnerChain, controller_of, owner_chain


def owned(name: str, *, by: str = "", uid: str | None = None, controller: bool = True) -> ObjectMeta:
    owner = OwnerReference(api_version="v1", kind="Kind", name=by, uid=f"uid-{by}", controller=controller)
    return ObjectMeta(name=name, uid=f"uid-{name}" if uid is None else uid, owner_references=(owner,) if by else ())


def chain(start: ObjectMeta, *others: ObjectMeta) -> OwnerChain:
    known = {meta.name: meta for meta in others}
    return owner_chain(start, lambda owner, _: known.get(owner.name))


def names(links: tuple[OwnerReference, ...]) -> list[str]:
    return [link.name for link in links]


def test_an_object_without_owners_has_no_chain():
    assert chain(owned("a")) == OwnerChain()


def test_the_chain_leads_to_the_topmost_controller():
    found = chain(owned("pod", by="set"), owned("set", by="deployment"), owned("deployment"))
    assert names(found.links) == ["set", "deployment"]
    assert found.topmost
    assert found.topmost.name == "deployment"
    assert found.problem == ""


def test_only_the_controller_among_the_owners_counts():
    assert controller_of(owned("pod", by="config", controller=False)) is None
    assert chain(owned("pod", by="config", controller=False), owned("config")).links == ()


def test_a_missing_owner_is_named():
    found = chain(owned("pod", by="set"))
    assert names(found.links) == ["set"]
    assert found.problem == "Kind/set does not exist"


def test_an_owner_made_anew_under_the_same_name_is_another_object():
    assert chain(owned("pod", by="set"), owned("set", uid="later")).problem == "Kind/set does not exist"


def test_owners_from_files_need_no_uid():
    owner = OwnerReference(api_version="v1", kind="Kind", name="set", controller=True)
    found = chain(ObjectMeta(name="pod", owner_references=(owner,)), ObjectMeta(name="set"))
    assert names(found.links) == ["set"]
    assert found.problem == ""


def test_a_ring_of_owners_is_an_answer():
    found = chain(owned("a", by="b"), owned("b", by="c"), owned("c", by="a"))
    assert found.problem == "owner references form a ring: Kind/b -> Kind/c -> Kind/a"
    assert names(found.links) == ["b", "c"]


def test_an_object_that_owns_itself_is_a_ring():
    assert chain(owned("a", by="a"), owned("a", by="a")).problem == "owner references form a ring: Kind/a"


def test_an_endless_chain_is_cut():
    asked = []

    def endless(owner: OwnerReference, _namespace: str) -> ObjectMeta:
        asked.append(owner.name)
        return owned(owner.name, by=f"{owner.name}x")

    found = owner_chain(owned("a", by="b"), endless)
    assert found.problem == f"more than {LONGEST_CHAIN} owners, one above the other"
    assert len(asked) == LONGEST_CHAIN
