#!/usr/bin/env python3
"""Turns a file into a C array: embed.py INPUT OUTPUT SYMBOL.

The model table is data that a program must have without finding a file first: a box may not see
the data folder, and a lost file must not stop a run. A NUL that is not counted is added.
"""
import sys


def main():
    source, target, symbol = sys.argv[1:]
    with open(source, "rb") as f:
        data = f.read()
    lines = []
    for at in range(0, len(data), 16):
        lines.append("\t" + " ".join("0x%02x," % byte for byte in data[at:at + 16]))
    text = "#include <stddef.h>\n\n"
    text += "extern const char %s[];\nextern const size_t %s_len;\n\n" % (symbol, symbol)
    text += "const char %s[] = {\n%s\n\t0x00,\n};\n" % (symbol, "\n".join(lines))
    text += "const size_t %s_len = %d;\n" % (symbol, len(data))
    with open(target, "w", encoding="ascii") as f:
        f.write(text)


main()
