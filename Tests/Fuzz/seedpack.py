# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The seeds of a fuzz target, all in one file, `packed/TARGET.seeds`.

A pack is a line `N seeds`, then N records in the order of their bytes, none twice. A record is a line `HASH LENGTH` or
`HASH LENGTH NAME`, that many bytes, and a line feed. HASH is FNV-1a of the bytes, 64 bits in 16 hexadecimal digits; LENGTH
is decimal, without leading zeros; NAME is of lower-case letters, digits, `-` and `.`, at most 64, and says what the seed
shows. `SeedPack.swift` reads the same and has the same words for each problem."""

import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NUMBER = rb"(0|[1-9][0-9]{0,8})"
NAME = rb"[a-z0-9.-]{1,64}"
# The longest line of a head, without its line feed.
LONGEST_LINE = 96


class Problem(Exception):
    """A pack that is not as this module writes it."""


def fingerprint(seed):
    """FNV-1a, 64 bits: what a seed without a name is called by."""
    value = 0xCBF29CE484222325
    for byte in seed:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def encode(seeds):
    """The pack of these seeds: their bytes, with the name of each, or an empty one."""
    records = [b"%d seeds\n" % len(seeds)]
    for seed, name in sorted(seeds.items()):
        if name and not re.fullmatch(NAME, name.encode()):
            raise Problem(f'"{name}" is not a valid name')
        head = f"{fingerprint(seed)} {len(seed)} {name}".rstrip()
        records.append(b"%s\n%s\n" % (head.encode(), seed))
    return b"".join(records)


def decode(data):
    """The seeds of a pack, as `encode` takes them. Raises a Problem for whatever it would not have written."""
    def line(pattern, start):
        end = data.find(b"\n", start, start + LONGEST_LINE + 1)
        return re.fullmatch(pattern, data[start:end]) if end >= 0 else None

    head = line(NUMBER + rb" seeds", 0)
    if not head:
        raise Problem('does not begin with a line "N seeds"')
    count, position, seeds, last = int(head.group(1)), head.end() + 1, {}, None
    for number in range(1, count + 1):
        where = f"seed {number} of {count}"
        record = line(rb"([0-9a-f]{16}) " + NUMBER + rb"(?: (" + NAME + rb"))?", position)
        if not record:
            raise Problem(f'{where} does not begin with a line "HASH LENGTH NAME"')
        position += record.end() + 1
        length = int(record.group(2))
        seed = data[position:position + length]
        if len(seed) < length:
            raise Problem(f"{where} is cut: {len(seed)} of {length} bytes")
        if data[position + length:position + length + 1] != b"\n":
            raise Problem(f"{where} has no line feed after its {length} bytes")
        if fingerprint(seed) != record.group(1).decode():
            raise Problem(f"{where} has the hash {fingerprint(seed)}, not {record.group(1).decode()}")
        if last is not None and last >= seed:
            raise Problem(f"{where} does not come after seed {number - 1} by its bytes")
        seeds[seed] = (record.group(3) or b"").decode()
        position += length + 1
        last = seed
    if position < len(data):
        raise Problem(f"{len(data) - position} bytes follow the last seed")
    return seeds


def pack_path(target, folder=HERE):
    return os.path.join(folder, "packed", f"{target}.seeds")


def targets(folder=HERE):
    return sorted(name.removesuffix(".seeds") for name in os.listdir(os.path.join(folder, "packed")))


def read(path):
    """The seeds of a pack's file; ends the program if it is bad."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return decode(data)
    except Problem as problem:
        sys.exit(f"{os.path.relpath(path)}: {problem}")


def write(path, seeds):
    """Replaces a pack's file as a whole."""
    data = encode(seeds)
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.replace(path + ".new", path)


def inputs(folder):
    """The files of a folder, by their names."""
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


def unpack(target, folder=HERE):
    """Lays all seeds of a target into `.build/fuzz/seeds/TARGET`, as fuzzers want them, and returns that folder."""
    out = os.path.join(ROOT, ".build", "fuzz", "seeds", target)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    for seed, name in read(pack_path(target, folder)).items():
        path = os.path.join(out, name or fingerprint(seed))
        if os.path.exists(path):
            sys.exit(f"two seeds of {target} are called {os.path.basename(path)}")
        with open(path, "wb") as file:
            file.write(seed)
    return out
