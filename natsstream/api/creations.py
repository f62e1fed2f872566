"""Whether a request to create has created: servers answer the same for a stream that existed.

Law: it has not, if the server's clock says so. Of requests at about the same time each may have.
"""

from __future__ import annotations

from natsstream.api.change_plan import created
from natsstream.api.consumer_info import ConsumerInfo
from natsstream.api.diff import ConfigChange
from natsstream.api.settings.setting import Setting
from natsstream.api.stream_info import StreamInfo

# In a cluster one server notes the creation, and another one answers.
_CLOCKS_DIFFER_S = 1.0


def made(wanted: Setting, info: StreamInfo | ConsumerInfo, asked_s: float) -> ConfigChange:
    """Return the change that a request has made: none where what it answers with is older.

    Args:
        wanted: The configuration that was sent.
        info: The answer.
        asked_s: Seconds from the request to its answer.
    """
    is_clustered = info.cluster is not None and bool(info.cluster.name)
    within_s = asked_s + (_CLOCKS_DIFFER_S if is_clustered else 0)
    if info.time_ns and info.time_ns - info.created_ns > within_s * 1e9:
        return ConfigChange(info.name, "unchanged")
    return created(wanted)
