"""Every closed set of words, once."""
