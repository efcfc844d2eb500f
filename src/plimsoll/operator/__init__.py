"""What every controller process has: lease and services, pages, metrics, pause, action rate, reports, intents."""
