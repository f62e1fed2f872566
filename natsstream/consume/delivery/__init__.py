"""Messages that a consumer delivered, and the verdicts that settle them."""
