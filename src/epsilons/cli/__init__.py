"""The command line: `epsilons COMMAND`. One file per command in `commands/`; this package only finds and runs them."""
