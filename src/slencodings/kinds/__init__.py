"""Answers that are more than one of a few names: labels in an order, pairs, several at once."""
