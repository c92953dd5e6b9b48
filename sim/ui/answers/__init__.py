"""What searches found: one file a kind of answer, each with `show`."""
