"""`python -m epsilons`: the same as the installed command."""

from epsilons.cli.app import run

if __name__ == "__main__":
    run()
