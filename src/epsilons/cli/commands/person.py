"""`epsilons person`: what one person may say, and be told: a level, a withdrawal, a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli.errors import Group
from epsilons.cli.options import dataset_file
from epsilons.cli.output import as_json, note, print_json, write
from epsilons.display import show_count
from epsilons.errors import PreferenceError

if TYPE_CHECKING:
    from epsilons.dataset.registry import Registry
    from epsilons.ledger import Enrolment

command = Group("person", help="What a person says, and is told: a level, a withdrawal, a statement.")
COMMANDS = {"person": command}
_who = click.argument("who", metavar="ID...", nargs=-1, required=True)


@contextmanager
def open_people(dataset: str) -> Iterator[Registry]:
    """The people of the dataset that a file names; its rows stay closed."""
    from epsilons import ledger
    from epsilons.dataset.declared import find_accounts, naming
    from epsilons.dataset.registering import find_registered

    name, address = find_accounts(dataset)
    book = ledger.open(address, create=False)
    try:
        book.verify(thorough=False)
        with naming(dataset):
            found = find_registered(name, book, address)
        yield found
    finally:
        book.close()


def read_ids(who: Sequence[str], kind: str) -> list[Any]:
    """Ids as they were typed, in a kind of ids: text or number."""
    if kind == "text":
        return list(who)
    if not all(re.fullmatch(r"-?[0-9]+", one) for one in who):
        rule = "This ledger's ids are whole numbers."
        raise PreferenceError("An id is not a whole number.", rule=rule, suggest="the id as it stands in the data")
    return [int(one) for one in who]


@command.command()
@dataset_file
@click.argument("who", metavar="ID")
@as_json
def statement(dataset: str, who: str, as_json: bool) -> None:
    """One person's account, in plain language: what their data was used for, what it cost at most, what is left.

    \b
    Example:
      epsilons person statement people.toml 17
    """
    from epsilons.dataset.accounts import tell_statement

    with open_people(dataset) as people:
        told = people.statement(*read_ids([who], people.person.family))
    print_json(tell_statement(told)) if as_json else write("\n".join(told.sentences))


@command.command()
@dataset_file
@click.argument("who", metavar="ID")
@click.argument("level", metavar="LEVEL|EPSILON")
@click.option("--anew", is_flag=True, help="After a loss of records: granted anew, whatever was spent before.")
@as_json
def level(dataset: str, who: str, level: str, anew: bool, as_json: bool) -> None:
    """What a person chose: the name of a level, or an epsilon.

    It stands until the person says otherwise, or until a source says something new about them: something stricter at
    once, something looser by an act of the steward that names how many people it concerns. A level that comes to mean
    less means less for everyone who has it, and nobody stands above the ceiling.

    Where records of the ledger were lost, every level counts as spent until the person, who was told of the loss,
    consents anew: --anew says that.

    \b
    Example:
      epsilons person level people.toml 17 strict
    """
    from epsilons.dataset.accounts import say_levels
    from epsilons.dataset.declared import arguments_of, check_meanings
    from epsilons.dataset.registry import read_epsilons

    said: Any
    with open_people(dataset) as people:
        said, levels = level, read_epsilons(people.ledger.levels(), people.measure)  # a level may be called 2
        if level not in levels:
            with suppress(ValueError):
                said = float(level)
        # Who reads the file goes by what it says of this level; an epsilon says it itself, and so does withdrawing.
        declared = arguments_of(dataset)["preferences"].levels
        check_meanings(dataset, {name: declared[name] for name in declared if name == said}, levels)
        (person,) = read_ids([who], people.person.family)
        done = say_levels(people, {person: said}, anew)
        now = people.statement(person)
    _tell(done, as_json, "\n".join([_change(done), *now.sentences[1:]]))


@command.command()
@dataset_file
@_who
@as_json
def withdraw(dataset: str, who: tuple[str, ...], as_json: bool) -> None:
    """These people are not used any more. Their accounts stay; what was answered before stays answered.

    \b
    Example:
      epsilons person withdraw people.toml 17 23
    """
    with open_people(dataset) as people:
        done = people.withdraw(read_ids(who, people.person.family))
    before = done.known + done.unknown - done.withdrawn
    told = [f"Withdrawn: {show_count(done.withdrawn, 'person', 'people')}."] if done.withdrawn else []
    told += [f"{show_count(before, 'person', 'people')} had withdrawn before."] if before else []
    _tell(done, as_json, " ".join(told))


def _change(done: Enrolment) -> str:
    """What a person's word changed."""
    changes = {"stricter than before": done.tightened, "looser than before": done.loosened}
    told = [text for text, people in changes.items() if people]
    return f"Noted: {told[0]}." if told else "Noted."


def _tell(done: Enrolment, as_json: bool, told: str) -> None:
    if as_json:
        print_json(dict(vars(done)))
        return
    write(told)
    strangers = done.unknown + done.joined
    if strangers:
        many = show_count(strangers, "person was", "people were")
        # Nothing is stricter than who withdrew.
        unless = ", unless its preferences or its ceiling is stricter" if done.joined else ""
        holds = f"their word holds when they join one{unless}"
        note(f"{many} on no roster so far: {holds}. Is the id written as in the data?")
