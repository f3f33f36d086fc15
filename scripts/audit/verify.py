#!/usr/bin/env python3
"""Verifies an exported audit log of facet, or any log in the form of C2SP's tlog-tiles.

It recomputes the hash of each entry, each tile and the root (RFC 6962), and checks the signature.
With a checkpoint that a witness has cosigned, the log must contain that tree. Entries past their
retention are there as hashes only: --expired says how many first ones may be. Signatures need the package
cryptography; without it, --unsigned checks the rest. Exit status: 0 valid, 1 not valid, 2 wrong usage.
"""
import argparse
import base64
import hashlib
import os
import sys

Fault = type("Fault", (Exception,), {})  # what is wrong, in one sentence
try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    Ed25519PublicKey, InvalidSignature = None, Fault

WIDTH, HASH, sha256 = 256, 32, hashlib.sha256
BUNDLE_MAX, NOTE_MAX, FAULTS_MAX = WIDTH * (2 + 65535), 64 << 10, 100


def decode(text):
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:  # bits at its end that count nothing
        raise ValueError("not the usual form of base64")
    return data


def read(folder, path, limit):
    name = os.path.join(folder, path)
    if not os.path.isfile(name) or os.path.getsize(name) > limit:
        raise Fault(f"{path}: there is no file of at most {limit} bytes")
    with open(name, "rb") as f:
        return f.read(limit)


def tile_path(level, n, width):
    name = f"{n % 1000:03d}"
    while n >= 1000:
        n //= 1000
        name = f"x{n % 1000:03d}/{name}"
    return f"tile/{level}/{name}" + (f".p/{width}" if width < WIDTH else "")


def parse_key(text, kind):
    """Returns the name, the key id, the kind and the public key of a verifier key."""
    try:
        name, key_id, rest = text.strip().split("+", 2)
        data = decode(rest)
        if data[0] != kind or len(data) != 1 + HASH or sha256(name.encode() + b"\n" + data).hexdigest()[:8] != key_id:
            raise ValueError
    except (ValueError, IndexError):
        raise Fault(f"the key {text.partition('+')[0]!r}+… can't be read: a public one has the form NAME+HASH+KEY") from None
    return name, bytes.fromhex(key_id), kind, data[1:]


def open_checkpoint(data, *keys):
    """Returns origin, size and root of a checkpoint that all keys have signed. The first is the log's."""
    try:
        text, _, lines = data.decode().rpartition("\n\n")
        origin, size, root = text.split("\n")
        if str(int(size)) != size or int(size) < 0 or len(decode(root)) != HASH or not lines.endswith("\n"):
            raise ValueError
        signatures = [line.split(" ") for line in lines[:-1].split("\n")]
        for name, key_id, kind, public in keys:
            mine = [s for dash, n, s in signatures if dash == "\u2014" and n == name and base64.b64decode(s)[:4] == key_id]
            if len(mine) != 1:
                raise Fault(f"checkpoint: {name} has not signed it")
            signature, signed = decode(mine[0])[4:], text + "\n"
            if kind == 4:  # a time, and the signature of time and text
                signature, signed = signature[8:], f"cosignature/v1\ntime {int.from_bytes(signature[:8], 'big')}\n{signed}"
            if Ed25519PublicKey:
                Ed25519PublicKey.from_public_bytes(public).verify(signature, signed.encode())
    except ValueError:
        raise Fault("checkpoint: it can't be read") from None
    except InvalidSignature:
        raise Fault(f"checkpoint: the signature of {name} is wrong") from None
    if origin != keys[0][0]:
        raise Fault(f"checkpoint: it is of the log {origin}, and the key is that of {keys[0][0]}")
    return origin, int(size), decode(root)


def subtree(hashes):
    """Returns the root of 1, 2, 4 … or 256 hashes."""
    while len(hashes) > 1:
        hashes = [sha256(b"\x01" + a + b).digest() for a, b in zip(hashes[::2], hashes[1::2])]
    return hashes[0]


def fold(hashes, root):
    """Returns the root of a tree that has complete subtrees of hashes, and another tree on their right."""
    while hashes:
        n = len(hashes) & -len(hashes)  # the smallest one
        left, hashes = subtree(hashes[-n:]), hashes[:-n]
        root = sha256(b"\x01" + left + root).digest() if root else left
    return root


def entry_hashes(bundle, n, path):
    hashes, at, end = [], 0, len(bundle)
    while at + 2 <= end and len(hashes) < n:
        start = at + 2
        at = start + (bundle[at] << 8 | bundle[at + 1])
        hashes.append(sha256(b"\0" + bundle[start:at]).digest())
    if at != end or len(hashes) != n:
        raise Fault(f"{path}: it must have {n} entries, and nothing else")
    return hashes


