"""The house algorithm: a regime for each kind of request, chosen by public numbers."""

from core.algorithms.summit.summit import Summit, regime_for

__all__ = ["Summit", "regime_for"]
