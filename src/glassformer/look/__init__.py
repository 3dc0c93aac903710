"""Seeing inside: every number of a pass, what it means, and pictures of it. The model files know nothing of it."""

from glassformer.look.change import changed
from glassformer.look.points import POINTS
from glassformer.look.trace import Trace, trace

__all__ = ["POINTS", "Trace", "changed", "trace"]
