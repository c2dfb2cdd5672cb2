"""The page that a personal link leads to: it hands in what stands behind #, and shows the person's own account."""

import base64
import hashlib

_STYLE = """
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem }
p { white-space: pre-line }
"""
_SCRIPT = """
const told = document.getElementById("told"), form = document.querySelector("form");
let me;
const show = text => { told.textContent = text; };
async function send(method, path, body) {
  const headers = { "Content-Type": "application/json", ...(me ? { "X-CSRF-Token": me.csrf } : {}) };
  const reply = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const found = await reply.json();
  if (!reply.ok) throw new Error([found.title, found.detail].filter(Boolean).join(" "));
  return found;
}
async function begin() {
  const link = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  me = link ? await send("POST", "/v1/session", { link }) : await send("GET", "/v1/me");
  const place = `/v1/datasets/${encodeURIComponent(me.dataset)}`;
  show((await send("GET", `${place}/account`)).sentences.join("\\n"));
  for (const level of (await send("GET", place)).levels) {
    const name = level.name ?? String(level.epsilon);
    form.elements.level.append(new Option(name, name));
  }
  form.hidden = false;
  form.addEventListener("submit", event => {
    event.preventDefault();
    const level = form.elements.level.value, number = Number(level);
    send("PUT", `${place}/account/level`, { level: Number.isNaN(number) ? level : number })
      .then(found => show(found.sentences.join("\\n"))).catch(error => show(error.message));
  });
}
begin().catch(error => show(error.message));
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


#: This script and this style, requests to this server, and nothing else.
POLICY = (
    f"default-src 'none'; script-src {_hash(_SCRIPT)}; style-src {_hash(_STYLE)}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>My privacy</title>
<style>{_STYLE}</style>
<h1>My privacy</h1>
<p id="told" role="status">One moment.</p>
<form hidden><label>How private do you want to be? <select name="level"></select></label> <button>Choose</button></form>
<noscript>This page needs JavaScript: the link is not sent before it is used.</noscript>
<script>{_SCRIPT}</script>
</html>
""".encode()
