"""The watch cache: decoded objects, ordered events, history and watchers."""
