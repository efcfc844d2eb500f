"""Kubernetes Events about objects, as `kubectl describe` shows them, rate-limited and aggregated.

`recorder` accepts and writes events, `queue` holds them until they are written, `correlation` aggregates them, and
`event_objects` builds the objects.
"""

from plimsoll.kube.recorder.correlation import CorrelationSettings
from plimsoll.kube.recorder.event_objects import EventType, build_reference
from plimsoll.kube.recorder.recorder import EventRecorder, RecorderSettings, RecorderStatus

__all__ = ["CorrelationSettings", "EventRecorder", "EventType", "RecorderSettings", "RecorderStatus", "build_reference"]
