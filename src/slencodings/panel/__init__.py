"""Panels of people and language models: are the models worth having, and which of them?"""

from slencodings.panel.alternative import (
    AlternativeAnnotatorTest,
    alternative_annotator_test,
    benjamini_yekutieli,
)
from slencodings.panel.confidence import Stated, stated_confidence
from slencodings.panel.describe import describe_panel
from slencodings.panel.families import Family, effective_votes
from slencodings.panel.held_out import Score, WithPeople
from slencodings.panel.opinions import LearnedPanel, learn_panel
from slencodings.panel.rows import About, Judge, Panel, Step
from slencodings.panel.sides import choose_people, family, once_each

__all__ = [
    "About",
    "AlternativeAnnotatorTest",
    "Family",
    "Judge",
    "LearnedPanel",
    "Panel",
    "Score",
    "Stated",
    "Step",
    "WithPeople",
    "alternative_annotator_test",
    "benjamini_yekutieli",
    "choose_people",
    "describe_panel",
    "effective_votes",
    "family",
    "learn_panel",
    "once_each",
    "stated_confidence",
]
