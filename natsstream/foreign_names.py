"""Names of nats-py, nats.js, Kafka, Redis and S3 clients, and what stands for them here; pure.

Each hint is what a program that is ported writes instead. `answers_names` gives the hints of a
class: of its missing attributes, and of calls with arguments that a method does not take.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NoReturn, TypeVar

from natsstream import errors
from natsstream.arguments import counted, did_you_mean

ClassT = TypeVar("ClassT", bound=type)

HERE = "in natsstream:"
"""Before what stands here for a name of another client."""

CONNECT_OPTIONS: Mapping[str, str] = {
    "bootstrap_servers": "servers=",
    "client_id": "name=",
    "group_id": "stream.consumers.ensure(name)",
    "host": "servers=, a URL such as nats://host:4222",
    "hostname": "servers=, a URL such as nats://host:4222",
    "port": "servers=, a URL such as nats://host:4222",
    "url": "servers=, or by place",
    "urls": "servers=, or by place",
    "username": "user=",
    "sasl_plain_password": "password=",
    "sasl_plain_username": "user=",
    "allow_reconnect": "connections always reconnect; js.close() ends one",
    "closed_cb": "read js.events()",
    "disconnected_cb": "read js.events()",
    "discovered_server_cb": "read js.events()",
    "dont_randomize": "servers are tried in the order given at first, then at random",
    "drain_timeout": "request_timeout= bounds a drain",
    "error_cb": "read js.events(), or see the logger natsstream.connection",
    "max_outstanding_pings": "max_missed_pings=",
    "max_reconnect_attempts": "reconnects have no limit; reconnect_timeout= bounds readers",
    "publish_async_max_pending": "js.publisher() takes max_pending",
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
"""Options of nats.connect(), and of Kafka clients."""

_OF_RAW = (
    "client_id", "client_ip", "connected_server_version", "discovered_servers", "max_payload",
    "pending_data_size", "servers", "ssl_context",
)  # fmt: skip

_JETSTREAM: Mapping[str, str] = {
    **{name: f"js.raw.{name}, of nats-py's client" for name in _OF_RAW},
    "account_info": "js.account()",
    "add_consumer": "stream.consumers.create(...)",
    "add_stream": "js.streams.create(...)",
    "batch": "stream.batch(), of js.streams.get(name)",
    "connect": "`async with natsstream.connect(url) as js:`",
    "connected_url": "js.url",
    "consumer": "stream.consumers.get(name), of js.streams.get(name)",
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
    "is_connecting": "js.is_connected",
    "is_reconnecting": "js.is_connected",
    "jetstream": "this object: it is the JetStream context",
    "jetstream_manager": "js.streams and stream.consumers",
    "jetstreamManager": "js.streams and stream.consumers",
    "jsm": "js.streams and stream.consumers",
    "key_value": "js.kv.get(name)",
    "key_values": "js.kv.list()",
    "keyvalue": "js.kv.get(name)",
    "last_error": "read js.events(), or see the logger natsstream.connection",
    "lock": "kv.lock(name), of js.kv.get(name)",
    "new_inbox": "js.core.request() makes its own",
    "object_store": "js.objects.get(name)",
    "pause_consumer": "stream.consumers.pause(name, ...)",
    "publish_async": "js.publisher(), with `async with`",
    "publish_async_completed": "publisher.flush()",
    "publish_async_pending": "publisher.pending_count",
    "publish_many": "publisher.send_many(messages), of js.publisher()",
    "pull_subscribe": "stream.consumers.ensure(name), then consumer.fetch(n)",
    "pull_subscribe_bind": "stream.consumers.get(name), then consumer.fetch(n)",
    "purge_stream": "stream.purge()",
    "request": "js.core.request(...)",
    "reset_consumer": "stream.consumers.reset(name, sequence=...)",
    "resume_consumer": "stream.consumers.resume(name)",
    "rtt": "js.core.rtt()",
    "send": "js.publish(subject, data)",
    "send_and_wait": "js.publish(subject, data)",
    "stats": "js.raw.stats, of nats-py's client; it does not count what readers of natsstream get",
    "stream": "js.streams.get(name)",
    "stream_info": "js.streams.get(name), then stream.info()",
    "streams_info": "js.streams.list()",
    "streams_info_iterator": "js.streams.list()",
    "subscribe": "consumer.consume(), stream.ordered(), or js.core.subscribe() for plain NATS",
    "subscribe_bind": "stream.consumers.get(name), then consumer.subscribe()",
    "transaction": "stream.batch(), of js.streams.get(name): all messages are stored, or none",
    "update_consumer": "stream.consumers.update(...)",
    "update_stream": "js.streams.update(...)",
    "views": "js.kv and js.objects",
}

_MESSAGE: Mapping[str, str] = {
    "ack": "consumer.fetch(n) returns messages to ack; a message that was read needs none",
    "ackAck": "message.ack(confirm=True), of a consumer's message",
    "ack_sync": "message.ack(confirm=True), of a consumer's message",
    "header": "message.headers",
    "info": "message.sequence and message.time; a consumer's message also has message.meta",
    "is_acked": "message.is_settled, of a consumer's message",
    "json": "json.loads(message.data)",
    "key": "a token of message.subject",
    "metadata": "message.sequence and message.time; a consumer's message also has message.meta",
    "nak": "consumer.fetch(n) returns messages to nak",
    "num_delivered": "message.delivered, of a consumer's message",
    "offset": "message.sequence",
    "payload": "message.data",
    "respond": "js.core.publish(...) to a subject of your own; the reply subject takes acks",
    "seq": "message.sequence",
    "stream_seq": "message.sequence",
    "string": "message.data.decode()",
    "timestamp": "message.time, or message.time_ns",
    "topic": "message.subject",
    "value": "message.data",
}

_ACK: Mapping[str, str] = {"seq": "ack.sequence", "val": "ack.value"}

_OBJECT_INFO: Mapping[str, str] = {
    "is_deleted": "info.deleted",
    "is_link": "info.options.link, which is None for none",
    "meta": "info.description, info.headers and info.metadata",
}

_ENTRY: Mapping[str, str] = {"deleted": "entry.is_deleted"}

_ANSWER: Mapping[str, str] = {
    **{
        name: f"answer.result().{name}"
        for name in ("domain", "duplicate", "sequence", "stream", "value")
    },
    "exception": "answer.result(), which raises it",
    "get": "answer.result()",
    "seq": "answer.result().sequence",
    "wait": "answer.result()",
}

_META: Mapping[str, str] = {
    "num_delivered": "meta.delivered",
    "num_pending": "meta.pending",
    "sequence": "meta.stream_seq and meta.consumer_seq",
    "timestamp": "meta.time, or meta.time_ns",
}

_STATE: Mapping[str, str] = {
    "consumers": "state.consumer_count",
    "first_ts": "state.first_time, or state.first_time_ns",
    "last_ts": "state.last_time, or state.last_time_ns",
}

_STREAM_INFO: Mapping[str, str] = {
    "did_create": "stream.change.action, of the stream that was made"
}

_CONSUMER_INFO: Mapping[str, str] = {
    "created": "info.created_ns",
    "pause_remaining": "info.pause.remaining",
    "paused": "info.pause.is_paused",
    "push_bound": "info.is_push_bound",
    "stream_name": "info.stream",
}

_SUBSCRIPTION: Mapping[str, str] = {
    "delivered": "sub.pending_count and sub.dropped; the reader counts what it has got",
    "messages": "`async for message in sub`",
    "next_msg": "sub.next(timeout=...), which returns None where none came",
    "pending_bytes": "sub.pending_count, in messages",
    "pending_msgs": "sub.pending_count",
    "unsubscribe": "sub.close(), or leave the block",
}

_STREAM: Mapping[str, str] = {
    "add_consumer": "stream.consumers.create(...)",
    "config": "stream.cached.config, or that of stream.info()",
    "consume": "stream.consumers.ensure(name), then consumer.consume()",
    "consumer": "stream.consumers.get(name)",
    "count": "stream.info(), then info.state.messages",
    "deleteMessage": "stream.delete_message(sequence)",
    "get_message": "stream.get(sequence)",
    "delete_msg": "stream.delete_message(sequence)",
    "fetch": "stream.consumers.ensure(name), then consumer.fetch(n); or stream.read()",
    "getMessage": "stream.get(sequence)",
    "get_last_msg": "stream.get(last_by_subject=...)",
    "get_msg": "stream.get(sequence)",
    "messages": "stream.read()",
    "next": "stream.consumers.ensure(name), then consumer.next()",
    "pull_subscribe": "stream.consumers.ensure(name), then consumer.fetch(n)",
    "publisher": "js.publisher(), then publisher.send(subject, data)",
    "seek": "stream.read(first_seq=...), or stream.consumers.reset(name, sequence=...)",
    "stream_info": "stream.info()",
    "state": "stream.cached.state, or that of stream.info()",
    "subscribe": "stream.consumers.ensure(name), then consumer.consume(); or stream.ordered()",
    "update": "js.streams.update(name, ...)",
}

_CONSUMER: Mapping[str, str] = {
    "commit": "message.ack()",
    "config": "consumer.cached.config, or that of consumer.info()",
    "consumer_info": "consumer.info()",
    "delete": "stream.consumers.delete(name)",
    "getmany": "consumer.fetch(n)",
    "getone": "consumer.next()",
    "messages": "consumer.consume()",
    "next_msg": "consumer.next()",
    "pause": "stream.consumers.pause(name)",
    "poll": "consumer.fetch(n)",
    "pull": "consumer.fetch(n)",
    "resume": "stream.consumers.resume(name)",
    "seek": "stream.consumers.reset(name, sequence=...)",
    "unsubscribe": "leave the block of consumer.consume(); stream.consumers.delete(name)",
}

_KV: Mapping[str, str] = {
    "clear": 'kv.purge_matching(">")',
    "exists": "kv.get(key), which is None where there is none",
    "expire": "kv.put(key, value, ttl=...)",
    "incr": "js.counters, or kv.update(key, value, revision=...)",
    "items": "kv.entries()",
    "list_keys": "kv.keys()",
    "set": "kv.put(key, value)",
    "ttl": "kv.status(), then status.ttl",
    "values": "kv.entries()",
    "watchall": "kv.watch()",
    "watch_all": "kv.watch()",
}

_WATCH: Mapping[str, str] = {
    "next": "anext(watch), or `async for entry in watch`",
    "stop": "watch.close(), or leave the block of `async with kv.watch() as watch`",
    "updates": "anext(watch), or `async for entry in watch`",
}

_OBJECT_WATCH: Mapping[str, str] = {
    "next": "anext(watch), or `async for info in watch`",
    "stop": "watch.close(), or leave the block of `async with box.watch() as watch`",
    "updates": "anext(watch), or `async for info in watch`",
}

_ORDERED: Mapping[str, str] = {
    "fetch": "`async for message in reader`, or stream.read()",
    "messages": "`async for message in reader`",
    "next": "anext(reader), or `async for message in reader`",
    "next_msg": "anext(reader), or `async for message in reader`",
    "stop": "reader.close(), or leave the block of `async with stream.ordered() as reader`",
    "unsubscribe": "reader.close(), or leave the block of `async with stream.ordered() as reader`",
}

_LOCK: Mapping[str, str] = {
    "acquire": "`async with kv.lock(name) as lock`",
    "is_locked": "lock.is_held",
    "locked": "lock.is_held",
    "unlock": "lock.release(), or leave the block",
}

_BOX: Mapping[str, str] = {
    "add_link": "box.link(name, target)",
    "download": "box.get(name), or box.get_file(name, path)",
    "download_file": "box.get_file(name, path)",
    "getBlob": "box.get(name)",
    "get_bytes": "box.get(name)",
    "get_info": "box.info(name)",
    "putBlob": "box.put(name, data)",
    "put_bytes": "box.put(name, data)",
    "read": "box.get(name), or box.open(name) to read a part",
    "update_meta": "box.update(name, ...)",
    "upload": "box.put(name, data), or box.put_file(path, name)",
    "upload_file": "box.put_file(path, name)",
}

_PUBLISHER: Mapping[str, str] = {
    "close": "leave the block of `async with js.publisher()`",
    "produce": "publisher.send(subject, data)",
    "poll": "publisher.flush(); the future of publisher.send() has the ack of one message",
    "publish": "publisher.send(subject, data)",
    "publish_async": "publisher.send(subject, data)",
    "send_and_wait": "js.publish(subject, data)",
    "start": "use it with `async with`",
    "stop": "leave the block of `async with js.publisher()`",
}

_PRODUCER: Mapping[str, str] = {
    "produce": "producer.append(data)",
    "publish": "producer.append(data)",
    "send": "producer.append(data)",
    "send_and_wait": "producer.append_wait(data)",
}

_CORE: Mapping[str, str] = {
    "jetstream": "js, which has the streams",
    "new_inbox": "js.core.request() makes its own",
    "publish_request": "js.core.publish(subject, data, reply=...)",
    "request_many": "js.core.subscribe() to a reply subject, then js.core.publish(reply=...)",
}

_STREAMS: Mapping[str, str] = {
    "add": "js.streams.create(...)",
    "info": "js.streams.get(name), then stream.info()",
    "purge": "js.streams.get(name), then stream.purge()",
}

_CONSUMERS: Mapping[str, str] = {
    "add": "stream.consumers.create(...)",
    "info": "stream.consumers.get(name), then consumer.info()",
}

DKV_MEMBERS: Mapping[str, str] = {
    "copy": "dkv.get_all()",
    "getAll": "dkv.get_all()",
    "hasUnsavedChanges": "dkv.has_unsaved_changes()",
    "isStable": "dkv.is_stable()",
    "items": "dkv.get_all().items()",
    "pop": "dkv.get(key), then dkv.delete(key)",
    "put": "dkv.set(key, value), or dkv[key] = value",
    "setMany": "dkv.set_many(values)",
    "setdefault": "dkv.get(key, default), then dkv.set(key, value)",
    "unsavedChanges": "dkv.unsaved_changes()",
    "update": "dkv.set_many(values)",
    "values": "dkv.get_all().values()",
}
"""As `MEMBERS`, for a DKV: its keys are attributes too."""

_DSTREAM: Mapping[str, str] = {
    "append": "dstream.push(value), or dstream.publish(value, headers=...)",
    "extend": "dstream.push(*values)",
    "getAll": "dstream.get_all()",
    "hasUnsavedChanges": "dstream.has_unsaved_changes()",
    "isStable": "dstream.is_stable()",
    "pop": "await dstream.delete(seq=dstream.seq(-1))",
    "remove": "await dstream.delete(seq=...)",
    "unsavedChanges": "dstream.unsaved_changes()",
}

MEMBERS: Mapping[str, Mapping[str, str]] = {
    "ack": _ACK,
    "answer": _ANSWER,
    "consumer": _CONSUMER,
    "consumer_info": _CONSUMER_INFO,
    "dstream": _DSTREAM,
    "entry": _ENTRY,
    "js": _JETSTREAM,
    "js.core": _CORE,
    "js.streams": _STREAMS,
    "kv": _KV,
    "lock": _LOCK,
    "message": _MESSAGE,
    "meta": _META,
    "object_info": _OBJECT_INFO,
    "object_watch": _OBJECT_WATCH,
    "ordered": _ORDERED,
    "producer": _PRODUCER,
    "publisher": _PUBLISHER,
    "box": _BOX,
    "state": _STATE,
    "stream": _STREAM,
    "stream.consumers": _CONSUMERS,
    "stream_info": _STREAM_INFO,
    "sub": _SUBSCRIPTION,
    "watch": _WATCH,
}
"""Members of the objects of other clients, by what is asked for them here."""

OPENERS: Mapping[str, str] = {
    "box": "box = await js.objects.get(name)",
    "consumer": "consumer = await stream.consumers.get(name)",
    "js": "`async with natsstream.connect(url) as js:`, or natsstream.attach(nc) for a client of "
    "nats-py",
    "kv": "kv = await js.kv.get(name)",
    "stream": "stream = await js.streams.get(name)",
}
"""The calls that return an object, for programs that call its class."""

_PUBLISH: Mapping[str, str] = {
    "expected_last_seq": "expect=Expect(last_seq=...)",
    "key": "subject=, with the key as one of its tokens",
    "msgID": "msg_id=",
    "msg_ttl": "ttl=",
    "payload": "data=",
    "stream": "expect=Expect(stream=...)",
    "topic": "subject=",
    "value": "data=",
}

_FILTER_NAMES: Mapping[str, str] = dict.fromkeys(
    ("filter", "filter_subject", "filter_subjects", "subject", "subjects"), "filters=[...]"
)

_ONE_SUBJECT: Mapping[str, str] = dict.fromkeys(("filter", "filters", "subjects"), "subject=")

_FILTERS: Mapping[str, str] = {
    **_FILTER_NAMES,
    "opt_start_seq": "first_seq=",
    "opt_start_time": "start_time=",
    "start": "first_seq= or start_time=",
    "start_seq": "first_seq=",
}

_HANDLING: Mapping[str, str] = {
    "callback": "handler=",
    "cb": "handler=",
    "dlq": "dead_letter=, the name of a dead-letter stream",
    "error_cb": "on_error=",
    "error_handler": "on_error=",
    "max_deliver": "max_attempts=",
    "max_retries": "max_attempts=",
    "max_workers": "concurrency=",
    "retries": "max_attempts=",
    "workers": "concurrency=",
}

_DEADLINE: Mapping[str, str] = {"timeout": "deadline_s="}

_VALID_KEYS: Mapping[str, str] = {"validate_keys": "keys are always checked"}

CLASSES: Mapping[str, str] = {
    "AckPolicy": 'ack_policy="explicit", "all" or "none"',
    "Client": "connect()",
    "DeliverPolicy": 'deliver_policy="all", "new", "last", "last_per_subject" or a start',
    "DiscardPolicy": 'discard="old" or "new"',
    "KeyValueConfig": "BucketConfig, or js.kv.ensure(name, history=5)",
    "NATS": "connect()",
    "ObjectStoreConfig": "ObjectBucketConfig, or js.objects.ensure(name)",
    "Producer": "js.publisher(), or js.producer(stream, producer_id)",
    "ReplayPolicy": 'replay_policy="instant" or "original"',
    "RetentionPolicy": 'retention="limits", "interest" or "workqueue"',
    "StorageType": 'storage="file" or "memory"',
}
"""Names of nats-py's modules, by what stands for them here."""

KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "cluster.wait_for_leader": _DEADLINE,
    "cluster.wait_until_ready": _DEADLINE,
    "server.restart": _DEADLINE,
    "server.start": _DEADLINE,
    "server.stop": {**_DEADLINE, "keep_data": "keep_store="},
    "consumer.consume": {"batch": "max_messages=", "cb": "consumer.run(handler)"},
    "consumer.fetch": {
        "batch": "n=",
        "expires": "timeout=",
        "max_messages": "n=",
        "max_wait": "timeout=",
        "wait": "timeout=",
    },
    "consumer.next": {"expires": "timeout=", "max_wait": "timeout=", "wait": "timeout="},
    "consumer.run": _HANDLING,
    "consumer.subscribe": {
        "cb": "consumer.run(handler)",
        "pending_bytes_limit": "max_pending_bytes=",
        "pending_msgs_limit": "max_pending=",
    },
    "consumer.worker": {
        **_HANDLING,
        "until_empty": "consumer.run(handler, until_empty=True), or worker.wait_until_empty()",
    },
    "js.core.request": {"payload": "data="},
    "js.core.subscribe": {
        "cb": "async for message in the subscription",
        "pending_bytes_limit": "max_pending_bytes=",
        "pending_msgs_limit": "max_pending=",
        "queue_group": "queue=",
    },
    "js.producer": {"transactional_id": "producer_id="},
    "js.publish": _PUBLISH,
    "js.publisher": {
        "acks": "every ack is waited for, at the latest when the block ends",
        "batch_size": "max_pending=",
        "linger_ms": "messages leave at once; js.producer(linger=...) waits for more",
        "retries": "retry_for=, seconds",
    },
    "js.streams.find": _ONE_SUBJECT,
    "js.streams.list": _ONE_SUBJECT,
    "kv.cached": {"prefix": 'by place: kv.cached("a.>")'},
    "kv.create": {**_VALID_KEYS, "msg_ttl": "ttl="},
    "kv.delete": {**_VALID_KEYS, "last": "revision=", "msg_ttl": "kv.purge(key, ttl=...)"},
    "kv.entries": {"filters": 'by place: kv.entries("a.*", "b.>")'},
    "kv.get": {**_VALID_KEYS, "default": "kv.get(key) is None where there is no value"},
    "kv.keys": {"filters": 'by place: kv.keys("a.*", "b.>")'},
    "kv.lock": {
        "blocking": "timeout=0 tries once; timeout=None waits without limit",
        "lease": "ttl=",
        "wait": "timeout=",
    },
    "kv.purge": {"msg_ttl": "ttl="},
    "kv.purge_deletes": {"olderthan": "older_than="},
    "kv.purge_matching": {"filters": 'by place: kv.purge_matching("a.*", "b.>")'},
    "kv.put": {
        **_VALID_KEYS,
        "ex": "ttl=",
        "last": "kv.update(key, value, revision=...)",
        "msg_ttl": "ttl=",
        "nx": "kv.create(key, value)",
    },
    "kv.revisions": {"filters": 'by place: kv.revisions("a.*", "b.>")'},
    "kv.update": {**_VALID_KEYS, "last": "revision=", "msg_ttl": "ttl="},
    "kv.watch": {
        "cb": "`async with kv.watch() as watch`, then async for",
        "filters": 'by place: kv.watch("a.*", "b.>")',
        "headers_only": "meta_only=",
        "keys": 'by place: kv.watch("a.*", "b.>")',
    },
    "box.get": {
        "show_deleted": "box.info(name, include_deleted=True)",
        "writeinto": "box.get_file(name, path)",
    },
    "box.info": {"show_deleted": "include_deleted="},
    "box.put": {"data": "source=", "meta": "description=, headers= and metadata="},
    "stream.consumers.reset": {"seq": "sequence="},
    "stream.direct.batch": {"batch": "count=", "n": "count=", "seq": "first_seq="},
    "stream.direct.latest": _FILTER_NAMES,
    "stream.get": {
        "direct": "stream.direct.get(sequence)",
        "next": "next_by_subject=",
        "seq": "sequence=",
        "subject": "last_by_subject= or next_by_subject=",
    },
    "stream.info": dict.fromkeys(("filter", "filters", "subjects_filter"), "subjects="),
    "stream.latest": _FILTER_NAMES,
    "stream.ordered": _FILTERS,
    "stream.publish": _PUBLISH,
    "stream.purge": {**_ONE_SUBJECT, "seq": "last_seq=, inclusive"},
    "stream.read": {
        **_FILTERS,
        "batch_size": "stream.read().batches() yields messages as they arrive together",
        "end": "last_seq= or end_time=",
        "last": "newest=",
        **dict.fromkeys(
            ("count", "limit"), "last_seq= for the first ones, newest= for the last ones"
        ),
        "offset": "first_seq=",
        "since": "start_time=",
        "until": "end_time=",
    },
    **{
        f"{manager}.{call}": dict.fromkeys(("bucket", "name"), f"by place: {manager}.{call}(name)")
        for manager in ("js.kv", "js.objects", "js.streams")
        for call in ("create", "update", "ensure", "diff")
    },
    "producer.append_wait": {name: _PUBLISH[name] for name in ("key", "payload", "topic", "value")},
}
"""Keywords of the calls of other clients, by the call here."""


