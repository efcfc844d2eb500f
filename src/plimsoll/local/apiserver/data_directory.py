"""The data directory of a server: its layout, its version, and files that only the owner can read.

    schema-version   of this layout; a newer one is rejected
    objects.sqlite3  the store (and its lock)
    pki/             certificates and keys
    admin.token      the token of the kubeconfig's user
    signing.key      signs the tokens of ServiceAccounts
    kubeconfig

Every file is written whole or not at all. Permissions of other users are removed at the start. The store holds the
directory's lock, so nothing here needs one.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.local.apiserver.storage import SchemaTooNew, StoreCorrupt, StoreUnusable
from plimsoll.local.apiserver.storage.drivers.store_file import DATA_FILE, lock_directory
from plimsoll.runtime.atomic_files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plimsoll.core.entropy import Entropy

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

SCHEMA_VERSION: Final = 1
_VERSION_FILE: Final = "schema-version"
_SECRETS: Final = "pki"
_TOKEN_FILE: Final = "admin.token"  # noqa: S105 -- a file's name
_SIGNING_KEY_FILE: Final = "signing.key"
_KUBECONFIG: Final = "kubeconfig"
_SHORTEST_SECRET: Final = 32


class DataDirectory:
    """The data directory; it is created if missing."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        with _explain_errors(self.root, "cannot be used as data directory"):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._close_to_others()
            (self.root / _SECRETS).mkdir(mode=0o700, exist_ok=True)
        self._check_version()

    def _close_to_others(self) -> None:
        """Take the rights of group and others from the directory and its store: they hold keys and Secrets.

        Raises if any user could have put files there, or if the directory is another user's: nothing in it can be
        trusted then.
        """
        mode = self.root.stat().st_mode & 0o777
        if mode & 0o002 and any(self.root.iterdir()):
            problem = f"every user can write to it (mode {mode:04o}), so the keys in it may be another user's"
            raise StoreUnusable(self.root, f"{problem}; check its files, then chmod 700 {self.root}")
        stored = [self.root / f"{DATA_FILE}{suffix}" for suffix in ("", "-wal", "-shm")]
        for place, closed in ((self.root, 0o700), (self.root / _SECRETS, 0o700), *((file, 0o600) for file in stored)):
            if place.exists() and (mode := place.stat().st_mode & 0o777) & 0o077:
                with _explain_errors(place, f"is open to others (mode {mode:04o}) and cannot be closed to them"):
                    place.chmod(closed)
                log.warning("data_directory.closed_to_others", path=str(place), mode=f"{mode:04o}", now=f"{closed:04o}")

    def check_store(self) -> None:
        """Raise if the store is empty though a server has served from it: it was cut off, and its objects are lost.

        Without the file a new store is begun, as at the first start.
        """
        file, log_file = self.root / DATA_FILE, self.root / f"{DATA_FILE}-wal"
        has_served = (self.root / _KUBECONFIG).exists()
        is_empty = file.exists() and not file.stat().st_size and not (log_file.exists() and log_file.stat().st_size)
        if has_served and is_empty:
            problem = "is empty, though a server has run here: what was in it is lost"
            raise StoreCorrupt(file, f"{problem}; restore a copy of it, or start over with --fresh")

    def _check_version(self) -> None:
        file = self.root / _VERSION_FILE
        kept = self._read(file)
        if kept is None:
            self._write(file, f"{SCHEMA_VERSION}\n".encode())
            return
        try:
            found = int(kept)
        except ValueError:
            raise StoreCorrupt(file, "does not hold a version number") from None
        if found > SCHEMA_VERSION:
            raise SchemaTooNew(file, found=found, known=SCHEMA_VERSION)

    def forget_objects(self) -> None:
        """Empty the store. Certificates and the token stay, so that a copied kubeconfig stays valid."""
        lock = lock_directory(self.root)
        try:
            for suffix in ("", "-wal", "-shm"):
                file = self.root / f"{DATA_FILE}{suffix}"
                with _explain_errors(file, "cannot be removed"):
                    file.unlink(missing_ok=True)
        finally:
            lock.release()

    def load_admin_token(self, entropy: Entropy) -> str:
        """The administrator's token, made at the first start. A person may have put one there instead."""
        return self._read_or_create(self.root / _TOKEN_FILE, entropy)

    def load_signing_key(self, entropy: Entropy) -> bytes:
        return self._read_or_create(self.root / _SIGNING_KEY_FILE, entropy).encode("ascii")

    def _read_or_create(self, file: Path, entropy: Entropy) -> str:
        kept = self._read(file)
        if kept is None:
            made = entropy.generate_token()
            self._write(file, f"{made}\n".encode())
            return made
        text = kept.strip()
        if len(text) < _SHORTEST_SECRET or not text.isascii() or not text.decode("ascii").isprintable():
            raise StoreCorrupt(file, f"is not a line of {_SHORTEST_SECRET} characters or more; remove it for a new one")
        return text.decode("ascii")

    def read_kubeconfig(self) -> bytes:
        """Empty: there is none."""
        return self._read(self.root / _KUBECONFIG) or b""

    def write_kubeconfig(self, content: bytes) -> Path:
        file = self.root / _KUBECONFIG
        self._write(file, content)
        return file

    # ---- keys and certificates

    def get_secret_path(self, name: str) -> Path:
        return self.root / _SECRETS / name

    def read_secret(self, name: str) -> bytes | None:
        return self._read(self.get_secret_path(name))

    def write_secret(self, name: str, content: bytes) -> None:
        self._write(self.get_secret_path(name), content)

    def build_damaged_error(self, name: str, problem: str) -> StoreCorrupt:
        file = self.get_secret_path(name)
        return StoreCorrupt(file, f"{problem}; remove it, and a new one is made")

    # ---- files

    def _read(self, file: Path) -> bytes | None:
        with _explain_errors(file, "cannot be read"):
            try:
                content = file.read_bytes()
            except FileNotFoundError:
                return None
            if file.stat().st_mode & 0o077:
                file.chmod(0o600)
        return content

    def _write(self, file: Path, content: bytes) -> None:
        with _explain_errors(file, "cannot be written"):
            replace_file(file, content)


@contextmanager
def _explain_errors(file: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnusable(file, f"{what}: {error.strerror}") from error
