"""The parts of every controller process: lease, services, pages, metrics, pause, action rate, reports, intents."""
