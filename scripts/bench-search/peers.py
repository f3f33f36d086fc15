"""Times the peers for bench-search: a line of JSON in, a line of JSON out.

First line: {"rows": file, "dim": d, "index": name}; then {"probes": file, "k": k,
"batch": b, "rounds": r} gives {"ms": [per query, one a round], "ids": [[...]]}.
"""
import json
import sys
import time

import numpy as np


def read(name, dim):
    return np.fromfile(name, dtype=np.float32).reshape(-1, dim)


def faiss_flat(rows):
    import faiss
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)
    return index.search


def faiss_sq8(rows):
    import faiss
    faiss.omp_set_num_threads(1)
    index = faiss.IndexScalarQuantizer(rows.shape[1], faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
    index.train(rows[:100_000])
    index.add(rows)
    return index.search


def faiss_pq(rows):
    import faiss
    faiss.omp_set_num_threads(1)
    index = faiss.index_factory(rows.shape[1], f"PQ{rows.shape[1] // 2}x4fs,RFlat", faiss.METRIC_INNER_PRODUCT)
    index.train(rows[:100_000])
    index.add(rows)
    index.k_factor = 50
    return index.search


def sgemm(rows):
    out = {}

    def search(probes, k):
        n = len(probes)
        if n not in out:
            out[n] = np.empty((n, len(rows)), dtype=np.float32)
        np.dot(probes, rows.T, out=out[n])
        return None, np.zeros((n, 0), dtype=np.int64)
    return search


def graph(ef):
    def make(rows):
        import faiss
        faiss.omp_set_num_threads(1)
        index = faiss.IndexHNSWFlat(rows.shape[1], 16, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = 100
        index.add(rows)
        index.hnsw.efSearch = ef
        return index.search
    return make


def usearch(ef):
    def make(rows):
        from usearch.index import Index
        index = Index(ndim=rows.shape[1], metric="ip", dtype="f32", connectivity=16, expansion_add=100, expansion_search=ef)
        index.add(np.arange(len(rows)), rows, threads=1)

        def search(probes, k):
            found = index.search(probes, k, threads=1)
            return found.distances, found.keys.astype(np.int64).reshape(len(probes), -1)
        return search
    return make


PEERS = {"flat": faiss_flat, "sq8": faiss_sq8, "pq": faiss_pq, "sgemm": sgemm}
GRAPHS = {"hnsw": graph, "usearch": usearch}  # with the breadth of the search behind


def main():
    first = json.loads(sys.stdin.readline())
    name = first["index"]
    begin = time.perf_counter()
    graphs = [make(int(name.removeprefix(word))) for word, make in GRAPHS.items() if name.startswith(word)]
    peer = graphs[0] if graphs else PEERS[name]
    search = peer(read(first["rows"], first["dim"]))
    print(json.dumps({"build": time.perf_counter() - begin}), flush=True)
    for line in sys.stdin:
        q = json.loads(line)
        probes = read(q["probes"], first["dim"])
        batch, ms, ids = q["batch"], [], []
        for r in range(q["rounds"]):
            ids = []
            begin = time.perf_counter()
            for i in range(0, len(probes), batch):
                ids.extend(search(probes[i:i + batch], q["k"])[1].tolist())
            ms.append((time.perf_counter() - begin) * 1e3 / max(len(ids), 1))
        print(json.dumps({"ms": ms, "ids": ids}), flush=True)


if __name__ == "__main__":
    main()
