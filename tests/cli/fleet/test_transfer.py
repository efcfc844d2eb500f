"""`plimsoll fleet export` and `import`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.fleet.evaluate_documents import make_cluster_row, make_document, make_kafka_row
from tests.cli.runner import REPOSITORY, plimsoll

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = REPOSITORY / "examples" / "fleet" / "config"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/fleet.sqlite3"


def import_document(url: str, document: Any, *options: str):
    return plimsoll("fleet", "import", "-f", "-", "--database-url", url, *options, stdin=json.dumps(document))


def export(url: str, *options: str) -> dict[str, Any]:
    found = plimsoll("fleet", "export", "--database-url", url, "-o", "json", *options)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def build_document(**fields: Any) -> dict[str, Any]:
    clusters = [make_cluster_row("a"), make_cluster_row("b", retire_requested_at="2025-01-02T00:00:00Z")]
    kafkas = [make_kafka_row("k", "a"), make_kafka_row("w", count=3)]
    return make_document(clusters=clusters, kafkas=kafkas, **fields)


def test_an_imported_fleet_is_exported_and_evaluated_alike(url: str):
    document = build_document()
    imported = import_document(url, document)
    assert imported.returncode == 0, imported.stderr
    found = export(url, "--config-dir", str(CONFIG))
    assert [row["id"] for row in found["clusters"]] == ["a", "b"]
    assert [row["id"] for row in found["kafkas"]] == ["k", "w-1", "w-2", "w-3"]
    given = document | {"now": "2026-01-01T00:00:00Z"}
    again = given | {"clusters": found["clusters"], "kafkas": found["kafkas"]}
    results = [
        plimsoll("fleet", "evaluate", "-f", "-", "-o", "json", stdin=json.dumps(part)) for part in (given, again)
    ]
    assert results[0].returncode == 0, results[0].stderr
    assert results[0].stdout == results[1].stdout


def test_the_output_of_export_is_the_input_of_evaluate(url: str):
    import_document(url, build_document())
    for form in ("yaml", "json"):
        found = plimsoll("fleet", "export", "--database-url", url, "--config-dir", CONFIG, "-o", form)
        evaluated = plimsoll("fleet", "evaluate", "-f", "-", "-o", "json", stdin=found.stdout)
        assert evaluated.returncode == 0, evaluated.stderr
        assert json.loads(evaluated.stdout)["scale_up"]["evaluations"]


def test_a_fleet_moves_from_one_database_to_another(url: str, tmp_path: Path):
    import_document(url, build_document())
    first = export(url)
    second_url = f"sqlite:///{tmp_path}/second.sqlite3"
    assert import_document(second_url, first).returncode == 0
    second = export(second_url)
    assert {**first, "now": ""} == {**second, "now": ""}


def test_without_a_directory_of_configuration_the_document_has_rows_only(url: str, tmp_path: Path):
    import_document(url, build_document())
    found = plimsoll("fleet", "export", "--database-url", url, cwd=tmp_path)
    assert found.returncode == 0
    assert "configuration" not in yaml.safe_load(found.stdout)
    assert "warning" in found.stderr


def test_secrets_are_imported_encrypted_and_not_exported(url: str, tmp_path: Path):
    document = build_document()
    document["clusters"][0]["client_secret"] = "s3cret"
    refused = import_document(url, document)
    assert refused.returncode == 2
    assert "--secrets-key-file" in refused.stderr
    key = tmp_path / "keys"
    key.write_text("one:" + "A" * 43 + "=\n")
    assert import_document(url, document, "--secrets-key-file", str(key)).returncode == 0
    assert "s3cret" not in json.dumps(export(url))
    assert b"s3cret" not in b"".join(file.read_bytes() for file in tmp_path.glob("fleet.sqlite3*"))


def test_secrets_move_with_the_keys_of_both_databases(url: str, tmp_path: Path):
    document = build_document()
    document["clusters"][0] |= {"client_id": "agent-a", "client_secret": "s3cret"}
    first_keys, second_keys, second_url = (
        tmp_path / "first",
        tmp_path / "second",
        f"sqlite:///{tmp_path}/second.sqlite3",
    )
    first_keys.write_text("one:" + "A" * 43 + "=\n")
    second_keys.write_text("two:" + "B" * 42 + "A=\n")
    assert import_document(url, document, "--secrets-key-file", str(first_keys)).returncode == 0
    moved = export(url, "--secrets-key-file", str(first_keys))
    assert moved["clusters"][0]["client_secret"] == "s3cret"
    assert import_document(second_url, moved, "--secrets-key-file", str(second_keys)).returncode == 0
    arrived = export(second_url, "--secrets-key-file", str(second_keys))
    assert {**moved, "now": ""} == {**arrived, "now": ""}
    wrong = plimsoll("fleet", "export", "--database-url", second_url, "--secrets-key-file", str(first_keys))
    assert (wrong.returncode, "s3cret" in wrong.stdout) == (2, False)


def test_the_default_database_has_its_keys_beside_it(tmp_path: Path):
    document = build_document()
    document["clusters"][0] |= {"client_id": "agent-a", "client_secret": "s3cret"}
    imported = plimsoll("fleet", "import", "-f", "-", stdin=json.dumps(document), cwd=tmp_path)
    assert imported.returncode == 0, imported.stderr
    keys = tmp_path / ".plimsoll" / "fleet-secrets.keys"
    assert keys.stat().st_mode & 0o077 == 0
    found = plimsoll("fleet", "export", "--secrets-key-file", keys, "-o", "json", cwd=tmp_path)
    assert json.loads(found.stdout)["clusters"][0]["client_secret"] == "s3cret"


def test_every_mistake_is_a_line_and_nothing_is_imported(url: str):
    document = build_document()
    document["clusters"][1]["status"] = "fine"
    document["kafkas"][0]["size"] = "x1"
    found = import_document(url, document)
    assert found.returncode == 2
    assert [line.split(":")[0] for line in found.stderr.splitlines()] == ["clusters[1].status", "kafkas[0].size"]
    assert plimsoll("fleet", "export", "--database-url", url).returncode == 2


def test_a_database_with_rows_needs_merge(url: str):
    import_document(url, build_document())
    other = make_document(clusters=[make_cluster_row("c")], kafkas=[])
    refused = import_document(url, other)
    assert (refused.returncode, "--merge" in refused.stderr) == (2, True)
    assert import_document(url, other, "--merge").returncode == 0
    taken = import_document(url, build_document(), "--merge")
    assert (taken.returncode, "clusters/a" in taken.stderr) == (2, True)
    assert [row["id"] for row in export(url)["clusters"]] == ["a", "b", "c"]


def test_the_url_may_be_in_a_file(url: str, tmp_path: Path):
    import_document(url, build_document())
    file = tmp_path / "url"
    file.write_text(f"{url}\n")
    found = plimsoll("fleet", "export", "--database-url-file", file, "-o", "json")
    assert len(json.loads(found.stdout)["clusters"]) == 2
    both = plimsoll("fleet", "export", "--database-url-file", file, "--database-url", url)
    none = plimsoll("fleet", "export", "--database-url-file", tmp_path / "none")
    assert (both.returncode, none.returncode) == (2, 2)


@pytest.mark.parametrize(
    ("url", "code"), [("mysql://ann:s3cret@db/x", 2), ("postgresql://ann:s3cret@127.0.0.1:9/fleet", 4)]
)
def test_a_database_that_cannot_be_used(url: str, code: int):
    found = plimsoll("fleet", "export", "--database-url", url)
    assert found.returncode == code
    assert "s3cret" not in found.stderr
