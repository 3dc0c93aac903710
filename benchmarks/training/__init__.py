"""One file a system: each trains the same model on the same ids by its own loop, and is timed by the same meter.

`train(job)` never returns: the meter ends the process when the time is over.
"""
