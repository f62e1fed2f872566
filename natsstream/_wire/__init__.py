"""The wire: everything that knows how NATS looks in bytes, subjects and numbers.

This is the only room that imports nats-py. The pure files here (acks, error codes, headers, parser,
status) import neither it nor asyncio, so they are tested without a server; rooms above never see
nats-py's types, its errors or a raw frame's layout.
"""
