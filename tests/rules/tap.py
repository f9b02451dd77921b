# SPDX-License-Identifier: Apache-2.0
"""TAP, a line for each check as it is made, and the plan at the end."""
count = failures = 0


def check(good, what, details=()):
    global count, failures
    count += 1
    failures += not good
    print(("ok" if good else "not ok"), count, "-", what)
    for line in () if good else details:
        print("#", line)


def skip(what, why):
    global count
    count += 1
    print("ok", count, "-", what, "# SKIP", why)


def end():
    """Whether a check failed, for sys.exit()."""
    print(f"1..{count}")
    return failures != 0
