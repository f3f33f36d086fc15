//go:build ignore

// This is the peer: it is compiled in a checkout of commit 2f6d1c7, with that commit's kernel. It reads
// a line of JSON with the set, then one for each measurement, and answers each with a line.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"sync"
	"time"

	"facet/engine/score"
	"facet/shard/kernel"
	"facet/shard/scan"
)

type set struct {
	Rows     string
	Dim      int
	Points   []score.Point
	Spectrum []float64
}

type ask struct {
	Probes                     string
	Limit, Threshold, Together int
}

type answer struct {
	MS   float64
	Hits [][][2]int
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kernel of 2f6d1c7:", err)
		os.Exit(1)
	}
}

func run() error {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	var s set
	if err := in.Decode(&s); err != nil {
		return err
	}
	table, err := score.NewTable(s.Points)
	if err != nil {
		return err
	}
	arena := kernel.NewArena(0)
	if err := arena.Suit(s.Spectrum); err != nil {
		return err
	}
	m, err := kernel.New(arena, s.Dim)
	if err != nil {
		return err
	}
	if err := fill(m, &s); err != nil {
		return err
	}
	queue := kernel.NewQueue(m, table, runtime.GOMAXPROCS(0))
	for err := out.Encode(answer{}); err == nil; {
		var q ask
		if err = in.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		}
		var a answer
		if err == nil {
			a, err = search(queue, &q, s.Dim)
		}
		if err == nil {
			err = out.Encode(a)
		}
	}
	return err
}

func fill(m *kernel.Matrix, s *set) error {
	f, err := os.Open(s.Rows)
	if err != nil {
		return err
	}
	defer f.Close()
	in, raw, row := bufio.NewReaderSize(f, 1<<20), make([]byte, 4*s.Dim), make([]float32, s.Dim)
	for i := uint32(0); ; i++ {
		if _, err := io.ReadFull(in, raw); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		floats(row, raw)
		owner := new(kernel.Owner)
		binary.BigEndian.PutUint32(owner.Subject.UUID[:], i*2654435761)
		binary.BigEndian.PutUint32(owner.Event.UUID[:], i)
		if _, err := m.Add(owner, row); err != nil {
			return err
		}
	}
}

func floats(to []float32, raw []byte) {
	for i := range to {
		to[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
}

func search(queue *kernel.Queue, q *ask, dim int) (a answer, err error) {
	raw, err := os.ReadFile(q.Probes)
	if err != nil {
		return a, err
	}
	probes := make([][]float32, len(raw)/(4*dim))
	for i := range probes {
		probes[i] = make([]float32, dim)
		floats(probes[i], raw[4*dim*i:])
	}
	a.Hits = make([][][2]int, len(probes))
	failed := make([]error, len(probes))
	begin := time.Now()
	var work sync.WaitGroup
	for w := range q.Together {
		work.Go(func() {
			for i := w; i < len(probes); i += q.Together {
				var hits []scan.Hit
				hits, failed[i] = queue.Search(context.Background(), scan.Query{Probe: probes[i], Limit: q.Limit, Threshold: q.Threshold})
				for _, h := range hits {
					a.Hits[i] = append(a.Hits[i], [2]int{int(binary.BigEndian.Uint32(h.Event.UUID[:])), h.Score})
				}
			}
		})
	}
	work.Wait()
	a.MS = time.Since(begin).Seconds() * 1e3 / float64(len(probes))
	return a, errors.Join(failed...)
}
