"""The site as its reader meets it, in a real browser: from a disk, with no network, by keys, in both colours."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.pages import nasty, opened, sample

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), "")
sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright; pip install -e '.[browser]'")
axe_sync = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install -e '.[browser]'")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium on the path (Debian: apt install chromium)")

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
KINDS = ("index.html", "timeline.html", "changes.html", "waiting.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    sample(folder).export("html", folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nasty")
    nasty(folder).export("html", folder / "site")
    return folder / "site"


class Looked:
    """A page that is open, and what the browser said of it."""

    def __init__(self, browser: Any, site: Path, path: str, **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.site = site
        self.asked: list[str] = []
        self.said: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.go(path)

    def go(self, path: str) -> None:
        name, _, anchor = path.partition("#")
        self.page.goto((self.site / name).as_uri() + (f"#{anchor}" if anchor else ""))

    def search(self, words: str) -> list[str]:
        """Type words into the search; the beginnings of what is found."""
        self.page.locator("#query").fill(words)
        self.page.wait_for_function("!document.getElementById('told').textContent.startsWith('Reading')")
        return list(self.page.locator("#found li:not(.topic) .text").all_inner_texts())

    def __enter__(self) -> Looked:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


def pages_of(site: Path) -> list[str]:
    """A page of each kind."""
    topics = sorted(path.relative_to(site).as_posix() for path in (site / "topics").iterdir())
    months = sorted(path.relative_to(site).as_posix() for path in (site / "timeline").iterdir())
    return [*KINDS, *topics[:3], *months[-1:]]


def test_nothing_that_was_stored_runs_and_nothing_leaves_the_disk(browser: Any, hostile: Path) -> None:
    every = sorted(path.relative_to(hostile).as_posix() for path in hostile.rglob("*.html"))
    with Looked(browser, hostile, "index.html") as looked:
        for path in every:
            looked.go(path)
            looked.page.wait_for_load_state("networkidle")
            assert looked.page.evaluate("window.hacked") is None, path
        looked.search("script")
        for link in looked.page.locator("main a[href^='javascript']").all():
            raise AssertionError(link.inner_text())
        assert looked.page.evaluate("window.hacked") is None
        assert all(url.startswith("file:") for url in looked.asked)
        assert looked.said == []


def test_text_stands_there_as_it_was_written(browser: Any, hostile: Path) -> None:
    with Looked(browser, hostile, "topics/nasty.html") as looked:
        assert looked.page.locator("#seq-1 .words").inner_text() == "<script>window.hacked = 1</script>"
        assert looked.page.locator("#seq-2 .words").inner_text() == "<img src=x onerror='window.hacked = 2'>"
        assert "[press here](javascript:window.hacked=3)" in looked.page.locator("#seq-3 .words").inner_text()
        assert looked.page.locator("h1").inner_text() == "<script>window.hacked=10</script> nasty"
        assert looked.page.locator("h1").count() == 1
        assert looked.page.locator("main img, main svg, main script, main style, main iframe").count() == 0


def test_search_by_keys_alone(browser: Any, plain: Path) -> None:
    with Looked(browser, plain, "timeline/2026-05.html") as looked:
        page = looked.page
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "query"
        page.keyboard.type("final invoice bathroom")
        page.wait_for_selector("#found li")
        assert page.locator("#told").inner_text() == "1 entry"
        assert page.locator("#found mark").all_inner_texts() == ["Final", "invoice", "bathroom"]
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.tagName") == "A"
        page.keyboard.press("ArrowUp")
        assert page.evaluate("document.activeElement.id") == "query"
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/topics/bathroom.html#seq-192")
        assert page.locator("#seq-192").is_visible()
        assert page.evaluate("document.querySelector(':target').getBoundingClientRect().top") >= 0
        page.keyboard.press("/")
        page.keyboard.type("waffles")
        page.wait_for_selector("#found li")
        page.keyboard.press("Escape")
        assert page.locator("#found").is_hidden()
        page.keyboard.press("Escape")
        assert page.locator("#query").input_value() == ""
        assert looked.said == []


def test_enter_goes_to_the_best_one_and_a_folded_entry_is_shown(browser: Any, plain: Path) -> None:
    with Looked(browser, plain, "index.html") as looked:
        page = looked.page
        assert looked.search("468,000 rot sill")[0].startswith("New sum for the bathroom")
        assert page.locator("#found li.was .from").first.inner_text().startswith("replaced")
        page.keyboard.press("Enter")
        page.wait_for_url("**/topics/bathroom.html#seq-111")
        assert page.locator("#seq-111").is_visible()
        assert page.locator("#seq-192 > details").get_attribute("open") is not None
        page.locator("#seq-111 .meta a", has_text="entry 192").click()
        page.wait_for_url("**/topics/bathroom.html#seq-192")


def test_words_are_found_whatever_their_script_case_accents_and_endings(browser: Any, hostile: Path) -> None:
    with Looked(browser, hostile, "index.html") as looked:
        tower = "東京タワーの高さは三百三十三メートルです。"
        for words in ("東京", "タワー", "高さ 東京", "東京タワーはどのくらいの高さ", "東京タワー ゆき"):
            assert looked.search(words)[:1] == [tower], words
        for words in ("größe", "GRÖSSE 38", "grosse ocker", "fur mathildas"):
            assert looked.search(words)[:1] == ["Größe 38 in Ocker, für Mathilda."], words
        assert looked.search("cafe closing six")[0].startswith("The café closes at six")
        assert looked.search("مرحبا")[0].startswith("مرحبا")
        assert looked.search("#13")[0].startswith("| item | price |")
        looked.search("plain")
        assert looked.page.locator("#told").inner_text() == "1 topic, 4 entries"
        assert looked.page.locator("#found a").first.get_attribute("href").endswith("topics/plain.html")
        assert looked.search("xylophone") == []
        assert looked.page.locator("#told").inner_text() == "No entry has these words."


def test_many_results_come_a_few_at_a_time(browser: Any, tmp_path: Path) -> None:
    library = opened(tmp_path / "m")
    for topic in range(25):
        lines = "".join(f"- <seq={topic * 80 + at}, time=2026-05> Heron {at} of {topic}.\n" for at in range(1, 81))
        page = library.root / "topics" / f"t{topic}.md"
        page.write_text(f"---\nid: t{topic}\ntoken_count: 9\n---\n# T{topic}\n\n{lines}")
    library.export("html", tmp_path / "site")
    with Looked(browser, tmp_path / "site", "index.html") as looked:
        assert len(looked.search("heron")) == 30
        assert looked.page.locator("#told").inner_text() == "2,000 entries"
        looked.page.locator("#found .more").click()
        assert looked.page.locator("#found li").count() == 60
        for _ in range(31):
            looked.page.keyboard.press("ArrowDown")
        assert looked.page.locator("#found li").count() == 90
        assert looked.page.evaluate("document.activeElement.closest('#found') !== null")


def test_light_dark_and_what_somebody_chose(browser: Any, plain: Path) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    with Looked(browser, plain, "index.html", color_scheme="dark") as looked:
        dark = looked.page.evaluate(paper)
        looked.page.locator("#theme").click()
        light = looked.page.evaluate(paper)
        assert dark != light
        looked.go("timeline.html")
        assert looked.page.evaluate(paper) == light
        assert looked.page.locator("#theme").get_attribute("aria-label") == "Colours: light"
    with Looked(browser, plain, "index.html", color_scheme="light") as looked:
        assert looked.page.evaluate(paper) == light


def test_without_scripts_everything_can_be_read(browser: Any, plain: Path) -> None:
    with Looked(browser, plain, "topics/bathroom.html", java_script_enabled=False) as looked:
        assert looked.page.locator("form.search").is_hidden()
        assert looked.page.locator("#theme").is_hidden()
        assert looked.page.locator("#seq-192").is_visible()
        looked.page.locator("#seq-192 summary").click()
        assert looked.page.locator("#seq-111").is_visible()


def test_on_paper_there_is_only_what_is_read(browser: Any, plain: Path) -> None:
    with Looked(browser, plain, "topics/bathroom.html", color_scheme="dark") as looked:
        looked.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        looked.page.emulate_media(media="print")
        assert looked.page.locator("header.top").is_hidden()
        assert looked.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert looked.page.locator("#seq-111").is_visible()


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_is_wider_than_the_screen(browser: Any, hostile: Path, plain: Path, width: int) -> None:
    for site in (hostile, plain):
        with Looked(browser, site, "index.html", viewport={"width": width, "height": 800}) as looked:
            for path in pages_of(site):
                looked.go(path)
                assert looked.page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_the_keyboard_reaches_everything_and_shows_where_it_is(browser: Any, plain: Path) -> None:
    with Looked(browser, plain, "topics/bathroom.html") as looked:
        looked.page.keyboard.press("Tab")
        assert looked.page.evaluate("document.activeElement.className") == "skip"
        assert looked.page.locator(".skip").bounding_box()["y"] >= 0
        looked.page.keyboard.press("Enter")
        assert looked.page.evaluate("document.activeElement.id") == "main"
        for _ in range(12):
            looked.page.keyboard.press("Tab")
            style = "getComputedStyle(document.activeElement)"
            assert looked.page.evaluate(f"{style}.outlineStyle") == "solid"
            assert looked.page.evaluate(f"parseFloat({style}.outlineWidth)") >= 2


def find_nothing(browser: Any, site: Path, paths: Sequence[str], scheme: str, **options: Any) -> None:
    """Look at pages with axe-core, the last one with results of a search."""
    axe = axe_sync.Axe()
    with Looked(browser, site, "index.html", color_scheme=scheme, bypass_csp=True) as looked:
        for path in paths:
            looked.go(path)
            looked.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            if path == paths[-1]:
                assert looked.search("the")
            result = axe.run(looked.page, options=options or None)
            assert result.violations_count == 0, f"{path}\n{result.generate_report()}"


def test_axe_finds_nothing(browser: Any, hostile: Path, plain: Path) -> None:
    find_nothing(browser, plain, ["topics/garden-windows.html", "timeline.html", "index.html"], "light")
    find_nothing(browser, hostile, ["topics/nasty.html", "topics/plain.html", "changes.html", "waiting.html"], "light")


def test_axe_finds_nothing_too_pale_in_the_dark(browser: Any, hostile: Path) -> None:
    contrast = {"runOnly": ["color-contrast"]}
    paths = ["topics/nasty.html", "topics/plain.html", "changes.html", "timeline.html", "index.html"]
    find_nothing(browser, hostile, paths, "dark", **contrast)


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(browser: Any, hostile: Path, plain: Path, scheme: str) -> None:
    for site in (hostile, plain):
        paths = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
        find_nothing(browser, site, [*paths, "index.html"], scheme)
