"""`epsilons collect aggregator`: one of the aggregators that need not trust each other."""

from __future__ import annotations

import click

from epsilons.cli.terminal import notes


@click.command()
@click.option("--store", required=True, help='"sqlite:///one.store" or "postgresql://.../database?schema=one".')
@click.option(
    "--key", "key_file", required=True, type=click.Path(dir_okay=False), help="Its secret key; made if missing."
)
@click.option(
    "--token",
    "token_file",
    required=True,
    type=click.Path(dir_okay=False),
    help="What the coordinator shows; made if missing.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8700, show_default=True, help="0 takes any free port.")
@click.option(
    "--minimum", type=click.IntRange(10), default=10, show_default=True, help="The smallest batch it adds up."
)
@click.option("--certificate", type=click.Path(dir_okay=False), help="PEM file; then it speaks HTTPS.")
@click.option("--certificate-key", type=click.Path(dir_okay=False), help="The certificate's key.")
def command(
    store: str,
    key_file: str,
    token_file: str,
    host: str,
    port: int,
    minimum: int,
    certificate: str | None,
    certificate_key: str | None,
) -> None:
    """Run an aggregator until interrupted. Prints its address and its public key.

    Run two or more, on machines of parties who would not collude. Each keeps its key and its store to itself; the
    token goes to the coordinator. It may be killed and started again at any time.

    Example:

      epsilons collect aggregator --store sqlite:///one.store --key one.key --token one.token --port 8701
    """
    from epsilons.collection import Aggregator, Store
    from epsilons.collection.sealing import OpeningKey, fingerprint, keep_secret
    from epsilons.service.aggregator import AggregatorApp
    from epsilons.service.serving import serve

    aggregator = Aggregator(Store(store), OpeningKey.from_bytes(keep_secret(key_file)), minimum=minimum)
    app = AggregatorApp(aggregator, keep_secret(token_file).hex())

    def ready(url: str) -> None:
        click.echo(f"{url} {aggregator.key}")
        notes().print(f"Listening on {url}. Key: {fingerprint(aggregator.key)}", markup=False, soft_wrap=True)

    serve(app, host, port, certificate=certificate, certificate_key=certificate_key, ready=ready)
