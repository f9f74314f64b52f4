"""Statistics and models made of private averages."""

from inca.learn.aggregator import Aggregator, Average
from inca.learn.answers import Answer, NoResult
from inca.learn.averaging import Elsewhere
from inca.learn.budget import Budget, UsedUp
from inca.learn.distribution import distribution, quantile
from inca.learn.models import LogisticModel
from inca.learn.records import Records
from inca.learn.regression import Line, linear_regression
from inca.learn.statistics import Moments, covariance, histogram, mean, moments, variance
from inca.learn.training import Adam, Clipping, Descent, LocalSteps, Step, Training, train

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
