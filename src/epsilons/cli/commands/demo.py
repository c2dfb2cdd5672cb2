"""`epsilons demo`: what the library does, on people who do not exist."""

import click

from epsilons.cli import output


@click.command()
@output.as_json
def demo(as_json: bool) -> None:
    """Plan and ask one question about made-up people, each with an epsilon of their own.

    Needs nothing but the package; keeps nothing. `make demo` of a checkout asks real wages more, and draws pictures.

    \b
    Example:
      epsilons demo
    """
    from epsilons.demo.made_up import ask_people, tell

    shown = ask_people()
    if as_json:
        output.print_json({"made_up": True, "truth": shown.truth, "answer": shown.answer.to_dict()})
    else:
        output.write(tell(shown))


COMMANDS = {"demo": demo}
