#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tally.py TESTLOG.json - what meson ran, one line per check: "pass", "fail" or "skip", a tab, the name; behind a failed one a tab and
the last words of what it said.

A test program counts as its own checks: the lines of the Test Anything Protocol, or cmocka's totals. One that prints
neither counts as one. A program that ended badly without naming a failed check counts as one failure more.
"""

import json
import re
import sys

TAP = re.compile(r"^(not ok|ok)\b[ \d]*-? ?([^#\n]*)(?:# SKIP(.*))?((?:\n#.*)*)", re.MULTILINE | re.IGNORECASE)
BAIL = re.compile(r"^Bail out! (.*)", re.MULTILINE)
CMOCKA = re.compile(r"^\[ *(OK|FAILED|SKIPPED) *\] (\w+)", re.MULTILINE)


def last_words(said):
    """Of the lines of a failed check, on one line."""
    return " | ".join(line.lstrip("# ").replace("\t", " ") for line in said.strip().split("\n"))[-400:]


def checks(test):
    """The checks of one program: (verdict, name) each, and what a failed one said."""
    text = test.get("stdout", "") + "\n" + test.get("stderr", "")
    name = test["name"]
    for verdict, check, reason, said in TAP.findall(text):
        if reason:
            yield "skip", f"{name}: {check.strip()} ({reason.strip()})", ""
        elif verdict.lower() == "ok":
            yield "pass", f"{name}: {check.strip()}", ""
        else:
            yield "fail", f"{name}: {check.strip()}", last_words(said)
    for reason in BAIL.findall(text):
        yield "fail", f"{name}: {reason.strip()}", ""
    seen = set()
    for verdict, check in CMOCKA.findall(text):
        if check in seen or not check.strip("0123456789"):
            continue  # the summary at the end names the failed ones again
        seen.add(check)
        yield {"OK": "pass", "FAILED": "fail", "SKIPPED": "skip"}[verdict], f"{name}: {check}", ""


def main():
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            found = list(checks(test))
            good = test["result"] in ("OK", "EXPECTEDFAIL")
            if test["result"] == "SKIP" and not found:
                found = [("skip", test["name"], "")]
            elif not good and test["result"] != "SKIP" and not any(verdict == "fail" for verdict, _, _ in found):
                found.append(("fail", f"{test['name']}: {test['result']}, exit status {test['returncode']}", ""))
            elif not found:
                found = [("pass", test["name"], "")]
            for verdict, name, said in found:
                print(f"{verdict}\t{name}" + (f"\t{said}" if said else ""))


main()
