"""How many cores there are to work on."""

import os


def n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # a container may have fewer than the machine
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
