"""Care of a stream in a cluster, and its backup: leader, replicas, a copy in a folder.

Law: a call that waits for an outcome has a deadline, and asks only while it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from natsstream._wire import subjects
from natsstream.api import step_down as leading
from natsstream.api.features import MEMORY_BACKUP
from natsstream.arguments import check_text
from natsstream.streams.doors.part import Part
from natsstream.streams.snapshots.backup import write_backup
from natsstream.streams.snapshots.folder import BackupInfo
from natsstream.streams.snapshots.progress import BackupProgress


class Operations(Part):
    """Operates a stream."""

    async def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        wait: bool = True,
        timeout: float | None = None,
    ) -> str | None:
        """Make the stream's leader give up, and return the name of the next one.

        A stream with one replica has no other: it keeps its leader.

        Args:
            preferred: Name of the server that shall lead; it must have a replica.
            cluster: Name of the cluster that the next leader shall be in.
            tags: Tags that its server shall have.
            wait: Wait for the next leader; without it the answer is None.
            timeout: Seconds to wait in all; None is `request_timeout`.

        Raises:
            ConfigError: An argument has no legal value; nothing was sent.
            ServerError: The server is not in a cluster, or no replica fits; the old one leads on.
            UnsupportedServerError: A choice was made, and the server is older than 2.11.
            RequestTimeoutError: No answer, or no leader in time. It may have stepped down.

        Cost: a round trip, an election, and a look at the stream each 50 ms until it is over.
        Source: ADR-44's API; nats CLI `nats stream cluster step-down`.
        """
        led = leading.StepDownTarget(
            api=self._api,
            what=f"stream {self.name}",
            info=subjects.stream_info(self.name),
            step_down=subjects.stream_step_down(self.name),
        )
        return await leading.step_down(
            led, preferred=preferred, cluster=cluster, tags=tags, wait=wait, timeout=timeout
        )

    async def remove_peer(self, name: str) -> None:
        """Take the stream's replica from a server, and let the cluster make one on another.

        It returns when this is decided; the new replica then catches up by itself.

        Args:
            name: The server's name.

        Raises:
            ConfigError: It is no name; nothing was sent.
            NotFoundError: The server has no replica of the stream.
            ServerError: No other server can take one, or this one is not in a cluster.
            TransportError: No answer; it may be done or not.

        Cost: one round trip; then the new replica is sent all that the stream holds.
        Source: nats CLI `nats stream cluster peer-remove`.
        """
        body: dict[str, object] = {"peer": check_text(name, "name")}
        what = f"replica of stream {self.name} on {name}"
        await self._api.change(subjects.stream_remove_peer(self.name), body, what=what)

    async def backup(
        self,
        path: str | Path,
        *,
        consumers: bool = True,
        check: bool = False,
        chunk_size: int | None = None,
        on_progress: Callable[[BackupProgress], object] | None = None,
        timeout: float | None = None,
    ) -> BackupInfo:
        """Write the stream into a new folder, as the nats CLI does; either restores the other's.

        The folder holds `backup.json` and `stream.tar.s2`. It appears when all is in it: a backup
        that fails or is cancelled leaves nothing.

        Args:
            path: The folder: absent, or empty.
            consumers: Also their configuration and state.
            check: Let the server verify every message first; that reads all of them.
            chunk_size: Bytes of each part on the wire, 1,024 to 1,048,576; None is 131,072, or
                the server's `max_payload` where that is smaller.
            on_progress: Called after each part; it must not wait. An error in it ends the backup.
            timeout: Seconds in which the server must begin, and then send each next part; None is
                30, and with `check` an hour for the beginning.

        Returns:
            What was written, with its SHA-256.

        Raises:
            ConfigError: The folder holds something, or an option has no legal value.
            BackupError: The server could not, or did not send all; `retryable` tells whether it
                may later.
            StreamNotFoundError: It does not exist.
            UnsupportedServerError: The stream is in memory, and the server is older than 2.15.
            OSError: The disk refuses.

        Cost: the stream once over the wire, compressed; at most 32 MiB of memory.
        Source: nats CLI `nats stream backup`; jsm.go snapshots.go.
        """
        if self.cached.config.storage == "memory":
            await self._api.require(MEMORY_BACKUP)
        return await write_backup(
            self._api,
            self.name,
            path,
            consumers=consumers,
            check=check,
            chunk_size=chunk_size,
            on_progress=on_progress,
            timeout=timeout,
        )