_BUCKET_FIELDS: Mapping[str, str] = {"bucket": "name", "max_age": "ttl"}
_SERVER_ARGUMENTS: Mapping[str, str] = {
    "max_payload": "max_payload_bytes",
    "version": "binary=server_binary(version)",
}

FIELDS: Mapping[str, Mapping[str, str]] = {
    "BucketConfig": _BUCKET_FIELDS,
    "ConnectOptions": CONNECT_OPTIONS,
    "ConsumerConfig": {
        "ack": "ack_policy",
        "auto_offset_reset": 'deliver_policy, such as "all" or "new"',
        "durable_name": "name",
        "group_id": "name",
        "max_retries": "max_deliver, the number of deliveries",
        "replay": "replay_policy",
        "subject": "filters",
        "subjects": "filters",
    },
    "Expect": {
        "lastMsgID": "last_msg_id",
        "lastSequence": "last_seq",
        "lastSubjectSequence": "last_subject_seq",
        "last_sequence": "last_seq",
        "last_subject_sequence": "last_subject_seq",
        "streamName": "stream",
    },
    "FaultProxy": {"port": "target_port"},
    "NatsCluster": _SERVER_ARGUMENTS,
    "NatsServer": _SERVER_ARGUMENTS,
    "ObjectBucketConfig": _BUCKET_FIELDS,
    "PublishMessage": _PUBLISH,
    "StreamConfig": {
        "partitions": "subject_transform, whose destination may have partition(n, ...)",
        "stream": "name",
    },
    "StreamSource": {"stream": "name"},
}
"""Arguments of the constructors of other clients, by the class here; in addition to the names that
the server has for the fields of a configuration."""


