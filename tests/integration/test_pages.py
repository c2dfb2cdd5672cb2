"""The pages in a real browser, on SQLite and PostgreSQL: every role acts through pages alone.

Every page that is passed is held to axe's rules, light on a phone and dark on a desk, and runs nothing that its policy
forbids.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import epsilons as eps
from support import ledger_servers
from support.gateways import Servers, key_for
from support.page_worlds import HOSTILE, SIZES, browsing, declare_accounts, declare_levels, missing

pytestmark = pytest.mark.integration
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"}
DESK = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.close()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, servers: Servers, browser: Any
) -> tuple[str, Path]:
    """(address of a gateway, its file)."""
    folder = tmp_path_factory.mktemp("pages")
    if request.param == "sqlite":
        file = declare_levels(folder)
    else:
        server = request.getfixturevalue("postgres_server")
        file = declare_levels(folder, ledger_servers.fresh(server), ledger_servers.fresh(server))
    return servers.start(file)[0], file


class Tab:
    """A page of a browser of its own that notes what goes wrong, and looks at each page that is passed."""

    def __init__(self, browser: Any, **how: Any) -> None:
        from axe_playwright_python.sync_playwright import Axe

        self.context = browser.new_context(**how)
        self.page, self.wrong, self._axe = self.context.new_page(), list[str](), Axe()
        self.page.set_default_timeout(90_000)  # a busy machine is no fault of a page
        self.page.on("console", lambda one: self.wrong.append(one.text) if one.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._note_outside)

    def _note_outside(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1", "data:")):
            self.wrong.append(request.url)

    def check(self) -> None:
        """Accessible, no wider than the screen, and with its JSON."""
        self.page.wait_for_load_state()
        found = self._axe.run(self.page)
        assert found.violations_count == 0, f"{self.page.url}\n{found.generate_report()}"
        width = self.page.viewport_size["width"]
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width
        captions = "Math.max(0, ...Array.from(document.querySelectorAll('caption'), one => one.offsetWidth))"
        assert self.page.evaluate(captions) <= width, "a table scrolls, what it is called does not"
        for link in self.page.locator("link[rel=alternate]").all():
            address = link.get_attribute("href")
            assert self.page.locator(f"footer a[href={json.dumps(address)}]").count() == 1
            reply = self.page.request.get(self.page.url.split("/", 3)[0] + "//" + self.page.url.split("/")[2] + address)
            assert reply.ok, address
            assert reply.json() is not None
        assert self.wrong == [], self.page.url

    def close(self) -> None:
        self.context.close()


def enter(tab: Tab, url: str, key: str) -> None:
    """As somebody does who has a key."""
    tab.page.goto(f"{url}/enter")
    tab.check()
    tab.page.fill("#key", key)
    tab.page.click("text=Come in >> visible=true >> nth=-1")


def ask(tab: Tab, statistic: str, column: str, **more: str) -> None:
    tab.page.goto(re.sub(r"(//[^/]+)/.*", r"\1/data/pay/ask", tab.page.url))
    tab.page.select_option("#statistic", statistic)
    tab.page.select_option("#column", column)
    for name, value in more.items():
        field = tab.page.locator(f"#{name}")
        field.select_option(value) if name in ("by", "mechanism") else field.fill(value)


def test_all_roles_act_through_pages_alone(world: tuple[str, Path], browser: Any) -> None:
    url, file = world
    steward, analyst, person = Tab(browser, **DESK), Tab(browser, **DESK), Tab(browser, **PHONE)
    # A steward makes a key for an analyst, and a link for person 3.
    enter(steward, url, key_for(file, "city", "steward"))
    steward.page.wait_for_url("**/steward")
    steward.check()
    steward.page.click("text=Keys")
    steward.page.fill("#name", "office")
    steward.page.click("text=Make a key")
    key = steward.page.inner_text("#made")
    steward.check()
    steward.page.goto(f"{url}/steward/pay")
    steward.page.fill("#person", "3")
    steward.page.click("text=Make a personal link")
    link = steward.page.inner_text("code.secret")
    assert link.startswith(f"{url}/enter#eps_")
    # The person comes by it, and the secret leaves the address.
    person.page.goto(link)
    person.page.wait_for_url("**/my")
    person.check()
    assert person.page.inner_text("h2 >> nth=0") == "Now: strict"
    assert "at most 53" in person.page.inner_text("label.card >> nth=0")
    # The analyst types: the plan appears, and nothing is charged.
    enter(analyst, url, key)
    analyst.page.wait_for_url("**/data")
    analyst.check()
    analyst.page.click("h2 a")
    analyst.check()
    ask(analyst, "mean", "wage", by="region")
    analyst.page.wait_for_selector("#plan h2:has-text('mean in [0, 100] of wage by region')")
    assert analyst.page.locator("#plan tbody >> nth=0").locator("tr").count() >= 4
    analyst.page.fill("#where", "age >= ")
    analyst.page.wait_for_selector("#plan [role=alert]")
    analyst.page.fill("#where", "age >= 30")
    analyst.page.wait_for_selector("#plan h2:has-text('where age >= 30')")
    analyst.check()
    people = eps.Dataset.from_toml(file.parent / "pay.toml")
    assert people.ledger.count("reservations") == 0
    # A yes with the price; then the answer with its interval, condition and chart.
    assert "Yes, ask it: ε 0.01" in analyst.page.inner_text("#plan form button")
    analyst.page.click("#plan form button")
    analyst.page.wait_for_url("**/answers/1?*")
    assert "Condition:" in analyst.page.inner_text("main")
    assert analyst.page.locator("figure img").evaluate("image => image.naturalWidth") > 100
    analyst.page.click("text=The answer, as a table")
    assert analyst.page.locator("figure tbody tr").count() == 2
    analyst.check()
    # The person changes the level in two clicks: the next charge in the ledger goes by it.
    assert people.statement(3).uses[-1].granted == 100_000_000
    person.page.click("label.card:has-text('open')")
    person.page.click("text=Save my choice")
    person.page.wait_for_url("**/my?done=level")
    person.check()
    assert person.page.inner_text("h2 >> nth=0") == "Now: open"
    ask(analyst, "count", "", mechanism="stretching")
    analyst.page.wait_for_selector("#plan tr.best:has-text('stretching')")
    analyst.page.click("#plan form button")
    analyst.page.wait_for_url("**/answers/2?*")
    use = people.statement(3).uses[-1]
    assert (use.number, use.granted, use.charge) == (2, 1_000_000_000, 100_000_000)
    assert people.statement(4).uses[-1].granted == 100_000_000
    person.page.reload()
    told = person.page.inner_text("section[aria-labelledby=uses]")
    assert 'mean in [0, 100] of wage where "age" >= 30 by region' in told
    assert "count" in told.splitlines()[1]
    # What the page offers to copy asks the same again, for free.
    analyst.page.goto(f"{url}/data/pay/answers")
    analyst.check()
    analyst.page.go_back()
    code = analyst.page.locator("#code-Python").text_content()
    os.environ["EPSILONS_KEY"] = key
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(code, {})
    del os.environ["EPSILONS_KEY"]
    assert "release 2 of" in said.getvalue()
    assert people.ledger.count("reservations") == 2
    # Withdrawn in two clicks.
    person.page.click("label.card:has-text('not at all')")
    person.page.click("text=Save my choice")
    person.page.wait_for_url("**/my?done=withdrawal")
    assert people.statement(3).state == "withdrawn"
    person.check()
    with person.page.expect_download() as download:
        person.page.click("text=Download my account as JSON")
    assert json.loads(Path(download.value.path()).read_text())["state"] == "withdrawn"
    # The steward sees budgets, sets a quota, registers, verifies, and looks at another world.
    steward.page.goto(f"{url}/steward/pay")
    assert steward.page.locator("figure img").evaluate("image => image.naturalWidth") > 100
    levels = steward.page.locator("section[aria-labelledby=budget] table >> nth=-1").inner_text()
    assert "strict" in levels
    steward.check()
    steward.page.fill("#analyst", "office")
    steward.page.fill("#questions", "2")
    steward.page.click("text=Set the quota")
    steward.page.wait_for_url("**/steward/pay?done=quota")
    steward.page.click("text=Verify")
    steward.page.wait_for_selector("[role=status]:has-text('2 releases')")
    steward.page.click("button:has-text('Register')")
    steward.page.wait_for_url("**/steward/pay?done=registration")
    assert str(sum(SIZES.values())) in steward.page.inner_text("section[aria-labelledby=enrolment]")
    steward.page.click("text=What if levels change?")
    steward.page.select_option("#statistic", "mean")
    steward.page.select_option("#column", "wage")
    steward.page.wait_for_selector("#change h2:has-text('20% of strict move to open')")
    steward.check()
    # A quota is kept, and a key that is revoked opens nothing.
    ask(analyst, "sum", "wage")
    analyst.page.wait_for_selector("#plan h2:has-text('sum in [0, 100] of wage')")
    analyst.page.click("#plan form button")
    analyst.page.wait_for_selector("[role=alert]")
    assert people.ledger.count("reservations") == 2
    analyst.wrong.clear()  # the browser's own line about the refusal
    analyst.check()
    steward.page.goto(f"{url}/keys")
    steward.page.click("button[aria-label*='of office']")
    steward.page.wait_for_url("**/keys?done=revocation")
    analyst.page.goto(f"{url}/data")
    analyst.page.wait_for_url("**/enter")
    person.page.click("text=Leave")
    person.page.wait_for_url("**/enter")
    person.page.goto(f"{url}/my")
    person.page.wait_for_url("**/enter")
    people.close()
    for tab in (steward, analyst, person):
        tab.close()


def test_a_long_question_and_names_that_nobody_means(
    servers: Servers, browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = declare_accounts(tmp_path_factory.mktemp("odd"))
    url, key = servers.start(file)[0], key_for(file, "<script>alert(2)</script>")
    analyst, steward, dialogs = Tab(browser, **PHONE), Tab(browser, **DESK), list[str]()
    for tab in (analyst, steward):
        tab.page.on("dialog", lambda one: (dialogs.append(one.message), one.dismiss()))
    enter(analyst, url, key)
    # A batch that takes some seconds by public facts: its page says how far it is, then leads to the answers.
    questions = [{"statistic": "count", "arguments": {"where": f"wage > {number / 2}"}} for number in range(180)]
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "long", "Prefer": "respond-async"}
    sent = {"questions": questions, "share": 0.2}
    reply = analyst.page.request.post(f"{url}/v1/datasets/rho/ask", data=sent, headers=headers)
    assert reply.status == 202
    analyst.page.goto(f"{url}/data/rho/jobs/{reply.json()['job'].rpartition('/')[2]}")
    assert "Your question" in analyst.page.inner_text("#job")
    analyst.check()
    analyst.page.wait_for_url("**/data/rho/answers")
    analyst.check()
    # Names that are markup and quotes are text on every page, and their addresses lead somewhere.
    enter(steward, url, key_for(file, "city", "steward"))
    analyst.page.goto(f"{url}/data")
    analyst.page.click("h2 a >> nth=2")
    analyst.check()
    analyst.page.click(f"th a >> text={HOSTILE[:20]}")
    analyst.page.select_option("#by", "select")
    analyst.page.wait_for_selector("#plan h2:has-text('by select')")
    analyst.check()
    analyst.page.click("#plan form button")
    analyst.page.wait_for_url("**/answers/1?*")
    analyst.check()
    steward.page.goto(f"{url}/steward")
    steward.page.click("h2 a >> nth=2")
    steward.page.fill("#person", "p2")
    steward.page.click("text=Make a personal link")
    link = steward.page.inner_text("code.secret")
    steward.check()
    analyst.page.goto(link)
    analyst.page.wait_for_url("**/my")
    assert analyst.page.inner_text("h2 >> nth=0") == f"Now: {HOSTILE}"
    analyst.check()
    assert dialogs == []
    analyst.close()
    steward.close()


def test_a_person_without_javascript_pastes_the_link_and_chooses(world: tuple[str, Path], browser: Any) -> None:
    url, file = world
    steward, person = (Tab(browser, **PHONE, java_script_enabled=False) for _ in range(2))
    for tab, key in ((steward, key_for(file, "another city", "steward")),):
        tab.page.goto(f"{url}/enter")
        tab.page.fill("#key", key)
        tab.page.click("button")
    steward.page.goto(f"{url}/steward/pay")
    steward.page.fill("#person", "7")
    steward.page.click("text=Make a personal link")
    person.page.goto(f"{url}/enter")
    person.page.fill("#key", steward.page.inner_text("code.secret"))
    person.page.click("text=Come in >> nth=-1")
    person.page.check("#other")
    person.page.fill("#epsilon", "0,25")
    person.page.click("text=Save my choice")
    assert person.page.inner_text("h2 >> nth=0") == "Now: 0.25"
    person.page.check("#other")
    person.page.fill("#epsilon", "much")
    person.page.click("text=Save my choice")
    assert "An epsilon is a number." in person.page.inner_text("[role=alert]")
    steward.page.goto(f"{url}/data/pay/ask?statistic=median&column=wage&share=0.01")
    steward.page.click("#plan form button")
    assert "/answers/" in steward.page.url
    assert "95% interval" in steward.page.inner_text("main")
    steward.close()
    person.close()


def test_two_columns_and_several_quantiles_are_asked_as_one_types(
    servers: Servers, browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second column appears where there is one, the plan with it; what is copied asks the same in three ways."""
    file = declare_levels(tmp_path)
    url, key = servers.start(file)[0], key_for(file, "office", "analyst")
    monkeypatch.setenv("EPSILONS_KEY", key)
    for place, how in enumerate((DESK, PHONE)):
        tab = Tab(browser, **how)
        enter(tab, url, key)
        tab.page.wait_for_url("**/data")
        ask(tab, "mean", "wage")
        assert not tab.page.is_visible("#other")
        tab.page.select_option("#statistic", ["covariance", "correlation"][place])
        tab.page.wait_for_selector("#plan [role=alert]:has-text('two columns')")
        tab.page.select_option("#other", "age")
        tab.page.wait_for_selector("#plan h2:has-text('with age')")
        assert "Yes, ask it: ε 0.01" in tab.page.inner_text("#plan form button")
        tab.page.click("summary >> nth=0")
        tab.page.fill("#other_low", "18")
        tab.page.wait_for_selector("#code-Python:has-text(\"'age': [18, 90\")", state="attached")
        tab.check()
        tab.page.click("#plan form button")
        tab.page.wait_for_url(f"**/answers/{2 * place + 1}?*")
        assert tab.page.locator("figure img").evaluate("image => image.naturalWidth") > 100
        tab.check()
        curl = tab.page.locator("#code-curl").text_content()
        done = subprocess.run(["bash", "-c", curl], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["release"]["number"] == 2 * place + 1
        for kind in ("Python", "SQL"):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(tab.page.locator(f"#code-{kind}").text_content(), {})
            assert f"release {2 * place + 1} of" in said.getvalue()
        ask(tab, "quantile", "wage")
        tab.page.click("summary >> nth=0")
        tab.page.fill("#q", ["0.25, 0.5, 0.75", "0,1 0,9"][place])
        tab.page.wait_for_selector(f"#plan h2:has-text('{['0.25, 0.5, 0.75', '0.1, 0.9'][place]}')")
        tab.page.click("#plan form button")
        tab.page.wait_for_url(f"**/answers/{2 * place + 2}?*")
        tab.page.click("text=The answer, as a table")
        assert tab.page.locator("figure tbody tr").count() == 3 - place
        tab.check()
        tab.close()


def test_after_a_loss_a_person_consents_anew_on_their_page(servers: Servers, browser: Any, tmp_path: Path) -> None:
    file = declare_levels(tmp_path)
    ledger, copy = tmp_path / "pay.ledger", tmp_path / "copy"
    with eps.Dataset.from_toml(tmp_path / "pay.toml") as people:
        people.ledger.copy(str(copy))
        people.count(share=0.25)
    shutil.copyfile(copy, ledger)
    eps.ledger.open(f"sqlite:///{ledger}", accept_loss=True).close()
    url = servers.start(file)[0]
    steward = Tab(browser, **DESK)
    enter(steward, url, key_for(file, "city", "steward"))
    for how, number in ((PHONE, "3"), (DESK, "4")):
        steward.page.goto(f"{url}/steward/pay")
        steward.page.fill("#person", number)
        steward.page.click("text=Make a personal link")
        person = Tab(browser, **how)
        person.page.goto(steward.page.inner_text("code.secret"))
        person.page.wait_for_url("**/my")
        assert "Records of this dataset's ledger were lost" in person.page.inner_text("[role=note]")
        person.check()
        # A level is asked about once more, and the page begins with that; no leaves everything as it was.
        for yes in (False, True):
            person.page.click("label.card:has-text('open')")
            person.page.click("text=Save my choice")
            person.page.wait_for_selector("h2 >> nth=0 >> text=Consent anew?")
            assert person.page.locator("#anew").bounding_box()["y"] < person.page.viewport_size["height"]
            person.check()
            person.page.click("text=Yes, I consent anew" if yes else "text=No, leave it as it is")
            person.page.wait_for_url("**/my?done=anew" if yes else "**/my")
            assert person.page.inner_text("#now") == ("Now: open" if yes else "Now: strict")
        assert "You consented anew." in person.page.inner_text("[role=status]")
        assert person.page.locator("[role=note]").count() == 0
        person.check()
        person.close()
    steward.close()
    with eps.Dataset.from_toml(tmp_path / "pay.toml") as people:
        assert [people.statement(number).left for number in (3, 5)] == [10**9, 0]
