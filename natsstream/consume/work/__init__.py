"""Workers: handlers that run side by side over the messages of a consumer."""
