"""A thousand nodes and ten thousand pods, live: `plimsoll up` as a process, filled through its API over TLS.

The nodes are machines of the simulated cloud, the pods those of twenty deployments. What is measured: how long nodes and
pods take to be ready, pods bound in a second, what the process needs, and how fast it answers others meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plimsoll.kube.client import Client
from plimsoll.kube.configuration import find_access
from plimsoll.kube.http import HttpTransport
from plimsoll.kube.selections import USER_AGENT, ClientSettings
from plimsoll.objects.cloud import CLOUD_RESOURCES, NodeGroup
from plimsoll.objects.registry import KINDS
from plimsoll.objects.workloads import Deployment
from plimsoll.runtime.chance import SystemEntropy
from plimsoll.runtime.clocks import RealClock
