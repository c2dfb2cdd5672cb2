"""`epsilons witness`: keeps the heads of ledgers, so that an older copy of one is refused to all its clients."""

from __future__ import annotations

from typing import Any

import click

from epsilons.cli.listening import listening, prepare
from epsilons.cli.output import note

_FILE = click.Path(dir_okay=False)


@click.command()
@click.option("--store", required=True, help='"sqlite:///witness.store" or "postgresql://.../database?schema=witness".')
@click.option("--key", "key_file", required=True, type=_FILE, help="The key it signs with; made if missing.")
@listening(8710)
def witness(store: str, key_file: str, host: str, port: int, **given: Any) -> None:
    """Run a witness until interrupted. Prints its address and its public key.

    It keeps the heads of as many ledgers as name it, and nothing else of them; heads only go forward. Run it on another
    machine than the ledgers, by somebody who does not restore their backups. It may be killed and started again at any
    time. A new store needs a new key; files that others on this computer can read are refused.

    \b
    Example:
      epsilons witness --store sqlite:///witness.store --key witness.key
    """
    from epsilons.collection.sealing import fingerprint
    from epsilons.ledger.heads import Heads
    from epsilons.service.serving import serve
    from epsilons.service.witness import LOG, WitnessApp, begin

    https = prepare(LOG, host, "a witness", **given)
    heads = Heads(store)
    key = begin(heads, key_file)

    def ready(url: str) -> None:
        click.echo(f"{url} {key.public}")
        note(f"Listening on {url}. Key: {fingerprint(key.public)}")

    serve(WitnessApp(heads, key), host, port, ready=ready, **https)


COMMANDS = {"witness": witness}
