"""Pull consumers: one message, a batch, or a steady flow."""
