# SPDX-License-Identifier: Apache-2.0
"""pictures.py PICTURE.svg [--has TEXT] [--lacks TEXT] [--units] ...: the texts of a picture by gnuplot can be read: none leaves the picture,
and no two lie on each other. Boxes are estimated from the size of the font. --has: this text is in it; --units: each axis with a
name says its unit in brackets, or is one of things that have none."""

import html
import re
import sys
import unicodedata

WIDTH = 0.56  # of a character of DejaVu Sans, in sizes of the font, on average
HEIGHT = 0.72  # of capitals and digits
EDGE = 4  # pixels that an estimate may be wrong by
WITHOUT_UNIT = re.compile(r"loss|perplexity|^machines$|^jobs, by arrival$|steps|worker|schedule\.|sync\.|train\.|mean of the workers|spread, %|samples per second")


def texts(svg):
    """Text, rotated?, and box (left, top, right, bottom) of each text element."""
    pattern = r'<g transform="translate\(([-\d.]+),([-\d.]+)\)( rotate\([-\d.]+\))?"([^>]*)>\s*<text>(.*?)</text>'
    for x, y, turn, style, inner in re.findall(pattern, svg, re.S):
        size = float(re.search(r'font-size="([\d.]+)"', style)[1])
        anchor = re.search(r'text-anchor="(\w+)"', style)[1]
        text = html.unescape(re.sub(r"<[^>]*>", "", inner)).strip()
        text = "".join(c for c in text if not unicodedata.combining(c))
        if not text:
            continue
        wide = WIDTH * size * len(text)
        before = {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        x, y, high = float(x), float(y), HEIGHT * size
        if turn:
            yield text, True, (x - high, y + before - wide, x, y + before)
        else:
            yield text, False, (x - before, y - high, x - before + wide, y)


def main(path, *wanted):
    svg = open(path, encoding="utf-8").read()
    size = re.search(r'<svg[^>]*viewBox="0 0 (\d+) (\d+)"', svg, re.S)
    width, height = int(size[1]), int(size[2])
    found = list(texts(svg))
    names = [text for text, _, _ in found]
    wrong = [f"{text!r} leaves the picture: {box}" for text, _, box in found
             if box[0] < -EDGE or box[1] < -EDGE or box[2] > width + EDGE or box[3] > height + EDGE]
    for i, (text, _, a) in enumerate(found):
        for other, _, b in found[:i]:
            across = min(a[2], b[2]) - max(a[0], b[0])
            along = min(a[3], b[3]) - max(a[1], b[1])
            if across > EDGE and along > EDGE and text != other:
                wrong.append(f"{text!r} lies on {other!r}")
    wanted = list(wanted)
    while wanted:
        option = wanted.pop(0)
        if option == "--units":
            axes = [text for text, turned, box in found if turned or text.startswith(("time since", "cost", "sent by"))]
            wrong += [f"axis {text!r} has no unit" for text in axes
                      if not re.search(r"\([^)]*\)", text) and not WITHOUT_UNIT.search(text) and not text.startswith("stage")]
            continue
        text = wanted.pop(0)
        there = any(text in name for name in names)
        if there != (option == "--has"):
            wrong.append(f"{text!r} is {'missing' if option == '--has' else 'there'}: {names}")
    assert len(names) > 4, names
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
