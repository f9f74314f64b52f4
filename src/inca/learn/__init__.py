"""Statistics and models made of private averages."""

from inca.learn.averagers.base import Elsewhere
from inca.learn.averagers.simulated import Aggregator, Average
from inca.learn.budget import Budget, UsedUp
from inca.learn.statistics.distribution import distribution, quantile
from inca.learn.statistics.estimates import Answer, NoResult
from inca.learn.statistics.moments import Moments, covariance, histogram, mean, moments, variance
from inca.learn.statistics.records import Records
from inca.learn.statistics.regression import Line, linear_regression
from inca.learn.training.models import LogisticModel
from inca.learn.training.train import Adam, Clipping, Descent, LocalSteps, Step, Training, train

__all__ = [
    "Adam",
    "Aggregator",
    "Answer",
    "Average",
    "Budget",
    "Clipping",
    "Descent",
    "Elsewhere",
    "Line",
    "LocalSteps",
    "LogisticModel",
    "Moments",
    "NoResult",
    "Records",
    "Step",
    "Training",
    "UsedUp",
    "covariance",
    "distribution",
    "histogram",
    "linear_regression",
    "mean",
    "moments",
    "quantile",
    "train",
    "variance",
]
