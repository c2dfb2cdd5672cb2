"""What stewards and people do, and are told, as plain values: the same for commands and for a gateway."""

import math
import os
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from epsilons.arguments.checks import check_real
from epsilons.dataset.declared import lasting_arguments
from epsilons.dataset.registered import Registered
from epsilons.dataset.registry import Registry
from epsilons.dataset.snapshot import verify_snapshots
from epsilons.display import show
from epsilons.errors import Argument, LedgerError, PreferenceError
from epsilons.guarantee import to_epsilon
from epsilons.ledger.balances import Anew, Remaining, Statement
from epsilons.ledger.consent import Term
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import Enrolment, Past, Registration, list_active
from epsilons.measure import NANO, PLAIN, Measure
from epsilons.release.door import asked_of

# What is done --------------------------------------------------------------------------------------------------------


def register_declared(
    path: str | os.PathLike[str], kind: type[Registered], confirm: bool, loosen: int | None, redefine: bool
) -> tuple[Registration, Enrolment]:
    """Register what a dataset file declares."""
    named = lasting_arguments(path, reading=True)
    with kind.register(**named, confirm=confirm, loosen=loosen, redefine=redefine) as people:
        done, made = people.enrolment, people.ledger.registrations()[-1]
    assert done is not None
    return made, done


def say_levels(people: Registry | Registered, said: Mapping[Any, Any], anew: bool = False) -> Enrolment:
    """What people chose, {id: name of a level, or epsilon}. Who wants to be public says so by that name."""
    if any(level == math.inf for level in said.values()):
        raise PreferenceError("Nobody becomes public by a number.", suggest="public for LEVEL")
    return people.set_level(said, anew=anew)


def check_anew(given: Any) -> bool:
    """Whether somebody consents anew, which nothing but a plain yes says."""
    if not isinstance(given, bool):
        raise PreferenceError("Consent is a plain yes or no.", suggest=Argument("anew", True))
    return given


def tell_consent(statement: Statement) -> list[str]:
    """What it means to consent anew, in plain words, to somebody of whom records were lost; else nothing."""
    if not statement.lost:
        return []
    measure = statement.measure
    known = to_epsilon(measure.epsilon(statement.spent + statement.reserved - statement.written_off))
    counted = f"at most {show(known)}" if known else "nothing"
    return [
        "Records of this dataset's ledger were lost. Your data may have been used for questions that are not listed "
        "here, up to all that you had allowed then. Nobody can undo that, or say how much it was.",
        "So all that you allow counts as used, and your data is in no further question, unless you consent anew.",
        "If you do, what you allow now is counted from nothing. It comes on top of what was used before: "
        f"{counted} that is known, and whatever the lost records held. You need not: nothing changes if you do not.",
    ]


def set_quota(ledger: Ledger, analyst: str, epsilon: float | None, questions: int | None) -> None:
    """At most so much epsilon, or the rho it is worth, and so many questions, by a name; None of either lifts it."""
    try:
        most = None if epsilon is None else check_real(epsilon)
    except TypeError:
        most = math.nan
    if most is not None and not 0 <= most < math.inf:
        raise LedgerError("This quota cannot be kept.", rule="A quota is a number from 0, or none.", suggest="0.5")
    nano = None if most is None else int(Decimal(repr(most)) * NANO)
    ledger.set_quota(analyst, nano=_measure(ledger).units(nano) if nano else nano, questions=questions)


# What is told --------------------------------------------------------------------------------------------------------


def tell_statement(statement: Statement) -> dict[str, Any]:
    """One person's account."""

    measure = statement.measure

    def in_epsilons(told: object, *names: str) -> dict[str, Any]:
        shown = {name: one for name, one in vars(told).items() if name != "measure"}
        return {name: _finite(one, measure) if name in names else one for name, one in shown.items()}

    counted = {} if measure.delta is None else {"measure": measure.name, "delta": float(measure.delta)}
    public = statement.granted is None and statement.state == "active"
    return {
        "state": "public" if public else statement.state,
        "granted": _finite(statement.granted, measure),
        **{name: _amount(getattr(statement, name), measure) for name in ("spent", "reserved", "written_off", "left")},
        "uses": [
            {"release": use.number, "kind": use.kind, "at": use.at}
            | {"charged": measure.amount(use.charge), "granted": measure.grant(use.granted)}
            for use in statement.uses
        ],
        "while_public": list(statement.when_public),
        "replaced": statement.replaced and in_epsilons(statement.replaced, "granted", "ceiling"),
        "redefined": [in_epsilons(one, "before", "granted") for one in statement.redefined],
        "not_dp_since": statement.not_dp_since,
        "sentences": list(statement.sentences),
        **({"lost": True, "consent": tell_consent(statement)} if statement.lost else {}),
        **({} if statement.anew is None else {"anew": _tell_anew(statement.anew, measure)}),
        **counted,
        **({} if statement.term is None else {"renews": _tell_term(statement.term, measure)}),
    }


