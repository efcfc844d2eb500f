"""Apache Kafka as it runs here: jars that Maven fetched once, and an archive of loaded classes.

Both are in the user's cache directory. `PLIMSOLL_KAFKA_JARS` names a folder of jars to use instead.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from plimsoll.core.errors import PlimsollError

if TYPE_CHECKING:
    from collections.abc import Iterator

KAFKA_VERSION: Final = "4.3.1"
METADATA_VERSION: Final = "4.3-IV0"
JARS_VARIABLE: Final = "PLIMSOLL_KAFKA_JARS"
_LOG4J_VERSION: Final = "2.25.3"
_FETCH_S: Final = 600
_DEFAULT_HEAP_MB: Final = 192
_POM: Final = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>plimsoll</groupId><artifactId>kafka-class-path</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>{_LOG4J_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-core</artifactId><version>{_LOG4J_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""
_LOG4J: Final = """\
<Configuration status="ERROR">
  <Appenders><Console name="out" target="SYSTEM_OUT"><PatternLayout pattern="%d %p %m (%c)%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""
_NEEDED: Final = {
    "java": "Java 17 or later (java), which runs the brokers",
    "setpriv": "setpriv (util-linux), which ends the brokers when their parent dies",
}
_LEAST_JAVA: Final = 17
_VERSION: Final = re.compile(r'version "(\d+)')
_MAVEN: Final = "Maven (mvn), which fetches Kafka once"


class DistributionMissing(PlimsollError):
    """Real Kafka cannot run on this machine. The message names everything that is missing."""

    exit_code: ClassVar[int] = 2


_IF_PARENT_LIVES: Final = 'test "$PPID" = "$1" || exit 1; shift; exec "$@"'
"""A parent that died before the signal was requested would leave its process behind."""


class KafkaDistribution(NamedTuple):
    """How a Kafka process starts."""

    class_path: str
    log4j: Path
    archive: Path
    """The class-data archive, which halves the time of a start. It may be missing."""

    def build_command(
        self, *arguments: str, heap_mb: int = _DEFAULT_HEAP_MB, dump_archive: Path | None = None
    ) -> list[str]:
        """The command line of a process that is killed when the thread that starts it ends, however it ends."""
        archive = []
        if dump_archive is not None:
            archive = [f"-XX:ArchiveClassesAtExit={dump_archive}"]
        elif self.archive.exists():
            archive = [f"-XX:SharedArchiveFile={self.archive}"]
        flags = ["-Xms96m", f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        flags += ["-Xlog:cds=off", "-Xlog:cds+dynamic=off", f"-Dlog4j2.configurationFile={self.log4j}"]
        return [
            _find("setpriv"),
            "--pdeathsig",
            "KILL",
            *("/bin/sh", "-c", _IF_PARENT_LIVES, "sh", str(os.getpid())),
            _find("java"),
            *flags,
            *archive,
            "-cp",
            self.class_path,
            *arguments,
        ]


def find_distribution() -> KafkaDistribution:
    """The distribution; it is fetched if it is not there yet. Raises `DistributionMissing`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = cache / "plimsoll" / f"kafka-{KAFKA_VERSION}"
    chosen = os.environ.get(JARS_VARIABLE)
    jars = Path(chosen) if chosen else directory / "jars"
    if missing := list_missing(jars, is_chosen=bool(chosen)):
        raise DistributionMissing(f"real Kafka brokers need: {'; '.join(missing)}")
    directory.mkdir(parents=True, exist_ok=True)
    with _lock(directory / "lock"):
        if not jars.is_dir():
            _fetch(directory, jars)
        log4j = directory / "log4j2.xml"
        log4j.write_text(_LOG4J)
        class_path = ":".join(sorted(str(jar) for jar in jars.glob("*.jar")))
        java = _read_java_version()
        digest = hashlib.sha256(f"{java}{class_path}".encode()).hexdigest()[:12]
        return KafkaDistribution(class_path, log4j, directory / f"classes-{digest}.jsa")


def _read_java_version() -> str:
    """What Java says about itself. Raises `DistributionMissing` if it is too old, or does not run."""
    command = [_find("java"), "-version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stderr  # noqa: S603 - the java on PATH
    found = _VERSION.search(printed)
    if found is None or int(found[1]) < _LEAST_JAVA:
        first = printed.strip().splitlines()[0][:200] if printed.strip() else "it prints nothing"
        raise DistributionMissing(f"real Kafka brokers need Java {_LEAST_JAVA} or later; java -version: {first}")
    return printed


def list_missing(jars: Path, *, is_chosen: bool) -> list[str]:
    """What this machine lacks. `is_chosen`: the user named the folder of jars, and nothing is fetched into it."""
    missing = [what for command, what in _NEEDED.items() if shutil.which(command) is None]
    if jars.is_dir():
        return missing if any(jars.glob("*.jar")) else [*missing, f"jars of Kafka in {jars}, which has none"]
    if is_chosen:
        return [*missing, f"the folder {jars} that {JARS_VARIABLE} names"]
    return missing if shutil.which("mvn") is not None else [*missing, _MAVEN]


def _fetch(directory: Path, jars: Path) -> None:
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        Path(scratch, "pom.xml").write_text(_POM)
        command = [_find("mvn"), "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={scratch}/jars"]
        try:
            fetched = subprocess.run(  # noqa: S603 - the mvn on PATH, with words from here
                command,
                cwd=scratch,
                capture_output=True,
                text=True,
                check=False,
                timeout=_FETCH_S,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise DistributionMissing(f"Maven did not fetch Kafka {KAFKA_VERSION} within {_FETCH_S} s") from None
        if fetched.returncode != 0:
            raise DistributionMissing(f"Maven cannot fetch Kafka {KAFKA_VERSION}: {fetched.stdout.strip()[-500:]}")
        Path(scratch, "jars").rename(jars)


def _find(command: str) -> str:
    return shutil.which(command) or command


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One process at a time: several may start together."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
