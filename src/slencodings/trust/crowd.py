"""What was learned about a crowd, and what it answers: three readings of the same votes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import em
from slencodings.annotations import Annotations, beside_prior, in_steps, leave_one_out, sums_by
from slencodings.opinion import Codes, Floats, Opinion
from slencodings.trust.truth import TruthModel, log_likelihoods
from slencodings.trust.worth import Ridge

# Of the next vote of somebody who is known, this much is by the truth alone.
_TRUTH_IN_OWN = 0.25


class Evidence(NamedTuple):
    """What annotations add up to, for each item or for each annotation from the others on its item.

    Attributes
    ----------
    votes : (N, K), worth of the votes for each label, in units of the prior weight
    log_likelihood : (N, K), of all annotations if a label is true; None without a model of truth
    n : (N,), how many annotations
    """

    votes: Floats
    log_likelihood: Floats | None
    n: Floats


class People(NamedTuple):
    """How often annotators are right.

    Attributes
    ----------
    right : (M,), how many of their annotations are right
    right_by_model : (M,), the same by the model of truth alone, without what people would say
    variance : (M,), of that number, as the truth is not known for sure
    chance : (M,), how often they would be right by giving their labels without looking
    """

    right: Floats
    right_by_model: Floats
    variance: Floats
    chance: Floats


@dataclass(frozen=True, eq=False)
class Crowd:
    """What a crowd says, how far it is right, and whom to trust, learned from its annotations.

    An annotation is worth w = worth[annotator] x share[level] votes, in units of the prior. Three
    questions have three answers, each a group-by of sums after a look-up:

    votes    What would the next person say?  The votes add up; `votes`.
    truth    Which label is right?            Log-likelihoods add up; `truth`.
    people   How often is each right?         The truth's answer, by annotator; `accuracy`.

    Attributes
    ----------
    annotators, worth, count : (M,), names, worth for predicting votes, how many annotations
    typical_worth : the geometric mean of `worth`, for annotators who are new
    levels, share, level_count : (L,), stated confidence, ascending, and the share of worth that is
        left at it, in (0, 1]; empty if confidence was not learned
    labels, base_rate : (K,), the labels, and how often those gave them whose votes are predicted
    meaning : (K, K), what a vote for a label (row) says about what others say; None if just that
        they say the same, as always where there is no model of truth
    through_truth : in [0, 1], how far votes are read as truth before the next one is predicted
    prior_weight : W of the Dirichlets that the votes' opinions stand for, so that they are as sure
        of several votes together as they should be
    model : what is said where a label is true; None if that was not learned, and then votes are
        the only answer there is to what is true
    people : how often annotators are right
    ridge, losses, converged, from_uncertainty : as in `learn_crowd`; no losses, nothing learned
    """

    # What multiplies (the truth model) and what adds (votes) come from the same people, so their
    # opinions are averaged: of the truth this much is what people would say.
    votes_in_truth: ClassVar[float] = 0.25

    annotators: NDArray[Any]
    worth: Floats
    count: Codes
    typical_worth: float
    levels: Floats
    share: Floats
    level_count: Codes
    labels: NDArray[Any]
    base_rate: Floats
    meaning: Floats | None
    through_truth: float
    prior_weight: float
    model: TruthModel | None
    people: People
    ridge: Ridge
    losses: dict[str, float]
    converged: bool
    from_uncertainty: bool

    def votes(self, annotations: Annotations) -> Opinion:
        """What the next person would say of each item, (N,).

        b_i = (1 - u_i) ((1 - m) E_i C / S_i + m V_i),   u_i = 1 / (1 + S_i),   S_i = sum_k E_ik

        E adds up the votes by their worth, C is `meaning`, V is what people say where the truth is
        as it seems, and m is `through_truth`. u falls with every annotation; without any it is 1.
        """
        return self.votes_of(self.evidence(annotations))

    def truth(self, annotations: Annotations) -> Opinion:
        """Which label is right for each item, (N,).

        P_i = 3/4 p(truth | annotations) + 1/4 votes,   u_i = min_k P_ik / a_k,   a = prior

        An opinion on a matter of fact is as uncertain as its probabilities allow (Jøsang 2016,
        ch. 3): u is 1 where nothing points away from the prior and falls as one label is ruled out.
        """
        return self.truth_of(self.evidence(annotations))

    def conflict(self, annotations: Annotations) -> Floats:
        """How far the votes on each item contradict each other, (N,), in [0, 1]: `conflict_of`."""
        return conflict_of(self._labelled(annotations).sums(self.annotation_worth(annotations)))

    def predict(self, annotations: Annotations) -> Floats:
        """What somebody would say, (R, K), for each annotation from the others on its item."""
        return self.votes_of(self.evidence_of_others(annotations)).probability

    def predict_own(self, annotations: Annotations) -> Floats:
        """What this very annotator would say, (R, K), from the others on the item.

        P ~ 3/4 V O / C + 1/4 O,   O = t A_m,   C = t A

        V is what anybody would say, t the truth by the others, and A_m and A are what this
        annotator and the crowd say where it holds. So the first part, scaled to sum to 1, has all
        that votes tell, stated confidence too, and is moved by what is special about the annotator.
        """
        a = self._labelled(annotations)
        evidence = self.evidence_of_others(annotations)
        votes, truth = self.votes_of(evidence).probability, self._posterior(evidence)
        if self.model is None or truth is None:
            return votes
        own = np.einsum("qc,qcl->ql", truth, self._confusion(self.model, a)[a.annotator])
        moved = votes * own / (truth @ self.model.crowd)
        moved /= np.sum(moved, axis=1, keepdims=True)
        return (1 - _TRUTH_IN_OWN) * moved + _TRUTH_IN_OWN * own

    @property
    def votes_say_more(self) -> bool:
        """Whether a vote says something about other labels too; only where truth is modelled."""
        return self.meaning is not None

    @property
    def learned(self) -> bool:
        """Whether there was something to learn from; else everybody counts the same."""
        return bool(self.losses)

    @property
    def accuracy(self) -> Floats:
        """How often each annotator is right, (M,), by the truth reading; nan if never seen."""
        seen = self.count > 0
        return np.divide(self.people.right, self.count, out=np.full(len(seen), np.nan), where=seen)

    @property
    def above_chance(self) -> Floats:
        """The same between guessing, 0, and always right, 1."""
        return em.above_chance(self.accuracy, self.people.chance)

    def above_chance_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Where `above_chance` lies, (M,) and (M,).

        Beta quantiles with a prior of half a success and half a failure; what is not known of the
        truth counts like annotations that were not seen. The truth reading says less than the model
        of truth behind it, in case people err together. As nobody knows how far they do, the ends
        are the outer ones of the two.
        """
        from scipy.special import betaincinv

        p, people = np.nan_to_num(self.accuracy, nan=0.5), self.people
        spread, doubt = p * (1 - p), people.variance / np.maximum(self.count, 1)
        n = self.count * np.divide(spread, spread + doubt, out=np.ones(len(p)), where=doubt > 0)
        by_model = np.divide(people.right_by_model, self.count, out=p.copy(), where=self.count > 0)

        def quantiles(q: float) -> Floats:
            return np.stack([betaincinv(0.5 + n * x, 0.5 + n * (1 - x), q) for x in (p, by_model)])

        low, high = quantiles((1 - level) / 2).min(axis=0), quantiles((1 + level) / 2).max(axis=0)
        return em.above_chance(low, people.chance), em.above_chance(high, people.chance)

    def annotation_worth(self, annotations: Annotations) -> Floats:
        """What each annotation is worth, (R,), per unit of prior weight, in steps of 2**-32."""
        worth = self._for(annotations, self.worth, self.typical_worth)[annotations.annotator]
        if not len(self.levels):
            return in_steps(worth)
        return in_steps(worth * self.share[self.level_of(annotations)])

    def level_of(self, annotations: Annotations) -> Codes:
        """Which of the levels is nearest to the confidence of each annotation, (R,)."""
        middle = (self.levels[1:] + self.levels[:-1]) / 2
        return np.searchsorted(middle, self.confidence(annotations))

    def confidence(self, annotations: Annotations) -> Floats:
        """The confidence of each annotation, (R,), as it was learned: as stated, or 1 - u."""
        if self.from_uncertainty:
            return replace(annotations, stated=None).confidence
        if annotations.stated is None and len(self.levels):
            raise ValueError(
                "`stated` is needed, as this crowd was learned with stated confidence; none came. "
                f"Give each annotation one of the levels {self.levels.tolist()}: "
                "dataclasses.replace(annotations, stated=...)."
            )
        return annotations.confidence

    def gain(self) -> str:
        """How much better than plain votes it predicts, in words."""
        if not self.losses:
            return "nothing was learned: each annotation is one count"
        votes, held_out = self.losses["votes"], self.losses.get("held_out")
        if held_out is None:
            return (
                f"too few to hold some out; log-loss of votes {votes:.3f} (one count each) -> "
                f"{self.losses['learned']:.3f} on these themselves"
            )
        return (
            f"log-loss of votes kept back meanwhile {votes:.3f} (one count each) -> {held_out:.3f}"
        )

    def __str__(self) -> str:
        from slencodings.trust.text import in_words

        return in_words(self)

    def votes_of(self, evidence: Evidence) -> Opinion:
        """What the next person would say, by what annotations add up to."""
        E, m, truth = evidence.votes, self.through_truth, self._posterior(evidence)
        S = np.sum(E, axis=1, keepdims=True)
        b = E if self.meaning is None else E @ self.meaning
        if self.model is not None and truth is not None:
            b = (1 - m) * b + m * S * (truth @ self.model.habits)
        return beside_prior(b, S[:, 0], self.base_rate)

    def truth_of(self, evidence: Evidence) -> Opinion:
        """Which label is right, by what annotations add up to."""
        votes, truth = self.votes_of(evidence).probability, self._posterior(evidence)
        c, a, some = self.votes_in_truth, self.prior, (evidence.n > 0)[:, None]
        P = np.where(some, votes if truth is None else (1 - c) * truth + c * votes, a)
        return of_fact(P, a)

    def _posterior(self, evidence: Evidence) -> Floats | None:
        if self.model is None or evidence.log_likelihood is None:
            return None
        return self.model.posterior(evidence.log_likelihood, evidence.n)

    def evidence(self, annotations: Annotations) -> Evidence:
        """What annotations add up to for each item."""
        a, N = self._labelled(annotations), len(annotations.items)
        each, summed = self.log_likelihoods(annotations), None
        if each is not None:
            summed = np.stack([np.bincount(a.item, x, N) for x in each.T], axis=1, dtype=float)
        n = np.bincount(a.item, minlength=N).astype(float)
        return Evidence(a.sums(self.annotation_worth(annotations)), summed, n)

    def evidence_of_others(self, annotations: Annotations) -> Evidence:
        """What the others on the item of each annotation add up to."""
        a, each = self._labelled(annotations), self.log_likelihoods(annotations)
        n = (np.bincount(a.item)[a.item] - 1).astype(float)
        votes = a.sums_of_others(self.annotation_worth(annotations))
        return Evidence(votes, None if each is None else -leave_one_out(-each, a.item), n)

    def log_likelihoods(self, annotations: Annotations) -> Floats | None:
        """Of each annotation if a label is true, (R, K); None without a model of truth."""
        if self.model is None:
            return None
        a = self._labelled(annotations)
        return log_likelihoods(a, in_steps(np.log(self._confusion(self.model, a))))

    def judge_people(self, annotations: Annotations) -> People:
        """How often annotators are right by the truth reading, how sure that is, and by chance."""
        a, evidence = self._labelled(annotations), self.evidence(annotations)
        M, R = len(a.annotators), len(a.item)
        P, by_model = self.truth_of(evidence).probability, self._posterior(evidence)

        def of_annotations(of_items: Floats) -> Floats:
            return np.einsum("qk,qk->q", of_items[a.item], a.y) if a.soft else of_items[a.item, a.y]

        right = of_annotations(P)
        # By what is true of these items as it is read here, or always saying the commonest label
        # would be better or worse than chance.
        usual = np.bincount(a.item, minlength=len(P)) @ P / max(R, 1)
        n = np.maximum(np.bincount(a.annotator, minlength=M), 1)
        return People(
            sums_by(a.annotator, right, M),
            sums_by(a.annotator, right if by_model is None else of_annotations(by_model), M),
            sums_by(a.annotator, right * (1 - right), M),
            sums_by(a.annotator, a.y @ usual if a.soft else usual[a.y], M) / n,
        )

    @property
    def prior(self) -> Floats:
        """How common each truth is, (K,)."""
        return self.base_rate if self.model is None else self.model.prior

    def _confusion(self, model: TruthModel, annotations: Annotations) -> Floats:
        return self._for(annotations, model.confusion, model.crowd)

    def _for(self, annotations: Annotations, known: Floats, new: Any) -> Floats:
        """What is known of each of the annotators of these annotations; else what is expected."""
        names = annotations.annotators.tolist()
        if names == self.annotators.tolist():
            return known
        place = {name: m for m, name in enumerate(self.annotators.tolist())}
        everybody = np.concatenate([known, np.asarray(new)[None]])
        return everybody[[place.get(name, len(known)) for name in names]]

    def _labelled(self, annotations: Annotations) -> Annotations:
        """The annotations with their labels in the order of the crowd's."""
        place = {label: k for k, label in enumerate(self.labels.tolist())}
        new = [label for label in annotations.labels.tolist() if label not in place]
        if new:
            raise ValueError(
                "the labels must be among those the crowd was learned for, "
                f"{', '.join(map(str, list(place)[:10]))}; {len(new)} are not, first {new[0]!r}. "
                "Learn again with annotations that have it."
            )
        at = np.asarray([place[label] for label in annotations.labels.tolist()], dtype=np.intp)
        y = annotations.y @ np.eye(len(place))[at] if annotations.soft else at[annotations.y]
        return replace(annotations, y=y, labels=self.labels)


def of_fact(P: Floats, a: Floats) -> Opinion:
    """As uncertain as the probabilities allow: 1 at the prior, 0 where a label is ruled out."""
    u = np.minimum(np.min(P[:, a > 0] / a[a > 0], axis=1), 1)
    return Opinion(np.maximum(P - u[:, None] * a, 0), u, np.tile(a, (len(u), 1)))


def conflict_of(votes: Floats) -> Floats:
    """How far votes of this worth (N, K) contradict each other, (N,), in [0, 1].

    The chance that two votes drawn by their worth differ, times K / (K - 1): 0 where all say the
    same, whatever is known about the item, and 1 where every label has as much.
    """
    total, K = np.sum(votes, axis=1, keepdims=True), votes.shape[1]
    p = np.divide(votes, total, out=np.zeros(votes.shape), where=total > 0)
    differ = np.where(total[:, 0] > 0, 1 - np.sum(p**2, axis=1), 0)
    # A single label leaves a hair of rounding.
    return np.where(np.sum(votes > 0, axis=1) > 1, differ * K / max(K - 1, 1), 0)
