"""`python -m slencodings.cli`, and what spark-submit runs."""

from slencodings.cli.main import main

main()
