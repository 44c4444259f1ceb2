"""The paper's experiments, and those it could not run: `python -m experiments --help`.

Not part of the installed package. An experiment yields flat rows, the rows are kept, and every
figure and table is drawn from them. `published.toml` has the numbers of the paper.
"""
