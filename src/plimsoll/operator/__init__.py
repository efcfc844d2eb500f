"""What every controller process has: pause, action rate, health, debug access and profiler."""
