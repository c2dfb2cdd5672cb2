"""`epsilons collect`: ask people directly."""

from epsilons.cli.commands.collect import aggregators, owner, survey
from epsilons.cli.errors import Group

_HELP = "Ask people directly: they randomize their own answers, or share them among aggregators; you estimate."
COMMANDS = {"collect": Group("collect", [*survey.COMMANDS, *owner.COMMANDS, *aggregators.COMMANDS], help=_HELP)}
