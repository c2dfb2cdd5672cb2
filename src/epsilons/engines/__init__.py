"""Engines: each runs a query, built as a tree, and hands back Arrow. Start with `base`."""
