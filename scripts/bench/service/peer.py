"""FAISS's quickest product quantizer behind plain HTTP, the peer of bench-service.

usage: peer.py ROWS DIM CORES

ROWS is a file of float32, DIM numbers each. When the index is built, the port is printed. Then
POST /K/BREADTH with a probe as float32 is answered with the K best rows as JSON. BREADTH is how many
times K candidates are compared again exactly.

One thread reads and writes, and one searches. A search takes all probes that wait, on all cores:
FAISS is quicker with many probes at once, and so nobody waits for a core that is free.
"""
import asyncio
import sys
import threading

import faiss
import numpy as np

TRAINED, BATCH = 100_000, 64


class Searches:
    """The probes that wait, and the thread that searches for them."""

    def __init__(self, index, loop):
        self.index, self.loop = index, loop
        self.waiting, self.some = [], threading.Condition()
        threading.Thread(target=self.run, daemon=True).start()

    def put(self, search):
        with self.some:
            self.waiting.append(search)
            self.some.notify()

    def run(self):
        while True:
            with self.some:
                while not self.waiting:
                    self.some.wait()
                batch, self.waiting = self.waiting[:BATCH], self.waiting[BATCH:]
            probes = np.frombuffer(b"".join(probe for _, probe, _, _ in batch), dtype=np.float32).reshape(len(batch), -1)
            k = max(k for _, _, k, _ in batch)
            self.index.k_factor = max(breadth for _, _, _, breadth in batch)
            scores, rows = self.index.search(probes, k)
            answers = [(client, answer(scores[i, :n], rows[i, :n])) for i, (client, _, n, _) in enumerate(batch)]
            self.loop.call_soon_threadsafe(send, answers)


def answer(scores, rows):
    body = b'{"rows":%s,"scores":%s}' % (str(rows.tolist()).encode(), str(scores.tolist()).encode())
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def send(answers):
    for client, text in answers:
        client.transport.write(text)


class Client(asyncio.Protocol):
    """A connection with one request at a time."""

    def __init__(self, searches):
        self.searches, self.got = searches, b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.got += data
        end = self.got.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.got[:end]
        length = int(head[head.index(b"Content-Length: ") + 16:].split(b"\r\n", 1)[0])
        if len(self.got) < end + 4 + length:
            return
        _, k, breadth = head.split(b" ", 2)[1].split(b"/")
        probe, self.got = self.got[end + 4:end + 4 + length], self.got[end + 4 + length:]
        self.searches.put((self, probe, int(k), int(breadth)))


async def main():
    dim, cores = int(sys.argv[2]), int(sys.argv[3])
    rows = np.memmap(sys.argv[1], dtype=np.float32).reshape(-1, dim)
    faiss.omp_set_num_threads(cores)
    index = faiss.index_factory(dim, f"PQ{dim // 2}x4fs,RFlat", faiss.METRIC_INNER_PRODUCT)
    index.train(np.ascontiguousarray(rows[:TRAINED]))
    for i in range(0, len(rows), TRAINED):
        index.add(np.ascontiguousarray(rows[i:i + TRAINED]))
    loop = asyncio.get_running_loop()
    searches = Searches(index, loop)
    server = await loop.create_server(lambda: Client(searches), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
