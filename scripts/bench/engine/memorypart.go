package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"

	"facet/scripts/bench/cluster"
	"facet/scripts/bench/https"
	"facet/scripts/bench/load"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	memoryGoal    = 1.05 // × of the second quarter
	memoryReports = 20
	memoryPixels  = 250 * 250
)

// memoryPart sends many requests, searches and extractions in turn, and measures the
// node's memory.
func (b *bench) memoryPart(ctx context.Context) error {
	data, err := b.files.Portrait()
	if err != nil {
		return err
	}
	if data, err = resized(data, memoryPixels, 90); err != nil {
		return err
	}
	n, err := b.startNode(ctx, data)
	if err != nil {
		return err
	}
	return errors.Join(b.measureMemory(ctx, n, data), n.Close())
}

func (b *bench) measureMemory(ctx context.Context, n *node, data []byte) error {
	extract, err := https.NewOperation("/v1.1/face/extract", map[string]any{"faces": encoded(data)})
	if err != nil {
		return err
	}
	operations := []https.Operation{n.search, extract}
	fmt.Fprintf(b.out, "\nMemory over %d requests (search and extract in turn)\n", b.requests)
	table.Head(b.out, "requests", "MB")
	var used []float64
	for i := range memoryReports {
		t := n.source.Many(ctx, operations, perCore*runtime.GOMAXPROCS(0), b.requests/memoryReports)
		if err := errors.Join(ctx.Err(), t.AllServed()); err != nil {
			return err
		}
		mb, err := machine.Resident(n.PIDs()...)
		if err != nil {
			return err
		}
		used = append(used, mb)
		table.Line(b.out, strconv.Itoa((i+1)*b.requests/memoryReports), fmt.Sprintf("%.0f", mb))
	}
	const quarter = memoryReports / 4
	return table.Print(b.out, "Memory", []table.Row{{
		What: "last quarter / second quarter", Value: slices.Max(used[3*quarter:]) / slices.Max(used[quarter:2*quarter]), Unit: "×",
		Goal: memoryGoal, Most: true,
	}})
}

// node is a cluster of one node with the requests to it.
type node struct {
	*cluster.Cluster
	source           *load.Source
	client           *https.Client
	search, register https.Operation
}

func (b *bench) startNode(ctx context.Context, photo []byte) (n *node, err error) {
	n = new(node)
	if n.Cluster, err = b.files.Start(ctx, cluster.Shape{Nodes: 1}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Cluster.Close())
		}
	}()
	if n.client, err = https.New(n.Info()); err != nil {
		return nil, err
	}
	n.source = load.NewSource(n.client, n.client.URL)
	var err1, err2 error
	n.search, err1 = https.NewSearch(photo)
	n.register, err2 = https.NewOperation("/v1.1/subjects", map[string]any{"face": encoded(photo)})
	return n, errors.Join(n.client.Found("bench", 1_000_000), err1, err2)
}

// Close closes the connections and stops the node.
func (n *node) Close() error {
	n.source.Close()
	return n.Cluster.Close()
}
