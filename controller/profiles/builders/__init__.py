"""Job profiles of the usual ways to train, from one specification."""

from controller.profiles.builders.parameter_server import parameter_server
from controller.profiles.builders.sizing import Accelerator, layers_of
from controller.profiles.builders.spec import Layer, Spec
from controller.profiles.builders.training import build

__all__ = ["Accelerator", "Layer", "Spec", "build", "layers_of", "parameter_server"]
