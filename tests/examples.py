"""Makes the examples of Hypothesis the same in each run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

NEW = "new-examples"
"""Name of the profile with other examples in each run: `pytest --hypothesis-profile new-examples`."""
_SAME = "same-examples"


def choose() -> None:
    """Register the profiles, and load the one whose examples are the same, so that only changed code fails a test."""
    # How long Hypothesis takes depends on what else runs on the machine.
    any_machine = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile(NEW, any_machine)
    settings.register_profile(_SAME, any_machine, derandomize=True)
    settings.load_profile(_SAME)
    # Even then, Hypothesis tries constants of all modules of the project that are imported so far: those depend on the
    # tests that a worker has run before.  No setting prevents that.
    found = providers._get_local_constants
    providers._get_local_constants = lambda: providers.Constants() if settings.default.derandomize else found()
