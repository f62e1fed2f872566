"""Names of nats-py and nats.js, and what stands for them here; pure.

Each hint is what a program that is ported writes instead.
"""

from __future__ import annotations

from collections.abc import Mapping

CONNECT_OPTIONS: Mapping[str, str] = {
    "allow_reconnect": "connections always reconnect; js.close() ends one",
    "closed_cb": "read js.events()",
    "disconnected_cb": "read js.events()",
    "discovered_server_cb": "read js.events()",
    "dont_randomize": "servers are tried in the order given at first, then at random",
    "drain_timeout": "request_timeout= bounds a drain",
    "error_cb": "read js.events(), or see the logger natsstream.connection",
    "max_outstanding_pings": "max_missed_pings=",
    "max_reconnect_attempts": "reconnects have no limit; reconnect_timeout= bounds readers",
    "nkeys_seed": "nkey=",
    "nkeys_seed_str": "nkey=",
    "reconnect_time_wait": "the wait between reconnects is fixed",
    "reconnected_cb": "read js.events()",
    "signature_cb": "creds=, nkey=, or user_jwt= with user_seed=",
    "timeout": "connect_timeout= or request_timeout=",
    "tls": "ca=, cert= and key=",
    "tls_handshake_first": "tls_first=",
    "tls_hostname": "the host in the server's URL",
    "user_credentials": "creds=",
    "user_jwt_cb": "user_jwt= with user_seed=",
    "pass": "password=",
    "reconnect": "connections always reconnect; js.close() ends one",
    "waitOnFirstConnect": "retry `async with connect(...)`",
}
"""Options of nats.connect()."""

JETSTREAM: Mapping[str, str] = {
    "account_info": "js.account()",
    "add_consumer": "stream.consumers.create(...)",
    "add_stream": "js.streams.create(...)",
    "consumer_info": "stream.consumers.get(name), then consumer.info()",
    "consumers": "stream.consumers, of js.streams.get(name)",
    "consumers_info": "stream.consumers.list()",
    "create_key_value": "js.kv.create(...)",
    "create_object_store": "js.objects.create(...)",
    "delete_consumer": "stream.consumers.delete(name)",
    "delete_key_value": "js.kv.delete(name)",
    "delete_msg": "stream.delete_message(sequence)",
    "delete_object_store": "js.objects.delete(name)",
    "delete_stream": "js.streams.delete(name)",
    "find_stream_name_by_subject": "js.streams.find(subject)",
    "flush": "js.core.flush()",
    "get_last_msg": "stream.get(last_by_subject=...)",
    "get_msg": "stream.get(sequence)",
    "is_closed": "js.is_connected",
    "jetstream": "this object: it is the JetStream context",
    "jetstream_manager": "js.streams and stream.consumers",
    "jetstreamManager": "js.streams and stream.consumers",
    "jsm": "js.streams and stream.consumers",
    "key_value": "js.kv.get(name)",
    "keyvalue": "js.kv.get(name)",
    "new_inbox": "js.core.request() makes its own",
    "object_store": "js.objects.get(name)",
    "publish_async": "js.publisher(), with `async with`",
    "publish_async_completed": "publisher.flush()",
    "publish_async_pending": "publisher.pending_count",
    "pull_subscribe": "stream.consumers.ensure(name), then consumer.fetch(n)",
    "pull_subscribe_bind": "stream.consumers.get(name), then consumer.fetch(n)",
    "purge_stream": "stream.purge()",
    "request": "js.core.request(...)",
    "rtt": "js.core.rtt()",
    "stream_info": "js.streams.get(name), then stream.info()",
    "streams_info": "js.streams.list()",
    "subscribe": "consumer.consume(), stream.ordered(), or js.core.subscribe() for plain NATS",
    "update_consumer": "stream.consumers.update(...)",
    "update_stream": "js.streams.update(...)",
    "views": "js.kv and js.objects",
}
"""Members of the connections and JetStream contexts of other clients."""


def unknown_member(kind: str, name: str, known: Mapping[str, str]) -> str:
    """Return the text of an AttributeError, with what stands for the name here."""
    text = f"{kind!r} object has no attribute {name!r}"
    return f"{text}; in natsstream: {known[name]}" if name in known else text
