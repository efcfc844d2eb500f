"""The contract of the store on PostgreSQL: the tests of SQLite, with another database."""

# ruff: noqa: F403 - the tests of these modules are the tests here
from tests.fleet.store.test_clusters import *
from tests.fleet.store.test_concurrent_writers import *
from tests.fleet.store.test_kafkas import *
from tests.fleet.store.test_leases import *
from tests.fleet.store.test_search import *
from tests.fleet.store.test_unusable_values import *
