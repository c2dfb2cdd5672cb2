"""The way in by a personal link or a key, and out.

What stands behind # in a link is sent by nobody but the page itself. Whoever has no script pastes the link, or a key.
"""

from epsilons.service.gateway import GatewayApp, Visit
from epsilons.service.pages.layout import HOMES, go_to, show_page
from epsilons.service.serving import Reply
from epsilons.service.sessions import ENTRANCE, read_cookie, set_cookie

_REFUSED = "This opens nothing: it was mistyped, has expired, was revoked, or was replaced by another one."


async def show_entrance(app: GatewayApp, visit: Visit) -> Reply:
    """The form; the script fills it in for who comes by a link."""
    return show_page(visit, "enter.html", "Come in", refused="")


async def enter(app: GatewayApp, visit: Visit) -> Reply:
    """A link or a key for a cookie."""
    _, _, behind = visit.fields.get("key", "").strip().rpartition("#")
    found = await app.work(app.sessions.exchange, behind)
    if found is None:
        return show_page(visit, "enter.html", "Come in", status=401, refused=_REFUSED)
    holder, cookie = found
    return go_to(HOMES[holder.role], set_cookie(cookie, visit.secure))


async def leave(app: GatewayApp, visit: Visit) -> Reply:
    """End the cookie."""
    await app.work(app.sessions.end, read_cookie(visit.headers, visit.secure))
    return go_to(ENTRANCE, set_cookie("", visit.secure))


async def go_home(app: GatewayApp, visit: Visit) -> Reply:
    """Where a visit begins, by role."""
    return go_to(HOMES[visit.holder.role])
