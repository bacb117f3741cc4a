#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the result of the demo as SVG: what the eight programs took one after another and together, and each of them by itself.

Usage: ./quickstart demo > demo/output.txt; demo/picture.py < demo/output.txt > doc/demo.svg

Only what the demo printed is drawn. Exit status: 1 if the text is not the demo's output.
"""
import re
import sys

WIDTH, LEFT, RIGHT_COLUMN, BAR, STEP = 880, 30, 470, 20, 30
GREY, GREEN, BLUE, ORANGE, INK = "#9aa4ae", "#2a8c6e", "#2f6fb0", "#d9822b", "#24292f"
GPU_COLOURS = {"rtx3070": BLUE, "t400": ORANGE}

PROGRAM = re.compile(r"(\w+) +\S.*? +right +(\w+) +\d+ +[\d.]+ +[\d.]+ +([\d.]+) +([\d.]+)$")
TOTAL = re.compile(r"(time on the GPUs' clock|energy of both GPUs), (ms|J) +([\d.]+) +([\d.]+)")


def read(lines):
    """Return: ([(program, gpu, ms, joules)], [(what, unit, one after another, together)])"""
    programs, totals = [], []
    for line in lines:
        if m := PROGRAM.match(line.strip()):
            programs.append((m[1], m[2], float(m[3]), float(m[4])))
        if m := TOTAL.match(line.strip()):
            totals.append((m[1], m[2], float(m[3]), float(m[4])))
    if not programs or len(totals) != 2:
        sys.exit("picture.py: this is not the output of the demo, or a program's result was wrong")
    return programs, totals


class Picture:
    def __init__(self):
        self.parts = []

    def text(self, x, y, words, size=13, anchor="start", weight="normal"):
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>')

    def bar(self, x, y, width, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{BAR}" rx="2" fill="{colour}"/>')

    def svg(self, height, title):
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'font-family="sans-serif" fill="{INK}" role="img">\n<title>{title}</title>\n'
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


def draw_totals(p, totals):
    names = {"time on the GPUs' clock": "Time until all eight are done", "energy of both GPUs": "Energy of both GPUs"}
    y = 72
    for what, unit, alone, together in totals:
        digits = 2 if unit == "ms" else 3
        p.text(LEFT, y, f"{names[what]}, {unit}", 14, weight="bold")
        for label, value, colour in (("one after another", alone, GREY), ("together", together, GREEN)):
            y += STEP
            p.text(LEFT + 120, y, label, 13, "end")
            p.bar(LEFT + 130, y - 15, 190 * value / alone, colour)
            ratio = "" if value == alone else f"  ({value / alone:.2f} ×)"
            p.text(LEFT + 136 + 190 * value / alone, y, f"{value:.{digits}f}{ratio}")
        y += 56


def draw_programs(p, programs):
    p.text(RIGHT_COLUMN, 72, "Each program, run together", 14, weight="bold")
    p.text(RIGHT_COLUMN + 110, 94, "device time, ms", 12)
    p.text(RIGHT_COLUMN + 270, 94, "energy, mJ", 12)
    most_ms, most_j = max(r[2] for r in programs), max(r[3] for r in programs)
    y = 94
    for name, gpu, ms, joules in programs:
        y += 26
        colour = GPU_COLOURS.get(gpu, GREY)
        p.text(RIGHT_COLUMN + 100, y, name, 13, "end")
        p.bar(RIGHT_COLUMN + 110, y - 15, 100 * ms / most_ms, colour)
        p.text(RIGHT_COLUMN + 115 + 100 * ms / most_ms, y, f"{ms:.2f}", 12)
        p.bar(RIGHT_COLUMN + 270, y - 15, 85 * joules / most_j, colour)
        p.text(RIGHT_COLUMN + 275 + 85 * joules / most_j, y, f"{joules * 1e3:.1f}", 12)
    y += 34
    x = RIGHT_COLUMN + 110
    for gpu in dict.fromkeys(r[1] for r in programs):
        p.bar(x, y - 15, BAR, GPU_COLOURS.get(gpu, GREY))
        p.text(x + 26, y, f"on the {gpu}", 12)
        x += 130
    return y


def main():
    programs, totals = read(sys.stdin)
    p = Picture()
    title = "Eight CUDA programs on two software GPUs"
    p.text(LEFT, 34, title, 18, weight="bold")
    draw_totals(p, totals)
    bottom = draw_programs(p, programs) + 34
    p.text(LEFT, bottom, "Output of ./quickstart demo. Time and energy are modelled for the GPUs of the catalog.", 12)
    sys.stdout.write(p.svg(bottom + 18, title))


if __name__ == "__main__":
    main()
