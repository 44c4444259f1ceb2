"""Evidence that is kept in a file and added to: the sums, how they were made, what was added.

A store is a Parquet file with a row per item and label. Cumulative fusion adds evidence up, so
that is all it takes to go on, and annotations that were added once are never read again:

| column | is the sum of |
|---|---|
| item, label | (whose; no label where an item was shown and nobody said anything) |
| evidence | pseudo-counts of annotations with some doubt, for a prior weight of 2 or the crowd's |
| dogmatic | certain annotations, which are worth infinitely much and so are counted apart |
| annotations | annotations; soft ones share theirs among their labels |
| log_likelihood | of all annotations of the item if the label is true, by a crowd that knows |

So both readings of a learned crowd come out of a store, which is begun with it.

Sums do not know who said what: an annotator who says the same in two batches is counted twice. A
store may be begun with the sums of each annotator, in a column of that name: then it is larger, and
annotators can be forgotten.
"""
