"""Flags only: one file a command, each a thin function that builds settings and calls a job; heavy imports stand inside them."""
