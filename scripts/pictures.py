#!/usr/bin/env python3
"""Draws docs/pictures/*.svg from the *.txt beside them; with --check it only says whether they are up to date.

A picture is a stack of items, one a line: `title`, `box`, `row` (boxes side by side, separated by `||`), `arrow`, `link`
(joins the boxes of the row above), `note`, and `group` with its `step`s, whose `end` names the arrow to the first box of the
next row and the one from every step to its last box. A box is `KIND: heading | line | line`.
"""
import sys
from html import escape
from pathlib import Path

WIDTH, MARGIN, GAP = 440, 16, 12
STYLE = """
  text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; font-size: 13px; fill: #1f2328 }
  .h { font-weight: 600; font-size: 14px } .t { font-weight: 600; font-size: 16px } .s { fill: #4a535d } .e { text-anchor: end } .m { text-anchor: middle }
  .paper { fill: #ffffff; stroke: #d1d9e0 } rect { rx: 8px; stroke-width: 1.2 } .line { fill: none; stroke: #59636e; stroke-width: 1.4 }
  .tip { fill: #59636e } .client { fill: #ddf4ff; stroke: #0969da } .courser { fill: #dafbe1; stroke: #1a7f37 }
  .group { fill: #f0fbf3; stroke: #1a7f37 } .backend { fill: #fff8c5; stroke: #9a6700 } .log { fill: #fbefff; stroke: #8250df }
  .plain { fill: #f6f8fa; stroke: #59636e } .dashed { fill: none; stroke: #59636e; stroke-dasharray: 5 4 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .s { fill: #c4ccd4 } .paper { fill: #0d1117; stroke: #3d444d } .line { stroke: #9198a1 } .tip { fill: #9198a1 }
    .client { fill: #0c2d6b; stroke: #4493f8 } .courser { fill: #0f3d1e; stroke: #3fb950 } .group { fill: #0a1f12; stroke: #3fb950 }
    .backend { fill: #3b2b06; stroke: #d29922 } .log { fill: #2b1650; stroke: #ab7df8 } .plain { fill: #151b23; stroke: #9198a1 } .dashed { stroke: #9198a1 }
  }
"""


class Picture:
    """Collects shapes while `y` moves down."""

    def __init__(self):
        self.shapes, self.y, self.columns, self.title, self.heading, self.steps = [], MARGIN, [WIDTH / 2], "", "", []

    def text(self, x, y, words, style):
        self.shapes.append(f'<text x="{x:g}" y="{y:g}" class="{style}">{escape(words)}</text>')

    def line(self, path):
        self.shapes.append(f'<path class="line" d="{path}"/>')

    def rect(self, kind, x, y, width, height, place=None):
        place = len(self.shapes) if place is None else place
        self.shapes.insert(place, f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>')

    def tip(self, x, y):
        self.shapes.append(f'<path class="tip" d="M{x:g} {y:g} l-4 -7 h8 Z"/>')

    def boxes(self, cells):
        self.columns, width = columns(len(cells))
        boxes = [[part.strip() for part in cell.replace(":", "|", 1).split("|")] for cell in cells]
        height = 11 + 17 * (max(map(len, boxes)) - 1)
        for x, (kind, heading, *lines) in zip(self.columns, boxes):
            self.rect(kind, x - width / 2, self.y, width, height)
            self.text(x, self.y + 20, heading, "h m")
            for index, line in enumerate(lines):
                self.text(x, self.y + 38 + 17 * index, line, "s m")
        self.y += height

    def arrow(self, label, ends):
        """From each box above to each of the `ends` below; one side or the other is a single one."""
        top, bottom = self.y + 3, self.y + 32
        for start in self.columns:
            for end in ends:
                self.line(f"M{start:g} {top:g} C{start:g} {top + 15:g} {end:g} {top + 11:g} {end:g} {bottom - 6:g}")
                self.tip(end, bottom)
        self.text(WIDTH / 2 + 12, self.y + 21, label, "s")
        self.y += 34

    def link(self, label):
        for x in self.columns:
            self.line(f"M{x:g} {self.y + 3:g} V{self.y + 16:g}")
        self.line(f"M{self.columns[0]:g} {self.y + 16:g} H{self.columns[-1]:g}")
        self.text(WIDTH / 2, self.y + 34, label, "m")
        self.y += 46

    def note(self, words):
        for part in words.split(" / "):
            self.text(WIDTH / 2, self.y + 12, part, "s m")
            self.y += 18
        self.y, self.columns = self.y + 6, [WIDTH / 2]

    def group(self, labels):
        top, place, left, width = self.y, len(self.shapes), MARGIN + 12, WIDTH - 2 * MARGIN - 58
        self.text(left, top + 22, self.heading, "h")
        self.y += 32
        (to_first, to_last), ends, rail = labels.split("|"), columns(2)[0], WIDTH - MARGIN - 22
        for name, what in self.steps:
            self.rect("courser", left, self.y, width, 31)
            self.text(left + 10, self.y + 20, name, "h")
            self.text(left + 124, self.y + 20, what, "s")
            self.line(f"M{left + width} {self.y + 15:g} H{rail}")
            self.y += 37
        bottom = self.y + 44
        self.rect("group", MARGIN, top, WIDTH - 2 * MARGIN, bottom - 38 - top, place)
        for x, start in ((rail, top + 47), (ends[0], self.y + 9)):
            self.line(f"M{x:g} {start:g} V{bottom - 6:g}")
            self.tip(x, bottom)
        self.text(ends[0] + 10, self.y + 29, to_first.strip(), "s")
        self.text(rail - 10, self.y + 29, to_last.strip(), "s e")
        self.y = bottom + 2

    def svg(self):
        height = self.y + MARGIN
        size = f'width="{WIDTH * 1.25:g}" height="{height * 1.25:g}" viewBox="0 0 {WIDTH} {height:g}"'
        self.rect("paper", 0.6, 0.6, WIDTH - 1.2, height - 1.2, 0)
        head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', f"<title>{escape(self.title)}</title>"]
        return "\n".join([*head, f"<style>{STYLE}</style>", *self.shapes, "</svg>"]) + "\n"


def columns(count):
    """The middles of so many boxes side by side, and the width of one."""
    width = (WIDTH - 2 * MARGIN - GAP * (count - 1)) / count
    return [MARGIN + width / 2 + (width + GAP) * index for index in range(count)], width


def draw(source):
    picture = Picture()
    items = [line.split(" ", 1) for line in source.splitlines() if line and not line.startswith("#")]
    for place, (word, *rest) in enumerate(items):
        rest = rest[0] if rest else ""
        if word == "title":
            picture.title = rest
            picture.text(MARGIN, picture.y + 14, rest, "t")
            picture.y += 32
        elif word in ("box", "row"):
            picture.boxes(rest.split("||"))
        elif word == "arrow":
            picture.arrow(rest, columns(items[place + 1][1].count("||") + 1)[0])
        elif word == "group":
            picture.heading = rest
        elif word == "step":
            picture.steps.append([part.strip() for part in rest.split("|")])
        else:
            {"link": picture.link, "note": picture.note, "end": picture.group}[word](rest)
    return picture.svg()


def main():
    old = []
    for source in sorted((Path(__file__).parent.parent / "docs/pictures").glob("*.txt")):
        svg, target = draw(source.read_text()), source.with_suffix(".svg")
        if "--check" not in sys.argv:
            target.write_text(svg)
        elif not target.exists() or target.read_text() != svg:
            old.append(target.name)
    sys.exit(f"out of date, run scripts/pictures.py: {', '.join(old)}" if old else 0)


if __name__ == "__main__":
    main()
