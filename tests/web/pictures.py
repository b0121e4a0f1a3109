"""`make pictures`: the pictures of README.md and jobs/web.md, of the demonstration in a real Chromium, light and dark."""

import base64
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from tests.ferry import ROOT, Ferry
from tests.web.sites import link_in, serving

FOLDER = ROOT / "jobs" / "pictures"
CHROMIUM = "/usr/bin/chromium"
WIDTH, HEIGHT = 1180, 740
# By the name of the picture: the page whose beginning it shows.
PICTURES = {"front": "/", "job": "/jobs/music", "disks": "/disks"}
SCHEMES = ("light", "dark")
AS_WEBP = """async (text) => {
    const image = new Image();
    image.src = "data:image/png;base64," + text;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.75);
}"""


def make_pictures(
    context: BrowserContext, address: str, folder: Path, names: tuple[str, ...] = tuple(PICTURES)
) -> list[Path]:
    """Make pictures of a demonstration that was entered; return their paths."""
    page, blank = context.new_page(), context.new_page()
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    made = []
    for name in names:
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(address + PICTURES[name])
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            path = folder / f"{name}-{scheme}.webp"
            path.write_bytes(_webp(blank, page.screenshot(animations="disabled")))
            made.append(path)
    page.close()
    blank.close()
    return made


def _webp(blank: Page, png: bytes) -> bytes:
    """Pack a picture as a browser does: a third of the bytes, and no other program."""
    told: str = blank.evaluate(AS_WEBP, base64.b64encode(png).decode())
    return base64.b64decode(told.removeprefix("data:image/webp;base64,"))


def main() -> None:
    """Make all of them anew."""
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        sync_playwright() as playwright,
        serving(Ferry(Path(home)), "--demo", "--listen", "127.0.0.1:0") as (_, said),
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(reduced_motion="reduce")
        context.new_page().goto(link_in(said))
        for path in make_pictures(context, link_in(said).partition("/enter")[0], FOLDER):
            sys.stdout.write(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes\n")
        browser.close()


if __name__ == "__main__":
    main()
