"""The goals of Cruise Control: when each holds, what it limits, and how it is brought about."""
