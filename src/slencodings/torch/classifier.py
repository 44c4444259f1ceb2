"""A scikit-learn classifier that learns from opinions and predicts them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from slencodings.annotations import Annotations
from slencodings.choices import Schedule, TrainingObjective
from slencodings.opinion import Floats, Opinion
from slencodings.progress import notes
from slencodings.torch import saving
from slencodings.torch.losses import LEARNED
from slencodings.torch.network import Network, build, load_weights, losses_of
from slencodings.torch.rounds import Rounds, learn_in_rounds
from slencodings.torch.targets import Target, in_order, read_target
from slencodings.torch.training import Checkpoint, TrainingPlan, check_plan, train

# PyTorch's random numbers, whose functions it gives no types.
_random: Any = torch.random
# Rows that are predicted at a time.
_CHUNK = 1024
# Parameters that are no part of a stored model: what it was trained from, where and how loudly.
_NOT_STORED = ("encoder", "labels", "reliability", "checkpoint", "device", "verbose")
# What else is learned in training, as plain values.
_FITTED = (
    "history_",
    "input_shape_",
    "input_dtype_",
    "n_features_in_",
    "feature_names_in_",
    "text_encoder_",
    "questions_",
)


class SLEClassifier(ClassifierMixin, BaseEstimator):
    """A network that learns from opinions, annotations or labels, and predicts opinions.

    Parameters
    ----------
    encoder : a module from inputs (n, ...) to features (n, F); it is copied. None is a plain
        network of `hidden` layers for features (n, D); () is logistic regression
    objective : "reverse_kl" or "forward_kl" to opinions (Eqs. 10, 12; forward after some reverse);
        "cross_entropy" or "soft_kl" to distributions (Eqs. 8, 9); "votes", "mtlsl": see `losses`
    labels : the K labels, for targets that do not name them or have only some of them
    reliability : for annotations, see `aggregate.sle`; "learned" is
        `trust.learn_crowd(annotations).votes`
    smoothing : the doubt left about everybody; labels get it where the objective is a KL
    normalize : divide the KL by the concentration of the target, so that rows count the same;
        else those that much is known about count more, as the paper prints it
    prior_weight : W, of the Dirichlet distributions; 2 where none is said, and for a KL a quarter
        more for each label beyond ten, as in `kl_loss`
    schedule : of the learning rate of AdamW: "cosine" or "constant"
    validation : share of rows held out, to stop after `patience` epochs without a lower loss and
        keep the best weights; 0 trains on all rows to the end. Of annotations it is the log-loss
        of the votes, and where nothing is asked for, a tenth of 100 rows or more: of fewer than
        2,000 votes so many rows more that 200 votes are held out, or at most three tenths
    checkpoint : a file written after each epoch; a run that was stopped goes on from it
    rounds : of annotations: more than 1 lets networks that have not seen an item help to say what
        is true of it, and learns from that, as long as votes on held-out items are predicted
        better; see `rounds.learn_in_rounds`
    device : of PyTorch, such as "cuda"
    verbose : show a bar on a terminal

    Attributes
    ----------
    classes_ : array (K,), the labels
    network_ : the trained module, from inputs to `Opinion`
    history_ : one row per epoch: epoch, loss, validation_loss
    rounds_ : what came of `rounds`, if there were several
    text_encoder_ : what read the texts that X was made of, if somebody says so before storing it
    questions_ : the labels that the last columns of X ask about, if somebody says so likewise

    Examples
    --------
    >>> X = np.asarray([[0.0], [0.2], [0.8], [1.0]])
    >>> model = SLEClassifier(max_epochs=50, random_state=0).fit(X, ["no", "no", "yes", "yes"])
    >>> model.predict(X)
    array(['no', 'no', 'yes', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        encoder: nn.Module | None = None,
        *,
        hidden: Sequence[int] = (64,),
        objective: TrainingObjective = "reverse_kl",
        labels: Sequence[Any] | None = None,
        reliability: Any = None,
        smoothing: float = 0.01,
        normalize: bool = True,
        prior_weight: float | None = None,
        max_epochs: int = 100,
        batch_size: int = 64,
        learning_rate: float = 3e-3,
        weight_decay: float = 0.01,
        schedule: Schedule = "cosine",
        validation: float | None = None,
        patience: int = 10,
        checkpoint: str | Path | None = None,
        rounds: int = 1,
        device: str = "cpu",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        """Keep the parameters; see the class."""
        self.encoder = encoder
        self.hidden = hidden
        self.objective: TrainingObjective = objective
        self.labels = labels
        self.reliability = reliability
        self.smoothing = smoothing
        self.normalize = normalize
        self.prior_weight = prior_weight
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.validation = validation
        self.patience = patience
        self.checkpoint = checkpoint
        self.rounds = rounds
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, items: Any = None, gold: Any = None) -> SLEClassifier:
        """Learn from a target for each row of X.

        Parameters
        ----------
        X : array (N, D); or (N, ...), whatever the encoder takes, where whole numbers stay whole
        y : Opinion (N,), Annotations of N items, a wide table of opinions, probabilities (N, K)
            (or votes, for objective="votes"), or labels (N,). Items without annotations are
            left out
        items : the names of the rows of X, to find their targets in annotations or a table; else
            rows and targets are in the same order
        gold : labels (N,), for objective="mtlsl"
        """
        if y is None:
            raise ValueError("SLEClassifier requires y to be passed, but the target y is None.")
        plan = TrainingPlan(**{name: getattr(self, name) for name in TrainingPlan._fields})
        check_plan(plan, self.objective)
        x = self._inputs(X, reset=True)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        trust, labels, names = self.reliability, self.labels, None
        if self.rounds != 1:
            y = in_order(y, len(x), labels, items)
            names = y.items
            self.rounds_ = self._in_rounds(x.numpy(), y, seed)
            items, labels = None, y.labels
            if self.rounds_.target is not None:
                y, trust = self.rounds_.target, None
        target = read_target(
            y,
            n_rows=len(x),
            objective=self.objective,
            labels=labels,
            reliability=trust,
            smoothing=self.smoothing,
            items=items,
            gold=gold,
        )
        self.classes_ = target.labels
        self.network_, self.history_ = self._train(x[target.rows], target, plan, seed)
        names = names if target.items is None else target.items
        self.text_encoder_: str | None = None
        self.questions_: list[str] | None = None
        self.seen_ = saving.name_hashes([] if names is None else names.tolist())
        return self

    def _train(
        self, x: Tensor, target: Target, plan: TrainingPlan, seed: int
    ) -> tuple[Network, list[dict[str, float]]]:
        """A network that has learned the target of rows x, from a checkpoint on if there is one."""
        values = tuple(torch.tensor(v) for v in target.values)
        votes = None if target.votes is None else torch.tensor(target.votes)
        losses = losses_of(self.objective, self.prior_weight, self.normalize)
        file, start, training = self.checkpoint, None, None
        if file is not None:
            training = saving.Training(
                labels=saving.labels_to_json(target.labels),
                parameters=self._stored_parameters(),
                data=saving.fingerprint(x, *values),
                seed=seed,
            )
            start, seed = saving.read_checkpoint(file, training)
            training["seed"] = seed
        mean = Opinion(*target.values) if LEARNED[self.objective] == "opinion" else None
        device = torch.device(self.device)
        # Training uses PyTorch's own random numbers, as the encoder may; the caller's stay.
        cuda = [device] if device.type == "cuda" else []
        with _random.fork_rng(cuda), notes(not self.verbose) as (_, show):
            _random.manual_seed(seed)
            first = x[:1].to(device)
            network = build(
                self.encoder, first, self.hidden, target.base_rate, self.objective, mean
            )

            def after_epoch(now: Checkpoint) -> None:
                show("train", len(now.history), plan.max_epochs, "epochs")
                if file is not None and training is not None:
                    saving.write_checkpoint(file, now, training)

            history = train(
                network, losses, x, values, plan, votes=votes, start=start, after_epoch=after_epoch
            )
        return network, history

    def has_seen(self, items: Any) -> NDArray[np.bool_]:
        """Which of these items, by name, it was trained on, (n,): scores on them say little."""
        check_is_fitted(self, "network_")
        return np.isin(saving.name_hashes(items), self.seen_)

    def _in_rounds(self, X: NDArray[Any], crowd: Annotations, seed: int) -> Rounds:
        """Rounds of networks like this one; see `learn_in_rounds`."""
        if LEARNED[self.objective] not in ("opinion", "shares"):
            raise ValueError(
                f"`rounds` learn from opinions or shares, and objective={self.objective!r} does "
                "not. Use 'reverse_kl' or 'cross_entropy'."
            )
        one = clone(self).set_params(rounds=1, checkpoint=None, verbose=False, random_state=seed)
        with notes(not self.verbose) as (_, show):
            return learn_in_rounds(
                one,
                X,
                crowd,
                rounds=self.rounds,
                smoothing=self.smoothing,
                rng=seed,
                progress=lambda done, total: show("rounds", done, total, "networks"),
            )

    def predict_opinion(self, X: Any) -> Opinion:
        """Opinions (N,) about the rows of X."""
        check_is_fitted(self, "network_")
        x = self._inputs(X, reset=False)
        device = next(self.network_.parameters()).device
        with torch.no_grad():
            parts = [self.network_.opinion(part.to(device)) for part in torch.split(x, _CHUNK)]
        b, u, a = (torch.cat(part).cpu().double().numpy() for part in zip(*parts, strict=True))
        # In single precision they sum to one in seven digits only.
        total = b.sum(axis=-1) + u
        return Opinion(b / total[:, None], u / total, a / a.sum(axis=-1, keepdims=True))

    def predict_proba(self, X: Any) -> Floats:
        """The projected probability of each label (Eq. 2), (N, K)."""
        return self.predict_opinion(X).probability

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each row, (N,)."""
        p = self.predict_proba(X)
        return self.classes_[p.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, items: Any = None) -> float:
        """Accuracy: how often the predicted label is the most probable one of the target.

        `y` is of any kind that `fit` takes; of annotations it is the label said most often.
        """
        p = self.predict_proba(X)
        kind: TrainingObjective = "votes" if self.objective == "votes" else "cross_entropy"
        target = read_target(y, n_rows=len(p), objective=kind, labels=self.classes_, items=items)
        right = p[target.rows].argmax(axis=1) == target.values[0].argmax(axis=1)
        weight = None if sample_weight is None else np.asarray(sample_weight)[target.rows]
        return float(np.average(right, weights=weight))

    def save(self, path: str | Path) -> None:
        """Write the trained model to one file, without pickle: safetensors with JSON inside."""
        check_is_fitted(self, "network_")
        about = saving.StoredModel(
            labels=saving.labels_to_json(self.classes_),
            parameters=self._stored_parameters(),
            fitted={name: getattr(self, name) for name in _FITTED if hasattr(self, name)},
            plain=self.encoder is None,
        )
        tensors = self.network_.state_dict() | {"seen": torch.as_tensor(self.seen_)}
        saving.write(path, "classifier", tensors, about)

    @classmethod
    def load(cls, path: str | Path, *, encoder: nn.Module | None = None) -> SLEClassifier:
        """Read what `save` wrote; a model with an encoder of its own needs one like it again."""
        about: saving.StoredModel
        tensors, about = saving.read(path, "classifier")
        if not saving.says(about, saving.StoredModel):
            raise ValueError(f"{str(path)!r} is damaged: it does not say what model it holds.")
        if about["plain"] != (encoder is None):
            raise ValueError(
                f"{str(path)!r} was trained {'without' if about['plain'] else 'with'} an encoder "
                "of its own, and a file without pickle holds only its weights. "
                f"Type: SLEClassifier.load(path{'' if about['plain'] else ', encoder=module'})"
            )
        try:
            if other := sorted({*about["parameters"]} & {*_NOT_STORED}):
                raise ValueError(f"it sets {other[0]!r}, which no stored model does")
            model = cls(encoder, **about["parameters"])
            # Models of 0.1.0 do not say which items they have seen.
            model.seen_ = tensors.pop("seen", torch.zeros(0, dtype=torch.int64)).numpy()
            model.classes_ = saving.labels_from_json(about["labels"])
            for name in {*_FITTED} & about["fitted"].keys():
                value = about["fitted"][name]
                setattr(model, name, np.asarray(value) if name == "feature_names_in_" else value)
            model.network_ = model._empty_network(sum(x.numel() for x in tensors.values()))
        except Exception as error:  # what is altered breaks in many ways
            raise ValueError(
                f"{str(path)!r} does not hold a model that can be made again: {error}. Train it "
                "again, or take the last copy that you have of it."
            ) from error
        load_weights(model.network_, tensors, str(path))
        return model

    def _empty_network(self, n_weights: int) -> Network:
        """A network like the one that was trained, for stored weights, which are so many."""
        if self.encoder is None:
            sizes = [*self.input_shape_, *self.hidden, len(self.classes_)]
            if (features := getattr(self, "n_features_in_", sizes[0])) != sizes[0]:
                raise ValueError(f"it says {features!r} features, and {sizes[0]!r} go in")
            # Or a small file could ask for a network that no memory holds.
            if sum(a * b for a, b in pairwise(sizes)) > n_weights:
                raise ValueError(f"layers of {sizes} have more weights than {n_weights:,}")
        row = torch.zeros(1, *self.input_shape_, dtype=getattr(torch, self.input_dtype_))
        base_rate = np.full(len(self.classes_), 1 / len(self.classes_))
        with _random.fork_rng([]):
            return build(self.encoder, row, self.hidden, base_rate, self.objective).eval()

    def _inputs(self, X: Any, *, reset: bool) -> Tensor:
        """Rows as a tensor of their own, checked to be finite and like those trained on."""
        plain = self.encoder is None
        integers = not plain and np.asarray(X).dtype.kind in "iu"
        kind = np.int64 if integers else np.float32
        x = torch.tensor(
            validate_data(self, X, reset=reset, dtype=kind, ensure_2d=plain, allow_nd=not plain)
        )
        shape = list(x.shape[1:])
        if reset:
            self.input_shape_, self.input_dtype_ = shape, kind.__name__
        elif shape != self.input_shape_:
            raise ValueError(
                f"rows of X must have the shape of those trained on, {self.input_shape_}; "
                f"{shape} came."
            )
        return x

    def _stored_parameters(self) -> dict[str, Any]:
        """The parameters that a stored model or checkpoint keeps."""
        kept = {k: v for k, v in self.get_params(False).items() if k not in _NOT_STORED}
        seed = self.random_state if isinstance(self.random_state, Integral) else None
        return kept | {"random_state": seed}
