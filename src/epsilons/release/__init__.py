"""An answer with its error, its promise and its price, and the one door through which it leaves."""

from epsilons.release.answer import Release, exact_release, make_release

__all__ = ["Release", "exact_release", "make_release"]
