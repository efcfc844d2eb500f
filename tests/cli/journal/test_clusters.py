"""`--cluster ID`: a cluster of `plimsoll up`, by its id or the beginning of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll.cli.journal.clusters import find_cluster_folder
from plimsoll.core.errors import InvalidInput


@pytest.fixture
def data(tmp_path: Path) -> str:
    for name in ("abc1", "abd2", "abd"):
        (tmp_path / "clusters" / name).mkdir(parents=True)
    return str(tmp_path)


@pytest.mark.parametrize(("given", "found"), [("abc1", "abc1"), ("abc", "abc1"), ("abd", "abd"), ("abd2", "abd2")])
def test_an_id_or_its_beginning_names_a_cluster(data: str, given: str, found: str):
    assert find_cluster_folder(data, given) == str(Path(data, "clusters", found))


@pytest.mark.parametrize(("given", "problem"), [("ab", "3 clusters begin with 'ab'"), ("x", "no cluster has the id")])
def test_other_names_are_refused_with_the_clusters_that_exist(data: str, given: str, problem: str):
    with pytest.raises(InvalidInput) as refused:
        find_cluster_folder(data, given)
    assert problem in str(refused.value)
    assert "abc1, abd, abd2" in str(refused.value)


def test_a_directory_without_clusters_is_named(tmp_path: Path):
    with pytest.raises(InvalidInput, match="has no clusters; --data names the directory of plimsoll up"):
        find_cluster_folder(str(tmp_path), "c")


def test_the_directory_of_the_kubeconfig_is_used(data: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/elsewhere/config:{data}/kubeconfig")
    assert find_cluster_folder("", "abc1") == str(Path(data, "clusters", "abc1"))
