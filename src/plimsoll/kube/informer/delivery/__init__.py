"""Delivers cache changes to event handlers, each handler at its own pace."""
