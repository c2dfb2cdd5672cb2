"""One file per mechanism; every file here that registers one is found by its being here.

`base.py` says what a mechanism is, what those that only weigh share; `threshold.py` how a threshold is chosen;
`vetting.py` what "auto" may choose of those that other packages bring, by entry points of `epsilons.mechanisms`.
"""

from importlib import import_module
from pkgutil import iter_modules

from epsilons.arguments.plugins import load_plugins
from epsilons.mechanisms import base
from epsilons.mechanisms import exponential as exponential
from epsilons.mechanisms import weighted as weighted

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
base.OWN.update(base.REGISTERED)
load_plugins("epsilons.mechanisms")  # a module that registers, or a class that is registered where it is defined
