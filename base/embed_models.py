#!/usr/bin/env python3
"""Turns data/models.json into C, a text per row: embed_models.py MODELS GOLDEN_RESULTS OUTPUT.

The model table is data that a program must have without finding a file first: a box may not see the data
folder, and a lost file must not stop a run. A run needs two rows of sixty, so rows are parsed one by one.
"""
import json
import sys


def literal(text):
    return json.dumps(json.dumps(text, separators=(",", ":"), ensure_ascii=True))


def rows(name, section):
    out = [f"const struct model_table_row {name}[] = {{"]
    for key, row in section.items():
        out.append(f"\t{{{json.dumps(key)},\n\t {literal(row)}}},")
    out.append("};")
    out.append(f"const size_t {name}_count = {len(section)};")
    return out


def main():
    source, golden, target = sys.argv[1:]
    with open(source, encoding="utf-8") as f:
        data = json.load(f)
    text = ['#include "base/model_rows.h"', ""]
    text += rows("model_table_providers", data["providers"])
    text += rows("model_table_models", data["models"])
    with open(golden, encoding="utf-8") as f:
        text.append(f"const char model_golden_text[] = {literal(json.load(f))};")
    with open(target, "w", encoding="ascii") as f:
        f.write("\n".join(text) + "\n")


main()
