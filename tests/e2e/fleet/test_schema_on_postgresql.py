"""Migrations, secrets, interleavings and transfer on PostgreSQL: the tests of SQLite, with another database."""

# ruff: noqa: F403 - the tests of these modules are the tests here
from tests.fleet.store.test_interleavings import *
from tests.fleet.store.test_migrations import *
from tests.fleet.store.test_secrets import *
from tests.fleet.store.test_transfer import *
