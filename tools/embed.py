#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C source that holds files as bytes.

usage: embed.py OUT.c SYMBOL FILE...
gives: const struct embedded SYMBOL[] = {{name, data, size}, ..., {0}};  (see base/embedded.h)
A .yaml file is stored as JSON, under its name with .json.
"""
import json
import os
import sys


def content(path):
    name = os.path.basename(path)
    with open(path, "rb") as f:
        data = f.read()
    if name.endswith(".yaml"):
        import yaml
        text = json.dumps(yaml.safe_load(data), separators=(",", ":"), ensure_ascii=False)
        return name[:-5] + ".json", text.encode()
    return name, data


def main(out, symbol, paths):
    with open(out, "w", encoding="ascii") as f:
        f.write('#include "base/embedded.h"\n')
        names = []
        for i, (name, data) in enumerate(map(content, paths)):
            names.append((name, len(data)))
            f.write(f"static const unsigned char data_{i}[] = {{\n")
            body = data + b"\0"  # a NUL behind the data: texts can be used as strings
            for at in range(0, len(body), 16):
                f.write(",".join(str(b) for b in body[at:at + 16]) + ",\n")
            f.write("};\n")
        f.write(f"const struct embedded {symbol}[] = {{\n")
        for i, (name, size) in enumerate(names):
            f.write(f"    {{{json.dumps(name)}, (const char *)data_{i}, {size}}},\n")
        f.write("    {0},\n};\n")


main(sys.argv[1], sys.argv[2], sys.argv[3:])
