"""What operators see: whether the server is well, and counts and times by way. No value, id or name is part of it."""

from epsilons.errors import EpsilonsError
from epsilons.service.gateway import GatewayApp, Visit
from epsilons.service.holdings import Holding
from epsilons.service.serving import Reply, as_json

_TEXT = "text/plain; version=0.0.4; charset=utf-8"


async def tell_health(app: GatewayApp, visit: Visit) -> Reply:
    """200 if the store can be read and every dataset asked, else 503."""

    def look() -> list[Holding]:
        """Which datasets were registered anew, and not yet opened."""
        with app.store.read() as connection:
            connection.execute("SELECT 1")
        return [one for one in app.holdings.values() if not one.is_ready()]

    well = True
    try:
        for one in await app.work(look):
            async with one.turns.short():
                await app.work(one.refresh)
    except EpsilonsError:
        well = False
    reply = as_json({"status": "ok" if well else "failing"})
    return reply if well else Reply(503, reply.body, reply.media_type)


async def tell_metrics(app: GatewayApp, visit: Visit) -> Reply:
    """As Prometheus reads it."""
    lines = [
        "# HELP epsilons_requests_total Requests by way, role and status.",
        "# TYPE epsilons_requests_total counter",
    ]
    for (route, role, status), count in sorted(app.counts.items()):
        lines.append(f'epsilons_requests_total{{route="{route}",role="{role or "none"}",status="{status}"}} {count}')
    lines += ["# HELP epsilons_seconds_total Seconds until replies were sent, by way."]
    lines += ["# TYPE epsilons_seconds_total counter"]
    lines += [f'epsilons_seconds_total{{route="{route}"}} {took:.3f}' for route, took in sorted(app.seconds.items())]
    lines += [
        "# HELP epsilons_requests_in_progress Requests that are worked on.",
        "# TYPE epsilons_requests_in_progress gauge",
    ]
    lines += [f"epsilons_requests_in_progress {app.busy}"]
    lines += ["# HELP epsilons_datasets Datasets that are served.", "# TYPE epsilons_datasets gauge"]
    return Reply(200, "\n".join([*lines, f"epsilons_datasets {len(app.holdings)}", ""]).encode(), _TEXT)
