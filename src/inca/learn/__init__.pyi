# The public names of inca.learn, listed once: type checkers read this file, and so does `inca.learn` itself, which
# loads a name when it is first used.
from .averagers.base import Averager as Averager
from .averagers.base import RemoteRecords as RemoteRecords
from .averagers.base import VectorMean as VectorMean
from .averagers.network import NetworkAverager as NetworkAverager
from .averagers.simulated import SimulatedAverager as SimulatedAverager
from .budget import Budget as Budget
from .comparison.compare import ComparisonScore as ComparisonScore
from .comparison.compare import compare_averagers as compare_averagers
from .comparison.compare import paired_difference as paired_difference
from .comparison.datasets import Dataset as Dataset
from .comparison.datasets import divide_records as divide_records
from .comparison.datasets import load_dataset as load_dataset
from .comparison.trials import ComparisonTask as ComparisonTask
from .statistics.distribution import DistributionEstimate as DistributionEstimate
from .statistics.distribution import QuantileEstimate as QuantileEstimate
from .statistics.distribution import distribution as distribution
from .statistics.distribution import quantile as quantile
from .statistics.distribution import quantiles as quantiles
from .statistics.estimates import Estimate as Estimate
from .statistics.moments import Moments as Moments
from .statistics.moments import covariance as covariance
from .statistics.moments import histogram as histogram
from .statistics.moments import moments as moments
from .statistics.records import Records as Records
from .statistics.regression import LinearFit as LinearFit
from .statistics.regression import linear_regression as linear_regression
from .study import Study as Study
from .study import read_records as read_records
from .study import read_study as read_study
from .study_run import run_study as run_study
from .training.averaging_loop import AveragingLoop as AveragingLoop
from .training.clipping import Clipping as Clipping
from .training.contributions import LocalSteps as LocalSteps
from .training.logistic import PrivateLogisticRegression as PrivateLogisticRegression
from .training.models import LogisticModel as LogisticModel
from .training.models import Model as Model
from .training.models import RecordModel as RecordModel
from .training.optimizers import SGD as SGD
from .training.optimizers import Adam as Adam
from .training.optimizers import Optimizer as Optimizer
from .training.torch_module import TorchModel as TorchModel
from .training.train import TrainingResult as TrainingResult
from .training.train import TrainingStep as TrainingStep
from .training.train import train as train

__all__: list[str]
