"""The commands, by the file that holds them. A file is imported when one of its commands is used or listed."""

from epsilons.statistics.catalogue import CATALOGUE

#: {file: what is typed}; each file holds its commands in `COMMANDS`, by these names.
FILES = {
    "statistics": (*(name.replace("_", "-") for name in CATALOGUE), "plan", "sql"),
    "file": ("init", "check", "sync"),
    "ledger": ("ledger",),
    "collect": ("collect",),
}
