"""Events: what happened to an object, told where `kubectl describe` shows it, without flooding anybody.

`recording` takes them in and writes them, `waiting` holds them meanwhile, `correlation` decides what becomes of one
more, `texts` gives them form.
"""

from plimsoll.kube.recorder.correlation import CorrelationSettings
from plimsoll.kube.recorder.event_objects import EventType, reference_to
from plimsoll.kube.recorder.recorder import EventRecorder, RecorderSettings, RecorderStatus

__all__ = ["CorrelationSettings", "EventRecorder", "EventType", "RecorderSettings", "RecorderStatus", "reference_to"]
