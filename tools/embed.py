#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C source that holds files as bytes.

usage: embed.py [--gzip] OUT.c SYMBOL FILE...
gives: const struct embedded SYMBOL[] = {{name, data, size, gzip, gzip_size}, ..., {0}};  (see base/embedded.h)
A .yaml file is stored as JSON, under its name with .json. With --gzip each file is also stored compressed, if that is
smaller. The same files give the same bytes: no name and no time is in a compressed file.
"""
import json
import os
import sys
import zlib


def content(path):
    name = os.path.basename(path)
    with open(path, "rb") as f:
        data = f.read()
    if name.endswith(".yaml"):
        import yaml
        text = json.dumps(yaml.safe_load(data), separators=(",", ":"), ensure_ascii=False)
        return name[:-5] + ".json", text.encode()
    return name, data


def compressed(data):
    """In the gzip format; b"" where that saves nothing."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    packed = packer.compress(data) + packer.flush()
    return packed if len(packed) < len(data) else b""


def write_array(f, name, data):
    f.write(f"static const unsigned char {name}[] = {{\n")
    for at in range(0, len(data), 16):
        f.write(",".join(str(b) for b in data[at:at + 16]) + ",\n")
    f.write("};\n")


def main(arguments):
    compress = arguments[0] == "--gzip"
    out, symbol, *paths = arguments[compress:]
    rows = []
    with open(out, "w", encoding="ascii") as f:
        f.write('#include "base/embedded.h"\n')
        for i, (name, data) in enumerate(map(content, paths)):
            packed = compressed(data) if compress else b""
            write_array(f, f"data_{i}", data + b"\0")  # a NUL behind the data: texts can be used as strings
            row = f"{json.dumps(name)}, (const char *)data_{i}, {len(data)}"
            if packed:
                write_array(f, f"gzip_{i}", packed)
                row += f", (const char *)gzip_{i}, {len(packed)}"
            rows.append(row)
        f.write(f"const struct embedded {symbol}[] = {{\n")
        for row in rows:
            f.write(f"    {{{row}}},\n")
        f.write("    {0},\n};\n")


main(sys.argv[1:])