def name_here(name: str) -> str:
    """Return what stands for a name that `natsstream` itself lacks, as the end of an error's text.

    Empty for a name that means nothing here.
    """
    if name in dir(errors):
        here = f"ns.errors.{name}"
    else:
        stands_for = CLASSES.get(name) or errors.FOREIGN.get(name, "")
        here = re.sub(r"\b\w+Error\b", r"ns.errors.\g<0>", stands_for)
    return f"; {HERE} {here}" if here else ""


def answers_names(holder: str, *, calls: bool | Sequence[str] = True) -> Callable[[ClassT], ClassT]:
    """Return a decorator of a class: its mistaken names are answered with the right ones.

    A missing attribute raises AttributeError, and a call with arguments that the method does not
    take raises TypeError. Both name what the caller wrote, and what stands for it here. `dir`
    lists the public names.

    Args:
        holder: The name of its objects in the tables and in hints, such as "js".
        calls: Also answer calls, all or those of some methods; it costs 0.2 microseconds a call.
    """
    members = MEMBERS.get(holder, {})

    def missing(self: object, name: str) -> NoReturn:
        told = f"{type(self).__name__!r} object has no attribute {name!r}"
        told += f"; {HERE} {members[name]}" if name in members else ""
        # With both, Python 3.12 and later also shows the nearest name.
        raise AttributeError(told, name=name, obj=self)

    def public(self: object) -> list[str]:
        return [name for name in object.__dir__(self) if not name.startswith("_")]

    def decorate(kind: ClassT) -> ClassT:
        setattr(kind, "__getattr__", missing)  # noqa: B010 - unseen by type checkers, which report
        setattr(kind, "__dir__", public)  # noqa: B010 - these mistakes by themselves.
        for name, member in list(vars(kind).items()):
            is_own = name == "__call__"  # Such as js.producer(...).
            is_named = calls if isinstance(calls, bool) else name in calls
            is_public = is_named and (is_own or not name.startswith("_"))
            is_call = is_public and isinstance(member, FunctionType)
            if is_call and not inspect.isasyncgenfunction(member):
                setattr(kind, name, _answering(member, holder if is_own else f"{holder}.{name}"))
        init = vars(kind).get("__init__")
        if holder in OPENERS and init is not None:
            setattr(kind, "__init__", _opening(init, OPENERS[holder]))  # noqa: B010 - As above.
        return kind

    return decorate


