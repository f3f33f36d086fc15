#!/usr/bin/env python3
"""Measures how fast an exported audit log is verified, beside hashing the same entries alone.

It makes a log of --entries entries in a temporary folder (400 bytes each: 2,000,000 take 880 MB),
hashes each entry in a loop, runs verify.py and "facet audit verify" on one core, and removes the
folder. Seconds are those of the processor, so that other work on the machine counts little. They
are linear in the entries: the last column says what ten million take.
"""
import argparse
import base64
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

HERE = os.path.dirname(os.path.abspath(__file__))
ENTRY, WIDTH, GOAL, TEN_MILLION = 400, 256, 60, 10_000_000
sha256 = hashlib.sha256


def path(folder, level, n, width):
    name = f"{n % 1000:03d}"
    while n >= 1000:
        n //= 1000
        name = f"x{n % 1000:03d}/{name}"
    name = os.path.join(folder, "tile", str(level), name + (f".p/{width}" if width < WIDTH else ""))
    os.makedirs(os.path.dirname(name), exist_ok=True)
    return name


def put(name, data):
    with open(name, "wb") as f:
        f.write(data)


def tree(hashes):
    """Returns the root of any number of hashes (RFC 6962, section 2.1)."""
    if len(hashes) == 1:
        return hashes[0]
    half = 1 << ((len(hashes) - 1).bit_length() - 1)
    return sha256(b"\x01" + tree(hashes[:half]) + tree(hashes[half:])).digest()


def make(folder, size):
    """Writes a log and returns its key."""
    filling, hashes = os.urandom(ENTRY - 8), []
    for first in range(0, size, WIDTH):
        entries = [i.to_bytes(8, "big") + filling for i in range(first, min(size, first + WIDTH))]
        put(path(folder, "entries", first // WIDTH, len(entries)), b"".join(len(e).to_bytes(2, "big") + e for e in entries))
        hashes += [sha256(b"\0" + e).digest() for e in entries]
    level, root = 0, None
    tops = []
    while hashes:
        tiles = [hashes[i:i + WIDTH] for i in range(0, len(hashes), WIDTH)]
        for n, tile in enumerate(tiles):
            put(path(folder, level, n, len(tile)), b"".join(tile))
        tops.append(tiles[-1] if len(tiles[-1]) < WIDTH else [])
        hashes, level = [tree(t) for t in tiles if len(t) == WIDTH], level + 1
    for rest in tops:  # each is a tree on the right of the larger ones
        while rest:
            n = len(rest) & -len(rest)
            left, rest = tree(rest[-n:]), rest[:-n]
            root = sha256(b"\x01" + left + root).digest() if root else left
    key, origin = Ed25519PrivateKey.generate(), "bench/audit"
    public = b"\x01" + key.public_key().public_bytes_raw()
    key_id = sha256(origin.encode() + b"\n" + public).digest()[:4]
    text = f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n"
    signature = base64.b64encode(key_id + key.sign(text.encode())).decode()
    put(os.path.join(folder, "checkpoint"), f"{text}\n\u2014 {origin} {signature}\n".encode())
    return f"{origin}+{key_id.hex()}+{base64.b64encode(public).decode()}"


def limit(folder, size):
    """Hashes each entry alone and returns the seconds."""
    began = time.process_time()
    for first in range(0, size, WIDTH):
        n = min(WIDTH, size - first)
        with open(path(folder, "entries", first // WIDTH, n), "rb") as f:
            bundle = f.read()
        for at in range(2, len(bundle), ENTRY + 2):
            sha256(bundle[at:at + ENTRY]).digest()
    return time.process_time() - began


def run(*command):
    """Runs a command on this core and returns its seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "GOMAXPROCS": "1"})
    if done.returncode or "VALID" not in done.stdout:
        sys.exit(f"bench: {command[0]}: {done.stdout}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--entries", type=int, default=2_000_000)
    about.add_argument("--facet", default=os.path.join(HERE, "..", "..", "bin", "facet"))
    args = about.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(prefix="facet-audit-") as folder:
        key = make(folder, args.entries)
        alone = limit(folder, args.entries)
        rows = [("hashing each entry, in Python", alone)]
        rows.append(("verify.py", run(sys.executable, os.path.join(HERE, "verify.py"), folder, "--key", key)))
        if os.path.exists(args.facet):
            rows.append(("facet audit verify", run(args.facet, "audit", "verify", folder, "--key", key)))
        again = limit(folder, args.entries)
    print(f"{args.entries} entries of {ENTRY} bytes, one core; hashing alone again: {again:.1f} s\n")
    print("| what | s of a core | entries/s | times hashing alone | 10 million |\n|---|---|---|---|---|")
    for what, s in rows:
        print(f"| {what} | {s:.1f} | {args.entries / s:,.0f} | {s / alone:.1f} | {s / args.entries * TEN_MILLION:.0f} s |")
    ten = rows[1][1] / args.entries * TEN_MILLION
    print(f"\ngoal: verify.py checks ten million entries in {GOAL} s: {'met' if ten <= GOAL else 'MISSED'} ({ten:.0f} s)")
    return 0 if ten <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
