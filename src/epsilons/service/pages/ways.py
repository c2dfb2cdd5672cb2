"""The ways to the pages. Who may take which stands here and nowhere else.

    GET  /                                 any key     where a visit begins, by role
    GET  /enter                            everyone    the way in
    POST /enter                            everyone    a personal link or a key for a cookie
    POST /leave                            any key     end the cookie
    GET  /assets/{file}                    everyone    style and script
    GET  /my                               person      one's own account
    POST /my                               person      a level, or a withdrawal
    GET  /data                             asks        datasets
    GET  /data/{name}                      asks        columns with bounds and keys, people by level
    GET  /data/{name}/ask                  asks        a question, and its plan
    POST /data/{name}/ask                  asks        the yes: charged, and answered
    GET  /data/{name}/jobs/{job}           asks        how far a long question of one's own is
    GET  /data/{name}/answers              asks        every answer
    GET  /data/{name}/answers/{number}     asks        one of them
    GET  /steward                          steward     every dataset at a glance
    GET  /keys                             steward     keys and links, without the secrets
    POST /keys                             steward     a key
    POST /keys/{number}/revocation         steward     end a key or a link
    GET  /steward/{name}                   steward     budgets over time, quotas, registrations
    POST /steward/{name}/quotas            steward     what an analyst may use
    POST /steward/{name}/links             steward     a personal link
    POST /steward/{name}/registration      steward     what its file declares, registered
    POST /steward/{name}/verification      steward     recount the ledger, hash the snapshots
    GET  /steward/{name}/what-if           steward     what a change of levels would do

"Any key": of stewards, analysts and people. Stewards and analysts ask.
"""

from epsilons.service.gateway import GatewayApp, Route
from epsilons.service.keys import ANALYST, PERSON, STEWARD
from epsilons.service.pages import analyst, entrance, person, steward
from epsilons.service.pages.layout import send_asset, show_refusal


def add_pages(app: GatewayApp) -> None:
    """Show a gateway's datasets to people with a browser."""
    app.routes, app.show_refusal = (*app.routes, *PAGES), show_refusal


_HOLDERS, _WHO_ASKS = frozenset({STEWARD, ANALYST, PERSON}), frozenset({STEWARD, ANALYST})
_PERSON, _STEWARD = frozenset({PERSON}), frozenset({STEWARD})
_CARE = "/steward/(?P<name>[^/]+)"
_DATA, _NUMBER, _JOB = "/data/(?P<name>[^/]+)", "(?P<number>[0-9]{1,18})", "(?P<job>[0-9a-f]{32})"

PAGES = (
    Route("home", "GET", "/", entrance.go_home, "Where a visit begins.", _HOLDERS, page=True),
    Route("entrance", "GET", "/enter", entrance.show_entrance, "The way in.", open=True, page=True),
    Route("entering", "POST", "/enter", entrance.enter, "A link or key for a cookie.", open=True, page=True),
    Route("exit", "POST", "/leave", entrance.leave, "End the cookie.", _HOLDERS, page=True),
    Route("asset", "GET", "/assets/(?P<file>[a-z0-9.]+)", send_asset, "Style and script.", open=True, page=True),
    Route("my", "GET", "/my", person.show_account, "One's own account.", _PERSON, page=True),
    Route("choice", "POST", "/my", person.change, "A level, or a withdrawal.", _PERSON, page=True),
    Route("catalogue", "GET", "/data", analyst.show_datasets, "Datasets.", _WHO_ASKS, page=True),
    Route("columns", "GET", _DATA, analyst.show_dataset, "Columns, and people by level.", _WHO_ASKS, page=True),
    Route("question", "GET", f"{_DATA}/ask", analyst.show_question, "A question, and its plan.", _WHO_ASKS, page=True),
    Route("yes", "POST", f"{_DATA}/ask", analyst.ask, "Charged, and answered.", _WHO_ASKS, page=True),
    Route("waiting", "GET", f"{_DATA}/jobs/{_JOB}", analyst.show_job, "How far a question is.", _WHO_ASKS, page=True),
    Route("answers", "GET", f"{_DATA}/answers", analyst.show_answers, "Every answer.", _WHO_ASKS, page=True),
    Route("answer", "GET", f"{_DATA}/answers/{_NUMBER}", analyst.show_answer, "One answer.", _WHO_ASKS, page=True),
    Route("overview", "GET", "/steward", steward.show_overview, "Every dataset.", _STEWARD, page=True),
    Route("keyring", "GET", "/keys", steward.show_keys, "Keys and links.", _STEWARD, page=True),
    Route("forge", "POST", "/keys", steward.add_key, "A key, shown this once.", _STEWARD, page=True),
    Route("revoking", "POST", f"/keys/{_NUMBER}/revocation", steward.revoke_key, "End it.", _STEWARD, page=True),
    Route("care", "GET", _CARE, steward.show_dataset, "A dataset's health.", _STEWARD, page=True),
    Route("limit", "POST", f"{_CARE}/quotas", steward.change_quota, "What one may use.", _STEWARD, page=True),
    Route("invite", "POST", f"{_CARE}/links", steward.issue_link, "A link for one person.", _STEWARD, page=True),
    Route("renew", "POST", f"{_CARE}/registration", steward.register, "Register it.", _STEWARD, page=True),
    Route("recount", "POST", f"{_CARE}/verification", steward.verify, "Recount it.", _STEWARD, page=True),
    Route("whatif", "GET", f"{_CARE}/what-if", steward.show_change, "If levels changed.", _STEWARD, page=True),
)