def _opening(init: FunctionType, opener: str) -> Callable[..., None]:
    """Return a constructor that names the way to an object, if called with what a user has."""

    def checked(self: object, *args: object, **options: object) -> None:
        try:
            init(self, *args, **options)
        except (AttributeError, TypeError) as error:  # Of arguments that only this package has.
            told = f"{type(self).__name__}() is not for calling; {HERE} {opener}"
            raise TypeError(told) from error

    return functools.wraps(init)(checked)


def _answering(method: FunctionType, call: str) -> Callable[..., Any]:
    """Return a method whose TypeErrors for its arguments name the call and the right ones."""

    def checked(*args: Any, **options: Any) -> Any:
        try:
            return method(*args, **options)
        except TypeError as error:
            came_from = error.__traceback__
            if came_from is None or came_from.tb_next is not None:
                raise  # From within the method.
            told = _mistake(method, call, len(args) - 1, options) or _renamed(error, call)
            raise TypeError(told) from None

    async def awaited(*args: Any, **options: Any) -> Any:
        return await checked(*args, **options)

    is_async = inspect.iscoroutinefunction(method)
    answering = functools.wraps(method)(awaited if is_async else checked)
    if method.__name__ == "__call__":
        answering.__qualname__ = call  # Python's warning of a call that is not awaited names it so.
    return answering


def _mistake(method: FunctionType, call: str, given: int, options: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments of a call; empty for what Python says well."""
    _, *parameters = inspect.signature(method).parameters.values()
    by_place = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    by_name = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    names = [each.name for each in by_place] + by_name
    for name in options:
        if name not in names:
            here = KEYWORDS.get(call, {}).get(name)
            way = f"{HERE} {here}" if here else did_you_mean(name, names).strip()
            told = f"{call}() has no argument {name!r}"
            return f"{told}; {way}" if way else told
    others = [name for name in by_name if name not in options]
    has_rest = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if given > len(by_place) and not has_rest:
        places = ", ".join(each.name for each in by_place)
        told = f"{call}({places}) was given {counted(given, 'argument')} by place"
        named = " or ".join(f"{name}=" for name in others[:3])
        return f"{told}; other arguments go by name, such as {named}" if others else told
    return ""


def _renamed(error: TypeError, call: str) -> str:
    """Return Python's text with the call instead of the function, which may be of a base class."""
    _, mark, rest = str(error).partition("()")
    return f"{call}(){rest}" if mark else str(error)
