"""Pages in a real browser, without a network: what is looked at, and how."""

import io
import shutil

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = [
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
]


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        pytest.skip("no chromium on this machine: pages are not looked at (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    with playwright.sync_playwright() as p:
        running = p.chromium.launch(executable_path=BROWSER, args=QUIET)
        yield running
        running.close()


class Page:
    """A page opened without a network, and what it complained about."""

    def __init__(self, browser, file):
        self.complaints = []
        self.page = browser.new_context(offline=True, viewport={"width": 1100, "height": 700}).new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda m: m.type == "error" and self.complaints.append(m.text))
        self.page.on("request", self._asked)
        self.page.add_init_script("window.addEventListener('error', () => { window.failed = true; })")
        self.page.goto(f"file://{file}")

    def _asked(self, request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.complaints.append(f"asks for {request.url}")

    def player(self):
        return self.page.locator(".player").first

    def frame(self):
        return int(self.player().get_attribute("data-frame"))

    def wait_for(self, condition):
        self.page.wait_for_function(condition, timeout=60_000)


def plays(browser, file, colours=0):
    """Plays, pauses and scrubs the first player of a page; raises if something does not work, or if the
    drawing has no more than so many colours.
    """
    page = Page(browser, file)
    page.wait_for("document.querySelector('.player').dataset.frame !== undefined")
    assert page.frame() == 0
    button, slider = page.player().locator(".controls button"), page.player().locator("input")
    button.click()
    page.wait_for("Number(document.querySelector('.player').dataset.frame) > 3")
    assert button.inner_text() == "Pause"
    button.click()
    assert button.inner_text() == "Play"
    page.page.wait_for_timeout(300)  # the last wish is drawn
    stopped = page.frame()
    page.page.wait_for_timeout(500)
    assert page.frame() == stopped
    last = int(slider.get_attribute("max"))
    slider.fill(str(last))
    page.wait_for(f"document.querySelector('.player').dataset.frame === '{last}'")
    clock = page.player().locator(".clock").inner_text()
    assert not page.complaints, page.complaints
    assert painted(page) > colours
    return clock


def painted(page):
    """How many different colours the drawing has: an empty canvas has few."""
    from PIL import Image

    page.page.wait_for_timeout(200)
    image = Image.open(io.BytesIO(page.player().locator(".plot").screenshot())).convert("RGB")
    left = image.crop((0, 0, int(0.55 * image.width), image.height))
    return len(left.getcolors(maxcolors=1 << 20))


def plays_at_all(browser, file):
    """As `plays`, but it ends as soon as the page has complained."""
    page = Page(browser, file)
    page.wait_for("window.failed || document.querySelector('.player').dataset.frame !== undefined")
    assert not page.complaints, page.complaints


def overflow(browser, file, width):
    """How many pixels of a page lie beyond the right edge of a screen of that width."""
    page = Page(browser, file)
    page.page.set_viewport_size({"width": width, "height": 800})
    page.page.reload()
    page.wait_for("document.querySelector('.player').dataset.frame !== undefined")
    return page.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
