"use strict";
// A personal link: what stands behind # is sent once, as the form would send it, and leaves the address.
const entering = document.querySelector("form[data-enter]");
if (entering && location.hash.length > 1) {
  entering.elements.key.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  entering.submit();
}
// A plan appears as a question is typed: the same page is fetched, and its plan put in place.
const asking = document.querySelector("form[data-live]");
if (asking) {
  const place = asking.dataset.live;
  let waiting = 0, asked = 0;
  const renew = async () => {
    const mine = ++asked;
    const address = `${asking.action}?${new URLSearchParams(new FormData(asking))}`;
    const shown = document.getElementById(place);
    shown.setAttribute("aria-busy", "true");
    try {
      const reply = await fetch(address, { headers: { Accept: "text/html" } });
      const found = new DOMParser().parseFromString(await reply.text(), "text/html");
      const fresh = found.getElementById(place);
      if (mine !== asked) return;
      if (!fresh) return location.reload();
      shown.replaceWith(document.adoptNode(fresh));
      const others = found.querySelectorAll("[data-json]");
      document.querySelectorAll("[data-json]").forEach((link, at) => link.setAttribute("href", others[at].getAttribute("href")));
      history.replaceState(null, "", address);
    } catch { shown.removeAttribute("aria-busy"); }
  };
  asking.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(renew, 250); });
  asking.addEventListener("submit", event => { event.preventDefault(); clearTimeout(waiting); renew(); });
}
// A long question: its page is fetched again, until there is an answer, or a refusal.
const again = document.querySelector("[data-again]");
if (again) {
  const look = async () => {
    try {
      const reply = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (reply.redirected) return location.replace(reply.url);
      const found = new DOMParser().parseFromString(await reply.text(), "text/html").querySelector("[data-again]");
      if (!found) return location.reload();
      again.firstElementChild.textContent = found.firstElementChild.textContent;
    } catch { /* The network may come back. */ }
    setTimeout(look, 2000);
  };
  setTimeout(look, 2000);
}
// Copy.
document.addEventListener("click", async event => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
});
for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = false;
