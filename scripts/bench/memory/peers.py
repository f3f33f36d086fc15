"""Prints what a row takes of the memory of this process in indexes of FAISS, in bytes: a line of JSON.

usage: peers.py ROWS DIM
"""
import json
import resource
import sys

import faiss
import numpy as np

BLOCK = 50_000
INDEXES = {"Flat": "Flat", "PQ, certifies nothing": "PQ{half}x4fs", "PQ with refinement": "PQ{half}x4fs,RFlat"}


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def block(dim):
    rows = np.random.default_rng(1).standard_normal((BLOCK, dim), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def main():
    n, dim = int(sys.argv[1]), int(sys.argv[2])
    rows, bytes_of = block(dim), {}
    for name, factory in INDEXES.items():
        index = faiss.index_factory(dim, factory.format(half=dim // 2), faiss.METRIC_INNER_PRODUCT)
        if not index.is_trained:
            index.train(rows)
        index.add(rows)  # what is made once is there
        before, first = resident(), index.ntotal
        while index.ntotal < n:
            index.add(rows[:n - index.ntotal])
        bytes_of[name] = (resident() - before) / (n - first)
        del index
    print(json.dumps(bytes_of))


if __name__ == "__main__":
    main()
