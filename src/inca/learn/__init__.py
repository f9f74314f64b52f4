"""Statistics and models made of private averages."""

from inca.learn.aggregator import Aggregator, Average
from inca.learn.answers import Answer, NoResult
from inca.learn.budget import Budget, UsedUp
from inca.learn.distribution import distribution, quantile
from inca.learn.records import Records
from inca.learn.regression import Line, linear_regression
from inca.learn.statistics import covariance, histogram, mean, moments, variance
from inca.learn.training import train

__all__ = [
    "Aggregator",
    "Answer",
    "Average",
    "Budget",
    "Line",
    "NoResult",
    "Records",
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
