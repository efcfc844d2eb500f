"""The page docs/kafka-story.md without what a run fills in: text, commands, and the places of outputs and figures.

`tests/e2e/kafka/kafka_story.py` runs it. A line `$ command` is run and followed by its output; `<<name>>` is replaced
by what the function of that name gives.
"""

from __future__ import annotations

import re
from typing import Final

PLACE: Final = re.compile(r"<<(\w+)>>")
STORY: Final = """\
# A Kafka cluster grows and shrinks under load

This page is a run of real brokers on one machine, written by `make kafka-story`: every command ran in this order, and
printed what is shown. [kafka-try.md](kafka-try.md) explains the commands. <<machine>>

## Three brokers

```console
$ plimsoll kafka try
```

The first screen came after <<start_s>>. In another terminal:

```console
$ export KUBECONFIG=$PWD/.plimsoll-kafka/kubeconfig
$ kubectl get kafkanodepool,pods -n kafka
$ plimsoll kafka status
```

Until the end of the page a program writes numbered records to <<topics>> topics with three replicas each, with
`acks=all` and idempotence, and a group of two consumers reads them.

## A fourth broker

```console
$ kubectl scale kafkanodepool/brokers -n kafka --replicas=4
```

What was seen, by the seconds since the command:

<<grow>>

```console
$ plimsoll kafka status --bootstrap <<bootstrap>>
$ plimsoll why kafka/kafka/my-cluster --data .plimsoll-kafka --limit 1
```

## A broker is killed

`kill -9` ends the process of broker 1. Its pod starts it again, with its data; <<crash>>

```console
$ kubectl get pods -n kafka
```

## Back to three

```console
$ kubectl scale kafkanodepool/brokers -n kafka --replicas=3
```

<<shrink>>

The pod goes when no replica is left on the broker, and the broker is unregistered when the pod has gone.

```console
$ kubectl get kafkanodepool,pods -n kafka
$ plimsoll kafka status --bootstrap <<bootstrap>>
```

## What is left

The writer stops, and the readers read on until they have everything that was acknowledged.

<<figures>>
"""


def build_pattern() -> re.Pattern[str]:
    """What every page of the story matches."""
    parts = []
    for line in STORY.splitlines():
        if line.startswith("<<") and line.endswith(">>"):
            parts.append(r"(?:\|.*\n)+")
            continue
        parts.append(r"[^\n]+".join(map(re.escape, PLACE.split(line)[::2])) + r"\n")
        if line.startswith("$ "):
            parts.append(r"(?:(?![$`])[^\n]*\n)*")
    return re.compile("".join(parts))
