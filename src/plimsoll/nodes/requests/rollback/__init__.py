"""Rollback of scale-ups whose request failed or was deleted, driven by intents written ahead."""
