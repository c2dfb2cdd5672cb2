"""What commands that listen share: where, over HTTPS or on this machine alone, and where failures are noted."""

import logging
from collections.abc import Callable
from typing import Any

import click

from epsilons.cli.options import apply_all
from epsilons.errors import PlanError
from epsilons.storage import is_loopback
from epsilons.storage.files import check_private, open_own

_FILE = click.Path(dir_okay=False)


def listening(port: int) -> Callable[[Any], Any]:
    """The options of a command that listens, with its usual port."""
    free = "0 takes any free port."
    return apply_all(
        (
            click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen."),
            click.option("--port", type=click.IntRange(0, 65535), default=port, show_default=True, help=free),
            click.option("--certificate", type=_FILE, help="PEM file; then it speaks HTTPS."),
            click.option("--certificate-key", type=_FILE, help="The certificate's key."),
            click.option("--insecure", is_flag=True, help="Speak plain HTTP off this machine, too."),
            click.option("--log", type=_FILE, help="Where failures are noted, by their kind (default: stderr)."),
        )
    )


def prepare(
    name: str, host: str, who: str, *, certificate: str | None, certificate_key: str | None, insecure: bool,
    log: str | None,
) -> dict[str, str | None]:  # fmt: skip
    """Refuse what would be read by others, give the log of this name its place; what the server is told of HTTPS."""
    if (certificate is None) != (certificate_key is None):
        raise PlanError("A certificate goes with its key.", suggest="--certificate and --certificate-key")
    if certificate_key is not None:
        check_private(certificate_key, PlanError)
    elif not insecure and not is_loopback(host):
        rule = f"Off this machine {who} speaks HTTPS."
        hint = "--certificate and --certificate-key; or --insecure if others on the way may read and answer"
        raise PlanError(f"Plain HTTP would be spoken at {host}.", rule=rule, suggest=hint)
    _log_to(name, log)
    return {"certificate": certificate, "certificate_key": certificate_key}


def _log_to(name: str, file: str | None) -> None:
    if file is None:
        handler: logging.Handler = logging.StreamHandler()
    else:
        check_private(file, PlanError)
        try:
            handler = logging.StreamHandler(open(file, "a", encoding="utf-8", opener=open_own))  # noqa: SIM115
        except OSError as error:
            what = f"The log cannot be written: {error.strerror or error}."
            raise PlanError(what, suggest="--log elsewhere") from None
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logging.getLogger(name).addHandler(handler)
