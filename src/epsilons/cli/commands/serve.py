"""`epsilons serve` and `epsilons keys`: a gateway for analysts, who hold neither data nor ledger; who may come in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli.errors import Group
from epsilons.cli.output import as_json, note, print_json, width, write
from epsilons.display import text_table

if TYPE_CHECKING:
    from socket import socket

    from epsilons.dataset.registry import Registry
    from epsilons.service.gateway import GatewayApp
    from epsilons.service.holdings import Holding
    from epsilons.service.keys import Keys
    from epsilons.service.settings import Settings

_FILE = click.Path(dir_okay=False)
_ROLES = click.Choice(["steward", "analyst", "person", "operator"])
_gateway_file = click.argument("gateway", type=_FILE, metavar="GATEWAY.TOML")


@click.command(short_help="Run a gateway: analysts ask, and hold neither data nor ledger.")
@click.argument("gateway", type=_FILE, required=False, metavar="[GATEWAY.TOML]")
@click.option(
    "--demo", is_flag=True, help="Serve real wages with made-up preferences, and print ways in for three roles."
)
@click.option("--port", type=click.IntRange(0, 65535), help="Instead of the file's; 0 takes any free port.")
def serve(gateway: str | None, demo: bool, port: int | None) -> None:
    """Run a gateway until interrupted. Prints its address; on stderr a line for each request, without what was asked.

    The file names the datasets (registered before) and a store for hashes of keys. `epsilons keys add` makes a key.

    \b
    Example:
      epsilons serve --demo
    """
    from epsilons.errors import DataError
    from epsilons.service import serving
    from epsilons.service.settings import Settings
    from epsilons.storage.files import check_private, claim_folder, release_folder

    if (gateway is None) != demo:
        raise click.UsageError("Name the gateway's file, or give --demo.")
    serving.check_server()
    with ExitStack() as opened:
        place = claim_folder()
        opened.callback(release_folder, place)
        store = f"sqlite:///{place}/gateway.store"
        settings = Settings(store, ()) if gateway is None else Settings.read(gateway)
        if settings.certificate_key is not None:
            check_private(settings.certificate_key, DataError)
        listening = serving.listen(settings.host, settings.port if port is None else port)
        opened.callback(listening.close)
        url = serving.name_address(settings.host, listening, settings.certificate)
        if settings.workers == 1:
            _work(settings, listening, Path(place), partial(_show_demo if demo else _show, url))
            return
        from epsilons.service.workers import run_workers

        def work(ready: Callable[[], None]) -> None:
            _work(settings, listening, Path(place), lambda _: ready())

        status = run_workers(settings.workers, work, partial(_show, url))
    if status:
        raise click.exceptions.Exit(status)


def _work(settings: Settings, listening: socket, place: Path, ready: Callable[[GatewayApp], None]) -> None:
    """One worker: it opens what it needs, says that it is ready, and takes requests until interrupted."""
    from epsilons.service import serving
    from epsilons.service.gateway import GatewayApp
    from epsilons.service.holdings import open_holdings
    from epsilons.service.pages.ways import add_pages
    from epsilons.service.routes import ROUTES
    from epsilons.service.store import open_store

    _log_requests()
    with ExitStack() as opened:
        store = open_store(settings.store)
        opened.callback(store.close)
        if settings.datasets:
            holdings = open_holdings(settings.datasets, place, settings.workers)
        else:
            holdings = opened.enter_context(_hold_demo(place))
        for one in holdings.values():
            opened.callback(one.close)
        app = GatewayApp(holdings, store, ROUTES, place, settings.address)
        add_pages(app)
        opened.callback(app.replies.close)
        ready(app)
        with suppress(KeyboardInterrupt):
            serving.run(app, listening, settings.certificate, settings.certificate_key)


def _log_requests() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("epsilons.gateway")
    log.setLevel(logging.INFO)
    log.addHandler(handler)


def _show(url: str, app: GatewayApp | None = None) -> None:
    click.echo(url)
    note(f"Serving at {url}. What it takes: {url}/v1/openapi.json")


@contextmanager
def _hold_demo(folder: Path) -> Iterator[Mapping[str, Holding]]:
    """Wages, registered in a ledger that goes with the server, and so does what is known of it."""
    from epsilons import ledger
    from epsilons.dataset import Dataset
    from epsilons.demo.people import load_population, state_in
    from epsilons.service.holdings import Holding

    facts: dict[str, Any] = {"bounds": {"wage": (0, 2000), "education": (0, 18), "experience": (0, 60)}}
    facts["keys"] = {"region": ["northeast", "midwest", "south", "west"], "parttime": ["no", "yes"]}
    facts["complete"] = ["wage", "education", "experience"]
    with state_in(str(folder)):
        book = ledger.open(f"sqlite:///{folder}/wages.ledger", witness=False)
        load_population().register_levels(book, str(folder / "snapshots"), **facts).close()
        yield {"wages": Holding(partial(Dataset.open, "wages", ledger=book), folder)}
        book.close()


def _show_demo(url: str, app: GatewayApp) -> None:
    """An address for each role; what stands behind # is the key of a steward or an analyst, or a person's link."""
    from epsilons.service.sessions import ENTRANCE

    _show(url)
    steward, analyst = (app.keys.add(role, role) for role in ("steward", "analyst"))
    link = app.sessions.issue(app.holdings["wages"].people._registry, "wages", 1)
    click.echo("Open one of these in a browser:")
    for role, path in (
        ("analyst", f"{ENTRANCE}#{analyst}"),
        ("person", link.path),
        ("steward", f"{ENTRANCE}#{steward}"),
    ):
        click.echo(f"{role:8} {url}{path}")
    click.echo(f'\nimport epsilons as eps\nwages = eps.connect("{url}", key="{analyst}").dataset("wages")')
    click.echo('print(wages.mean("wage", share=0.1))')


