"""The command line: `epsilons COMMAND`, a client of the library.

app.py       finds a command of `commands/` and runs it;  options.py: flags, and the arguments that they become
output.py    what is printed;  errors.py: refusals in the language of flags and files, and their exit status
"""
