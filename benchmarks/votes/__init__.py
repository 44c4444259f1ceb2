"""VoteBench: which method predicts votes, and the truth, on which crowd?

`python -m benchmarks.votes`; docs/votebench.md tells what is scored.

| file | has |
|---|---|
| `crowds.py` | crowds: the published ones, and a folder of CSV files |
| `methods.py` | what a method is; those of slencodings, and files with others |
| `peers.py` | crowd-kit, cleanlab and peerannot, where they are installed |
| `score.py` | what is hidden from a method, and how its predictions are scored |
| `rows.py` | rows: one for each crowd, method and score, kept as Parquet |
| `page.py` | tables and the figure, from rows alone |
"""
