"""Which tests run where a tool is missing: they are counted out loud, and in CI the run fails."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from natsstream.testing import ServerStartError, server_binary
from natsstream.testing.versions import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

# In CI a daemon that answers too late ends the whole run; where there is none, it is told at once.
DOCKER_TIMEOUT_S = 60.0
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What happens to the collected tests.

    Attributes:
        deselected: Indices of the tests that can not run here.
        counts: For each marker whose tool is missing, how many tests wanted it. A test that wants
            two missing tools counts in both.
        refusal: Why the run must fail; empty when it may go on.
    """

    deselected: frozenset[int]
    counts: Mapping[str, int]
    refusal: str


def decide(
    markers: Sequence[AbstractSet[str]], missing: Mapping[str, str], *, is_ci: bool
) -> Decision:
    """Decide what happens to tests whose tools are missing.

    Args:
        markers: The markers of each collected test.
        missing: What is missing, by the marker that asks for it.
        is_ci: In CI a missing tool is a broken set-up, not a reason to test less.
    """
    wanted = [names & missing.keys() for names in markers]
    deselected = frozenset(index for index, names in enumerate(wanted) if names)
    counts = Counter(name for names in wanted for name in sorted(names))
    if is_ci and deselected:
        tools = ", ".join(f"{missing[name]} ({count} tests)" for name, count in counts.items())
        refusal = f"CI=true and these tools are missing: {tools}"
        return Decision(deselected=frozenset(), counts={}, refusal=refusal)
    return Decision(deselected=deselected, counts=dict(counts), refusal="")


def is_ci(environment: Mapping[str, str]) -> bool:
    """Tell whether this is a CI run."""
    return environment.get("CI", "").lower() == "true"


def find_missing(markers: AbstractSet[str]) -> dict[str, str]:
    """Return what is missing on this machine, by marker; only the given markers are looked at."""
    return {
        marker: what
        for marker, probe in PROBES.items()
        if marker in markers and (what := probe()) is not None
    }


def _missing_go() -> str | None:
    return None if shutil.which("go") else "go"


def _missing_node() -> str | None:
    names = [name for name in ("node", "npm") if shutil.which(name) is None]
    return " and ".join(names) or None


def _missing_docker() -> str | None:
    docker = shutil.which("docker")
    if docker is None:
        return "docker"
    try:
        answer = subprocess.run(
            [docker, "info"], capture_output=True, timeout=DOCKER_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "a docker daemon that answers"
    return None if answer.returncode == 0 else "a docker daemon that answers"


def _missing_chromium() -> str | None:
    return None if any(shutil.which(name) for name in CHROMIUM_NAMES) else "chromium"


def _missing_versions() -> str | None:
    try:
        for version in RELEASES:
            server_binary(version)
    except ServerStartError as error:
        return f"other nats-servers ({error.message})"
    return None


PROBES: Mapping[str, Callable[[], str | None]] = {
    "needs_go": _missing_go,
    "needs_node": _missing_node,
    "needs_docker": _missing_docker,
    "needs_chromium": _missing_chromium,
    "needs_versions": _missing_versions,
}
