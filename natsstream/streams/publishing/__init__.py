"""Writing into streams: one message with its ack, or many with a window of acks under way."""
