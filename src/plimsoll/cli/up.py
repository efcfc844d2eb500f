"""`plimsoll up`: the whole, embedded. Until there is a local cluster it says so instead of pretending."""

from __future__ import annotations

import sys

import typer

import plimsoll

_WHAT_THERE_IS = """\
Plimsoll {version}

There is no local cluster to run yet: no controller, no scheduler, no simulated cloud.
What is here works without one:

  {command} apiserver --data DIR     a Kubernetes API server on this machine, for kubectl
  {command} doctor                   what do the controllers need of a cluster, and is it there?
  {command} validate -f FILE         is this manifest valid, as Kubernetes would judge it?
  {command} version                  what is installed
  {command} completion bash          completion for your shell

Try it:  {command} validate -f examples/provisioning-request.yaml
"""


def up() -> None:
    """
    Run everything on this machine, until Ctrl-C (not built yet: says what there is).

    \b
    Examples:
      plimsoll up
    """
    command = sys.argv[0] if sys.argv[0].endswith("plimsoll") else "plimsoll"
    typer.echo(_WHAT_THERE_IS.format(version=plimsoll.__version__, command=command), nl=False)
