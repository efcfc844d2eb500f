"""The program of real Kafka brokers: jars from Maven and an archive of loaded classes, kept between runs.

They are in the user's cache directory. `PLIMSOLL_KAFKA_JARS` names a folder of jars to use instead.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

KAFKA_VERSION: Final = "4.3.1"
_LOG4J_VERSION: Final = "2.25.3"
_FETCH_S: Final = 600
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


class KafkaProgram(NamedTuple):
    """How a Kafka process starts."""

    class_path: str
    log4j: Path
    archive: Path
    """The class-data archive, which halves the time of a start. It may be missing."""

    def build_command(self, *arguments: str, heap_mb: int = 192, dump_archive: Path | None = None) -> list[str]:
        """The command line. The processes end with the thread that starts them, however the test run ends."""
        tie = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        archive = []
        if dump_archive is not None:
            archive = [f"-XX:ArchiveClassesAtExit={dump_archive}"]
        elif self.archive.exists():
            archive = [f"-XX:SharedArchiveFile={self.archive}"]
        flags = ["-Xms96m", f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        flags += ["-Xlog:cds=off", "-Xlog:cds+dynamic=off", f"-Dlog4j2.configurationFile={self.log4j}"]
        return [*tie, "java", *flags, *archive, "-cp", self.class_path, *arguments]


def need_kafka_program() -> KafkaProgram:
    """The program. Where Java, or Maven and no jars, are missing the tests are skipped and say so."""
    if shutil.which("java") is None:
        pytest.skip("NOT TESTED: real Kafka needs Java 17, and there is no java on PATH")
    home = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plimsoll-tests" / f"kafka-{KAFKA_VERSION}"
    )
    home.mkdir(parents=True, exist_ok=True)
    with _lock(home / "lock"):
        jars = Path(os.environ.get("PLIMSOLL_KAFKA_JARS") or home / "jars")
        if not jars.is_dir():
            _fetch(home, jars)
        log4j = home / "log4j2.xml"
        log4j.write_text(_LOG4J)
        class_path = ":".join(sorted(str(jar) for jar in jars.glob("*.jar")))
        java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
        digest = hashlib.sha256(f"{java}{class_path}".encode()).hexdigest()[:12]
        return KafkaProgram(class_path, log4j, home / f"classes-{digest}.jsa")


def _fetch(home: Path, jars: Path) -> None:
    if shutil.which("mvn") is None:
        pytest.skip(f"NOT TESTED: there is no Kafka: {jars} does not exist, and there is no mvn on PATH to fill it")
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        Path(scratch, "pom.xml").write_text(_POM)
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={scratch}/jars"]
        fetched = subprocess.run(
            command,
            cwd=scratch,
            capture_output=True,
            text=True,
            check=False,
            timeout=_FETCH_S,
            stdin=subprocess.DEVNULL,
        )
        if fetched.returncode != 0:
            pytest.skip(f"NOT TESTED: there is no Kafka: mvn failed: {fetched.stdout.strip()[-500:]}")
        Path(scratch, "jars").rename(jars)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One process at a time: workers of a parallel run start together."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
