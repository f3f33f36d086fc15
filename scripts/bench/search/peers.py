"""Times a peer for bench-search: a line of JSON in, a line of JSON out.

First line: {"rows": file, "n": rows of it, "dim": d, "index": name, "dir": folder for
graphs, "key": their name there, "basis": file, "cols": c} gives {"build": CPU seconds,
"bytes": a template}; then {"probes": file, "k": k, "batch": b, "breadth": e} gives
{"ms": [of each batch, a query], "ids": [[...]]}. The breadth is what a graph keeps in view, or how many
times k candidates "pq" compares again exactly.
"""
import json
import os
import sys
import time

import numpy as np

THREADS = os.cpu_count()
LINKS, CONSTRUCTION = 16, 100  # of graphs


def read(name, dim, n=-1):
    return np.fromfile(name, dtype=np.float32, count=n * dim if n > 0 else -1).reshape(-1, dim)


class Faiss:
    """An index of FAISS that scans."""

    def __init__(self, rows, first, factory, byte):
        import faiss
        faiss.omp_set_num_threads(1)
        self.index = faiss.index_factory(rows.shape[1], factory.format(d=rows.shape[1], half=rows.shape[1] // 2), faiss.METRIC_INNER_PRODUCT)
        if not self.index.is_trained:
            self.index.train(rows[:100_000])
        self.index.add(rows)
        self.refined = "RFlat" in factory
        self.bytes = byte(rows.shape[1])

    def search(self, probes, k, breadth):
        if self.refined:
            self.index.k_factor = breadth
        return self.index.search(probes, k)[1]


class InBasis(Faiss):
    """FAISS on what the model gives before its templates are reduced."""

    def __init__(self, rows, first, factory, byte):
        self.basis = read(first["basis"], first["cols"])
        super().__init__(rows @ self.basis, first, factory, byte)

    def search(self, probes, k, breadth):
        return super().search(probes @ self.basis, k, breadth)


class Sgemm:
    """All scores by one matrix product; nothing is selected."""

    def __init__(self, rows, first):
        self.rows, self.out, self.bytes = rows, {}, rows.shape[1] * 4

    def search(self, probes, k, breadth):
        n = len(probes)
        if n not in self.out:
            self.out[n] = np.zeros((n, len(self.rows)), dtype=np.float32)
        np.dot(probes, self.rows.T, out=self.out[n])
        return np.zeros((n, 0), dtype=np.int64)


class Hnswlib:
    def __init__(self, rows, first):
        import hnswlib
        self.index = hnswlib.Index(space="ip", dim=rows.shape[1])

        def make():
            self.index.init_index(len(rows), ef_construction=CONSTRUCTION, M=LINKS)
            self.index.add_items(rows, num_threads=THREADS)
            return self.index.save_index
        self.bytes, self.cpu = kept(first, make, lambda file: self.index.load_index(file, len(rows)), len(rows))
        self.index.set_num_threads(1)

    def search(self, probes, k, breadth):
        self.index.set_ef(max(breadth, k))
        return self.index.knn_query(probes, k, num_threads=1)[0]


class Usearch:
    """Its numbers have 16 bits, as it does by itself where the processor computes with
    them: it was faster so, and found no less."""

    def __init__(self, rows, first):
        from usearch.index import Index
        self.index = Index(ndim=rows.shape[1], metric="ip", dtype="bf16", connectivity=LINKS, expansion_add=CONSTRUCTION)

        def make():
            self.index.add(np.arange(len(rows)), rows, threads=THREADS)
            return self.index.save
        self.bytes, self.cpu = kept(first, make, self.index.load, len(rows))

    def search(self, probes, k, breadth):
        self.index.expansion_search = breadth
        return self.index.search(probes, k, threads=1).keys.astype(np.int64).reshape(len(probes), -1)


def kept(first, make, load, n):
    """Builds on all cores, or loads what an earlier run built; gives bytes and CPU seconds."""
    file = os.path.join(first["dir"], f'{first["key"]}-{LINKS}-{CONSTRUCTION}.graph')
    if not os.path.exists(file + ".json"):
        one = os.sched_getaffinity(0)
        os.sched_setaffinity(0, range(THREADS))
        begin = time.process_time()
        save = make()
        cpu = time.process_time() - begin
        save(file)
        os.sched_setaffinity(0, one)
        with open(file + ".json", "w") as out:
            json.dump(cpu, out)
    else:
        load(file)
    with open(file + ".json") as cpu:
        return os.path.getsize(file) / n, json.load(cpu)


PEERS = {
    "flat": lambda rows, first: Faiss(rows, first, "Flat", lambda d: 4 * d),
    "model": lambda rows, first: InBasis(rows, first, "Flat", lambda d: 4 * d),
    "fp16": lambda rows, first: Faiss(rows, first, "SQfp16", lambda d: 2 * d),
    "pq": lambda rows, first: Faiss(rows, first, "PQ{half}x4fs,RFlat", lambda d: d // 4 + 4 * d),
    "sgemm": Sgemm,
    "hnswlib": Hnswlib,
    "usearch": Usearch,
}


def main():
    first = json.loads(sys.stdin.readline())
    rows = read(first["rows"], first["dim"], first["n"])
    begin = time.process_time()
    peer = PEERS[first["index"]](rows, first)
    cpu = getattr(peer, "cpu", time.process_time() - begin)
    print(json.dumps({"build": cpu, "bytes": peer.bytes}), flush=True)
    for line in sys.stdin:
        q = json.loads(line)
        probes = read(q["probes"], first["dim"])
        batch, ids, ms = q["batch"], [], []
        for i in range(0, len(probes), batch):
            part = probes[i:i + batch]
            begin = time.perf_counter()
            found = peer.search(part, q["k"], q["breadth"])
            ms.append((time.perf_counter() - begin) * 1e3 / len(part))
            ids.extend(found.tolist())
        print(json.dumps({"ms": ms, "ids": ids}), flush=True)


if __name__ == "__main__":
    main()
