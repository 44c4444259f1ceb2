"""Tables and calls that are wrong, and the words that must say so."""

from typing import Any

import numpy as np
from crowd_files import Roles
from engines import Columns

NAN = float("nan")
GOOD: Columns = {
    "item": ["a", "a", "b", "c"],
    "who": ["ann", "bob", "ann", "ann"],
    "said": ["yes", "no", "no", None],
    "doubt": [0.0, 0.5, 0.2, None],
    "word": ["low", "high", "low", "low"],
    "p": [0.2, 0.5, 1.0, None],
    "q": [0.8, 0.5, 0.0, None],
    "list": [[0.2, 0.8], [0.5, 0.5], [1.0, 0.0], None],
    "a": [0.5, 0.1, 0.3, 0.5],
    "b": [0.5, 0.9, 0.7, 0.5],
}
PLAIN: Roles = {"item": "item", "label": "said"}
WORDS = ["no", "yes"]

# Each: what is changed in the table, how it is called, and the words of the answer.
BAD: dict[str, tuple[Columns, dict[str, Any], str]] = {
    "no such column": (
        {},
        {"item": "itme"},
        r"there is no column 'itme' for `item`; the columns are 'item', 'who', 'said', .*"
        r"Did you mean item='item'\?",
    ),
    "no such number column": (
        {},
        {"uncertainty": "dubt"},
        r"no column 'dubt' for `uncertainty`; .* Did you mean uncertainty='doubt'\?",
    ),
    "a name that is none": (
        {},
        {"item": 3},
        r"`item` must be the name of a column, as text; 3 came\. .*rename them first",
    ),
    "an empty name": ({}, {"annotator": ""}, r"`annotator` must be the name of a column"),
    "label of another kind": (
        {},
        {"label": 7},
        r"`label` must be the name of a column, as text; 7",
    ),
    "item is null": (
        {"item": ["a", None, "b", None]},
        {},
        r"every annotation must name its item; 2 of 4 rows have none in column 'item', "
        r"first in row 2 of the data\. Drop them",
    ),
    "item is NaN": (
        {"item": [1.0, 2.0, NAN, 2.0]},
        {},
        r"must name its item; 1 of 4 rows have none in column 'item', first in row 3",
    ),
    "annotator is null": (
        {"who": ["ann", "bob", None, None]},
        {"annotator": "who"},
        r"every annotation must name its annotator; 1 of 4 rows have none in column 'who', first "
        r"in row 3 of the data, item 'b'\. Pass missing='drop' .* missing='trust'",
    ),
    "annotator and confidence are null": (
        {"who": ["ann", "bob", None, None], "doubt": [0.0, None, None, 0.0]},
        {"annotator": "who", "confidence": "doubt"},
        r"1 of 4 rows have none in column 'who', first in row 3 of the data, item 'b'; also 2 rows "
        r"without confidence\. Pass missing='drop'",
    ),
    "items of lists": (
        {},
        {"item": "list"},
        r"column 'list' must hold names: text, numbers or dates; List\(.*\) came\. Make them text",
    ),
    "confidence is null": (
        {"doubt": [0.0, None, 0.1, None]},
        {"confidence": "doubt"},
        r"`confidence` must be there for every annotation; 1 of 4 rows have none, first in row 2 "
        r"of the data, item 'a'\. Pass missing='drop' to leave them out, missing='trust'",
    ),
    "confidence is NaN": (
        {"doubt": [0.0, 0.1, NAN, 0.3]},
        {"confidence": "doubt"},
        r"`confidence` must be there for every annotation; 1 of 4 rows have none, first in row 3",
    ),
    "reliability is NaN": (
        {"doubt": [NAN, 0.1, NAN, 0.3]},
        {"reliability": "doubt"},
        r"`reliability` must be there for every annotation; 2 of 4 rows have none, first in row 1",
    ),
    "uncertainty out of range": (
        {"doubt": [0.0, 0.5, 1.5, 9.0]},
        {"uncertainty": "doubt", "annotator": "who"},
        r"`uncertainty` must lie in \[0, 1\]; 1 of 4 rows do not in column 'doubt', first 1\.5 in "
        r"row 3 of the data, item 'b', annotator 'ann'\. .*confidence_scale=\(1, 5\)",
    ),
    "confidence out of range": (
        {"doubt": [3.0, 0.0, 5.0, 6.0]},
        {"confidence": "doubt", "confidence_scale": (1, 5)},
        r"`confidence` must lie in \[1, 5\]; 1 of 4 rows do not in column 'doubt', first 0\.0 in "
        r"row 2 .*Name the ends of the scale",
    ),
    "reliability out of range": (
        {"doubt": [-0.25, float("inf"), 0.5, 0.5]},
        {"reliability": "doubt"},
        r"`reliability` must lie in \[0, 1\]; 2 of 4 rows do not in column 'doubt', first -0\.25 "
        r"in row 1 .*Map a score such as kappa first: clip it",
    ),
    "a number out of range": (
        {},
        {"reliability": 2},
        r"`reliability` must be a column, a number in \[0, 1\] or a mapping .*; 2 came\. Map",
    ),
    "an array is no number": (
        {},
        {"uncertainty": np.zeros(4)},
        r"`uncertainty` must be a column, a number in \[0, 1\] or a mapping .*; ndarray came\.",
    ),
    "a mapping out of range": (
        {},
        {"reliability": {"ann": 1.0, "bob": NAN}, "annotator": "who"},
        r"`reliability` must be .* a mapping from annotator to such numbers; nan came for 'bob'\.",
    ),
    "a mapping without annotators": (
        {},
        {"uncertainty": {"ann": 1.0}},
        r"`uncertainty` by annotator needs to know who annotated; no annotator column came\. "
        r"Pass annotator=",
    ),
    "a mapping that lacks some": (
        {},
        {"reliability": {"ann": 1.0}, "annotator": "who"},
        r"`reliability` must know every annotator; 1 of 4 rows are by one that it does not, first "
        r"in row 2 of the data, item 'a', annotator 'bob'\. Pass missing='drop'",
    ),
    "a mapping of another type": (
        {},
        {"confidence": {1: 1.0}, "annotator": "who"},
        r"`confidence` must know annotators as column 'who' does, by String; 1 came\. Change",
    ),
    "words for numbers": (
        {},
        {"confidence": "word"},
        r"column 'word' for `confidence` must hold numbers; String came\. Map its words to numbers",
    ),
    "said twice": (
        {},
        {"uncertainty": "doubt", "confidence": "doubt"},
        r"`uncertainty` and `confidence` say the same thing twice; both came\. Pass one of them",
    ),
    "a scale without ends": (
        {},
        {"confidence": "doubt", "confidence_scale": 5},
        r"`confidence_scale` must be the two ends .*; 5 came\. .*confidence_scale=\(1, 5\)",
    ),
    "a scale without length": (
        {},
        {"confidence": "doubt", "confidence_scale": (1, 1)},
        r"`confidence_scale` must be the two ends of the scale, .*; \(1, 1\) came\.",
    ),
    "a scale in words": (
        {},
        {"confidence": "doubt", "confidence_scale": "1-5"},
        r"`confidence_scale` must be the two ends of the scale, .*; '1-5' came\.",
    ),
    "a label not among them": (
        {},
        {"labels": ["no", "maybe"]},
        r"column 'said' must hold one of labels=\['no', 'maybe'\]; 1 of 4 rows do not, first 'yes' "
        r"in row 1 of the data, item 'a'\. Add what is missing to `labels`, or leave it out to",
    ),
    "labels of another type": (
        {},
        {"labels": [0, 1]},
        r"`labels` must be of the type of column 'said', String; 0 came\. Pass text\.",
    ),
    "words for whole numbers": (
        {"said": [1, 0, 0, 1]},
        {"labels": [0, "1"]},
        r"`labels` must be of the type of column 'said', Int64; '1' came\. Pass numbers\.",
    ),
    "numbers for truth": (
        {"said": [True, False, False, True]},
        {"labels": [0, 1]},
        r"`labels` must be of the type of column 'said', Boolean; 0 came\. Pass True and False\.",
    ),
    "labels that repeat": (
        {},
        {"labels": ["no", "yes", "no"]},
        r"`labels` must differ; 'no' came more than once",
    ),
    "one label": (
        {"said": ["yes", "yes", None, "yes"]},
        {},
        r"at least two labels are needed; only 'yes' came, in 4 rows\. .*labels=\['yes', \.\.\.\]",
    ),
    "one label given": (
        {},
        {"labels": ["yes"]},
        r"at least two labels are needed; only 'yes' came",
    ),
    "no label given": ({}, {"labels": []}, r"at least two labels are needed; none came"),
    "no label said": (
        {"said": [None] * 4},
        {},
        r"no annotation has a label: column 'said' is empty in 4 rows\. .*labels=\[\.\.\.\]",
    ),
    "one column of probabilities": ({}, {"label": ["p"]}, r"at least two labels .*; only 'p' came"),
    "no column of probabilities": ({}, {"label": []}, r"at least two labels are needed; none came"),
    "a column of probabilities twice": (
        {},
        {"label": ["p", "p"]},
        r"`labels` must differ; 'p' came",
    ),
    "names for other probabilities": (
        {},
        {"label": ["p", "q"], "labels": ["yes"]},
        r"`labels` must name the 2 probabilities in their order; 1 came: 'yes'",
    ),
    "probabilities in words": (
        {},
        {"label": ["p", "word"]},
        r"column 'word' for `label` must hold numbers; String came",
    ),
    "lists of words": (
        {"list": [["a", "b"], ["a", "b"], ["a", "b"], None]},
        {"label": "list"},
        r"column 'list' for `label` must hold numbers; String came",
    ),
    "a negative probability": (
        {"p": [-0.2, 0.5, -1.0, None], "q": [1.2, 0.5, 2.0, None]},
        {"label": ["p", "q"]},
        r"probabilities must not be negative; 2 of 4 rows have one in \['p', 'q'\], first in row 1 "
        r"of the data, item 'a'\. Scores such as logits need a softmax",
    ),
    "probabilities that do not sum to one": (
        {"list": [[0.2, 0.8], [0.5, 0.51], [float("inf"), 0.0], None]},
        {"label": "list"},
        r"the probabilities of 'list' must sum to 1; 2 of 4 rows do not, first in row 2 "
        r"of the data, item 'a'\. Divide each row by its sum",
    ),
    "a missing probability": (
        {"p": [0.2, None, NAN, None]},
        {"label": ["p", "q"]},
        r"the 2 probabilities of \['p', 'q'\] must all be there, or none; 2 of 4 rows lack some, "
        r"first in row 2 .* Fill them with 0",
    ),
    "ragged lists": (
        {"list": [[0.2, 0.8], [1.0], [0.5, 0.25, 0.25], []]},
        {"label": "list"},
        r"the lists in column 'list' must be equally long; the longest has 3 values, fewer "
        r"are in 3 rows, first 2 in row 1 of the data\. Write 0 .* where there is no annotation",
    ),
    "base rates that are no lists": (
        {},
        {"base_rate": "doubt", "labels": WORDS},
        r"column 'doubt' must hold lists of probabilities; Float64 came\. Pass the K columns",
    ),
    "base rates of unknown labels": (
        {},
        {"base_rate": ["a", "b"]},
        r"`base_rate` by row needs the order of the labels; none came\. Pass labels=",
    ),
    "base rates of other labels": (
        {},
        {"base_rate": ["a", "b", "p"], "labels": WORDS},
        r"`base_rate` needs one value per label, 2; 3 came",
    ),
    "base rates that are missing": (
        {"a": [0.5, None, NAN, 0.5]},
        {"base_rate": ["a", "b"], "labels": WORDS},
        r"`base_rate` must be there for every row; 2 of 4 rows lack some in \['a', 'b'\], first in "
        r"row 2 of the data, item 'a'\. Fill them with 1/2",
    ),
    "base rates that do not sum to one": (
        {"a": [0.5, 0.5, -0.5, 0.5], "b": [0.5, 0.6, 1.5, 0.5]},
        {"base_rate": ["a", "b"], "labels": WORDS},
        r"`base_rate` must not be negative and must sum to 1; 2 of 4 rows do not in \['a', 'b'\], "
        r"first in row 2 .*Divide each row by its sum",
    ),
    "base rates in words": (
        {},
        {"base_rate": ["a", "word"], "labels": WORDS},
        r"column 'word' for `base_rate` must hold numbers; String came",
    ),
    "base rates of other names": (
        {},
        {"base_rate": {"no": 0.5, "maybe": 0.5}},
        r"`base_rate` must name each of the 2 labels and no other; 2 differ, first 'maybe'\. "
        r"The labels are 'no', 'yes'",
    ),
    "too many base rates": (
        {},
        {"base_rate": [0.5, 0.25, 0.25]},
        r"`base_rate` needs one value per label, \(2,\); shape \(3,\) came\. Leave it out",
    ),
    "base rates with a wrong sum": (
        {},
        {"base_rate": [0.5, 0.6]},
        r"`base_rate` must not be negative and must sum to 1; the smallest is 0\.5 and the sum 1",
    ),
    "base rates of both kinds": (
        {},
        {"base_rate": ["a", 0.5]},
        r"`base_rate` must be numbers, a mapping from label to number, or columns; \['a', 0\.5\]",
    ),
    "base rates that are not numbers": (
        {},
        {"base_rate": [0.5, NAN]},
        r"`base_rate` must not be negative and must sum to 1; the smallest is nan",
    ),
    "annotators who repeat themselves": (
        {"item": ["a", "a", "a", "a"], "said": ["yes", "no", "no", None]},
        {"annotator": "who", "duplicates": "error"},
        r"an annotator may label an item once; 1 row repeats an earlier pair, such as item 'a' by "
        r"annotator 'ann'\. Pass duplicates='first' or duplicates='last' .*='all'",
    ),
    "duplicates of nobody": (
        {},
        {"duplicates": "first"},
        r"duplicates='first' needs to know who annotated; no annotator column came\. Pass",
    ),
    "an unknown word for missing": (
        {},
        {"missing": "ignore"},
        r"`missing` must be one of error, drop, trust; 'ignore' came",
    ),
    "an unknown word for duplicates": (
        {},
        {"duplicates": "none"},
        r"`duplicates` must be one of all, average, error, first, last; 'none' came",
    ),
    "an unknown operator": (
        {},
        {"operator": "mean"},
        r"`operator` must be one of cumulative, average, weighted, constraint; 'mean' came",
    ),
    "an unknown form": (
        {},
        {"form": "tall"},
        r"`form` must be one of wide, long, evidence; 'tall'",
    ),
    "an unknown value": (
        {},
        {"values": ["belief", "entropy"]},
        r"`values` must be one of belief, uncertainty, probability, base_rate, evidence, alpha; '",
    ),
    "smoothing of one": (
        {},
        {"smoothing": 1},
        r"`smoothing` must be a number in \[0, 1\); 1 came\.",
    ),
    "smoothing in words": (
        {},
        {"smoothing": "0.1"},
        r"`smoothing` must be a number .*; '0.1' came",
    ),
    "no prior weight": (
        {},
        {"prior_weight": 0},
        r"`prior_weight` must be a positive number; 0 came\. 2 is usual",
    ),
    "prior weight in words": (
        {},
        {"prior_weight": "2"},
        r"`prior_weight` must be a positive number; '2'",
    ),
    "evidence that does not add up": (
        {},
        {"form": "evidence", "operator": "average"},
        r"form='evidence' are for the cumulative operator, whose evidence adds up; "
        r"operator='average' came",
    ),
    "base rates by row in the long form": (
        {},
        {"form": "long", "base_rate": ["a", "b"], "labels": WORDS},
        r"`base_rate` by row gives the wide form only; form='long' came\. Pass one base rate per",
    ),
    "conflict without doubt": (
        {},
        {"operator": "constraint", "smoothing": 0},
        r"constraint operator has no answer where certain annotations conflict; smoothing=0 came\. "
        r"Pass a smoothing such as 0\.01",
    ),
    "labels equal up to case": (
        {"said": ["yes", "no", "Yes", None]},
        {},
        r"columns of the wide form must differ by more than case, .*; 'belief_Yes' and "
        r"'belief_yes' came\. .*form='long'",
    ),
}