@contextmanager
def _keys_of(gateway: str) -> Iterator[Keys]:
    from epsilons.service.keys import Keys
    from epsilons.service.settings import Settings
    from epsilons.service.store import open_store

    store = open_store(Settings.read(gateway).store)
    try:
        yield Keys(store)
    finally:
        store.close()


@contextmanager
def _find_person(gateway: str, dataset: str, person: str) -> Iterator[tuple[Registry, Any]]:
    """(the people of a dataset that is served, an id of theirs in the kind that they have)."""
    from epsilons.cli.commands.person import open_people, read_ids
    from epsilons.dataset.declared import find_accounts
    from epsilons.errors import ProtocolError
    from epsilons.service.settings import Settings

    files = {find_accounts(file)[0]: file for file in Settings.read(gateway).datasets}
    if dataset not in files:
        raise ProtocolError("The gateway serves no such dataset.", suggest=", ".join(files))
    with open_people(files[dataset]) as people:
        yield people, read_ids([person], people.person.family)[0]


@click.group(cls=Group, short_help="Who may come in at a gateway.")
def keys() -> None:
    """Who may come in at a gateway. A key is shown once, when it is made; what is kept is its hash.

    \b
    Example:
      epsilons keys add gateway.toml "statistics office"
    """


@keys.command()
@_gateway_file
@click.argument("name")
@click.option("--role", type=_ROLES, default="analyst", show_default=True, help="What the key is for.")
@click.option("--dataset", help="Of a person: the dataset.")
@click.option("--person", help="Of a person: the id, as it stands in the table.")
def add(gateway: str, name: str, role: str, dataset: str | None, person: str | None) -> None:
    """Make a key, and print it this once. Quotas of the ledger go by the name.

    \b
    Example:
      epsilons keys add gateway.toml "statistics office"
    """
    who: Any = person
    if dataset is not None and person is not None:
        with _find_person(gateway, dataset, person) as (people, who):
            people.statement(who)  # refuses who has no account
    with _keys_of(gateway) as kept:
        click.echo(kept.add(name, role, dataset, who))
    note("It is not shown again. In EPSILONS_KEY, or in a file of mode 0600, commands and eps.connect find it.")


@keys.command()
@_gateway_file
@click.argument("dataset")
@click.argument("person", metavar="ID")
@click.option("--days", type=int, default=14, show_default=True, help="How long it can be used.")
@as_json
def link(gateway: str, dataset: str, person: str, days: int, as_json: bool) -> None:
    """Make a personal link, by which one person sees their account and chooses a level; print it this once.

    DATASET is its name. The link before it, if there was one, opens nothing any more.

    \b
    Example:
      epsilons keys link gateway.toml wages 17
    """
    from epsilons.service.sessions import Sessions
    from epsilons.service.settings import Settings
    from epsilons.service.store import open_store

    settings = Settings.read(gateway)
    with closing(open_store(settings.store)) as store, _find_person(gateway, dataset, person) as (people, who):
        made = Sessions(store).issue(people, dataset, who, days)
    shown = {"number": made.number, "link": f"{settings.public_address}{made.path}", "expires": made.expires}
    print_json(shown) if as_json else click.echo(shown["link"])
    note(f"It is not shown again, and expires {made.expires[:10]}. Whoever has it sees this person's account.")


@keys.command("list")
@_gateway_file
@as_json
def list_keys(gateway: str, as_json: bool) -> None:
    """List every key and link that was made: number, name, role, and when it expires or was revoked.

    \b
    Example:
      epsilons keys list gateway.toml
    """
    with _keys_of(gateway) as kept:
        found = kept.list()
    if as_json:
        print_json([one.to_dict() for one in found])
        return
    rows = [["–" if told is None else str(told)[:16] for told in one.to_dict().values()] for one in found]
    head = ("number", "kind", "name", "role", "dataset", "made", "expires", "revoked")
    write(text_table(head, rows, width()) if rows else "There are no keys yet.")


@keys.command()
@_gateway_file
@click.argument("number", type=int)
def revoke(gateway: str, number: int) -> None:
    """End a key or a link, by its number: from now on it opens nothing, nor does what a link was exchanged for.

    \b
    Example:
      epsilons keys revoke gateway.toml 3
    """
    with _keys_of(gateway) as kept:
        ended = kept.revoke(number)
    note(f"{ended.kind.capitalize()} {number} of {ended.name} opens nothing any more.")


#: The commands by the names that users type.
COMMANDS = {"serve": serve, "keys": keys}
