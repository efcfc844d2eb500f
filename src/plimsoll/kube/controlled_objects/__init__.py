"""The pods and other objects that an object controls: controller references, creation and deletion, readiness."""