def _tell_anew(anew: Anew, measure: Measure) -> dict[str, Any]:
    return {"at": anew.at, "charged_before": measure.amount(anew.charged)}


def _tell_term(term: Term, measure: Measure) -> dict[str, Any]:
    """The period of a grant, and what earlier ones count for."""
    return {**term._asdict(), "earlier": measure.amount(term.earlier)}


def tell_state(ledger: Ledger, left: Remaining, dataset: int | None) -> dict[str, Any]:
    """What is left at every level, who is public or withdrew, and analysts' quotas."""
    terms = ledger.terms()
    return {
        "ledger": ledger.id,
        "dataset": next((one.name for one in ledger.registrations(newest=True) if one.dataset == dataset), None),
        **{name: terms and getattr(terms, name) for name in ("neighbors", "rows_per_person", "allow_individual")},
        "epoch": ledger.epoch,
        "levels": tell_levels(left)["levels"],
        "public": sum(cohort.people for cohort in list_active(left.cohorts) if cohort.granted is None),
        "withdrawn": sum(cohort.people for cohort in left.cohorts if cohort.state == "withdrawn"),
        "not_dp_since": left.not_dp_since,
        **({"gone": left.gone} if left.gone else {}),
        "quotas": tell_quotas(ledger),
        **({} if left.measure.delta is None else {"measure": left.measure.name, "delta": float(left.measure.delta)}),
    }


def tell_levels(left: Remaining) -> dict[str, Any]:
    """What is left at every level."""
    levels = [
        {"name": left.names.get(one.epsilon), **one.to_dict()} | {"questions_left": left.questions.get(one.granted)}
        for one in left.levels
    ]
    return {"levels": levels, "not_dp_since": left.not_dp_since}


def tell_quotas(ledger: Ledger) -> list[dict[str, Any]]:
    """What analysts may use, and have used."""
    measure = _measure(ledger)
    return [
        {"analyst": quota.analyst, "epsilon": _worth(quota.nano, measure), "questions": quota.questions}
        | {"used_epsilon": _worth(quota.used_nano, measure), "used_questions": quota.used_questions}
        for quota in ledger.quotas()
    ]


def tell_quota(ledger: Ledger, analyst: str) -> dict[str, Any] | None:
    """The same of one name; None if nothing limits it."""
    mine = [one for one in tell_quotas(ledger) if one["analyst"] == analyst]
    return next((one for one in mine if not one["epsilon"] is one["questions"] is None), None)


def tell_past(past: Past) -> dict[str, Any]:
    """A question that was charged."""
    return {
        "release": past.number,
        "at": past.at,
        "kind": past.kind,
        "description": asked_of(past.description),
        "state": past.state,
        "analyst": past.analyst,
        "charges": [{"epsilon": granted, "charged": charged} for granted, charged in past.epsilons.items()],
        "individual": past.individual,
        "not_dp_since": past.not_dp_since,
        **({} if past.measure.delta is None else {"measure": past.measure.to_text()}),
    }


def tell_recount(ledger: Ledger, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Recount the ledger, and hash the newest snapshots; an error if anything differs from what was kept."""
    done = ledger.verify(progress=progress)
    newest = ledger.registrations(newest=True)
    told = {name: getattr(done, name) for name in ("entries", "releases", "people", "head")}
    return {**told, "snapshots": verify_snapshots(newest) if newest else {}}


def _measure(ledger: Ledger) -> Measure:
    terms = ledger.terms()
    return PLAIN if terms is None else terms.counted


def _finite(granted: int | None, measure: Measure) -> float | None:
    return None if granted is None else measure.grant(granted)


def _worth(units: int | None, measure: Measure) -> float | None:
    """In epsilon, also where rho is counted."""
    return None if units is None else measure.epsilon(units) / NANO


def _amount(units: int | None, measure: Measure) -> float | None:
    return None if units is None else measure.amount(units)