class Log:
    def __init__(self, folder, size, expired):
        self.folder, self.size, self.expired, self.faults, self.hash_only = folder, size, expired, [], 0

    def tile(self, level, n, width, below):
        """Returns the hashes of a tile, which must be those of the entries, or of the tiles below it."""
        path, bundle, first = tile_path(level, n, width), tile_path("entries", n, width), n * WIDTH
        data = read(self.folder, path, WIDTH * HASH)
        if len(data) != width * HASH:
            raise Fault(f"{path}: {len(data)} bytes, and it must have {width * HASH}")
        computed = below[first:first + width]
        if level == 0 and os.path.lexists(os.path.join(self.folder, bundle)):
            computed = entry_hashes(read(self.folder, bundle, BUNDLE_MAX), width, bundle)
        elif level == 0 and first < self.expired:
            self.hash_only += width
        elif level == 0:
            self.faults.append(f"{bundle}: it is missing; if the retention of its entries has passed, say so with --expired")
        if data == b"".join(computed):
            return computed
        stored = [data[i:i + HASH] for i in range(0, len(data), HASH)]
        for i in range(len(computed)):  # none, if the entries are past their retention
            what = f"its hash {i} is not that of {tile_path(level - 1, first + i, WIDTH)}" if level else f"its hash of entry {first + i} is another"
            if computed[i] != stored[i]:
                self.faults.append(f"{path}: {what}")
        return stored

    def roots(self, sizes):
        """Reads every tile, and returns the roots of the trees of these sizes."""
        below, level, count, roots = [], 0, self.size, dict.fromkeys(sizes)
        while count:
            above = []
            for n in range((count + WIDTH - 1) // WIDTH):
                hashes = self.tile(level, n, min(WIDTH, count - n * WIDTH), below)
                for size in sizes:  # the part of its tree that this tile has, and no tile above
                    full, rest = divmod(size >> (8 * level), WIDTH)
                    if full == n:
                        roots[size] = fold(hashes[:rest], roots[size])
                if len(hashes) == WIDTH:
                    above.append(subtree(hashes))
                if len(self.faults) > FAULTS_MAX:
                    raise Fault("and perhaps more")
            below, level, count = above, level + 1, count // WIDTH
        return {size: root or sha256().digest() for size, root in roots.items()}


def verify(folder, key, witness, witness_key, expired):
    key, seen, roots = parse_key(key, 1), None, {}
    origin, size, root = open_checkpoint(read(folder, "checkpoint", NOTE_MAX), key)
    if witness:
        if os.path.isdir(witness):
            witness = os.path.join(witness, sha256(origin.encode()).hexdigest(), "checkpoint")
        _, seen, seen_root = open_checkpoint(read("", witness, NOTE_MAX), key, parse_key(witness_key, 4))
        if seen > size:
            raise Fault(f"the witness has seen {seen} entries, and here are {size}: the end was cut, or this copy is older")
    log = Log(folder, size, expired)
    try:
        roots = log.roots({size, size if seen is None else seen})
    except Fault as fault:
        log.faults.append(str(fault))
    if not log.faults and roots[size] != root:
        log.faults.append(f"checkpoint: the tiles of its {size} entries give another root hash")
    if not log.faults and witness and roots[seen] != seen_root:
        log.faults.append(f"the witness has seen {seen} other entries: the log was forked or rewritten")
    if log.faults:
        raise Fault("\n".join(log.faults))
    print(f"VALID: {size} entries of {origin}, root {base64.b64encode(root).decode()}; {log.hash_only} are proven by hash only")


if __name__ == "__main__":
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("folder")
    about.add_argument("--key", required=True, help="the log's verifier key")
    about.add_argument("--witness", help="a cosigned checkpoint, or the folder of the witness")
    about.add_argument("--witness-key", help="the witness's verifier key")
    about.add_argument("--expired", type=int, default=0, help="how many of the first entries are past their retention, as the log's last record \"expire records\" says")
    about.add_argument("--unsigned", action="store_true", help="without cryptography: check no signature")
    args = about.parse_args()
    if bool(args.witness) != bool(args.witness_key):
        about.error("--witness and --witness-key go together")
    if not Ed25519PublicKey:
        print("verify.py: no signature is checked: pip install cryptography", file=sys.stderr)
        if not args.unsigned:
            sys.exit(2)
    try:
        verify(args.folder, args.key, args.witness, args.witness_key, args.expired)
    except Fault as fault:
        sys.exit(f"{fault}\nNOT VALID")
