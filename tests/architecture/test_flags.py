"""Every flag of the node autoscaler has a description, which help, the flag list and the reference page show."""

from __future__ import annotations

from plimsoll.nodes.config.options import FLAGS
from tests.architecture.source_tree import REPOSITORY


def test_every_flag_has_a_description_that_is_one_plain_text():
    for flag in FLAGS.values():
        assert flag.description.endswith("."), flag.name
        assert flag.description[0].isalnum(), flag.name
        assert "\n" not in flag.description, flag.name
        assert len(flag.description) > len("Name of the lease"), flag.name


def test_the_reference_page_describes_every_flag():
    page = (REPOSITORY / "docs" / "reference" / "node-flags.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1].removeprefix("--"): line for line in page.splitlines() if line.startswith("| `--")}
    assert rows.keys() == FLAGS.keys()
    assert [name for name, flag in FLAGS.items() if flag.description not in rows[name].replace("\\|", "|")] == []
