"""The command line `sle`."""
