package node

import (
	"context"
	"testing"

	"facet/internal/id"
	"facet/node/audit/entry"
	"facet/node/audit/reading"
)

// ClusterRecords returns the records of the cluster's own log.
func (n *Node) ClusterRecords(t *testing.T) []entry.Shown {
	t.Helper()
	q, err := reading.ParseQuery(map[string]string{"length": "200"})
	if err != nil {
		t.Fatal(err)
	}
	page, err := reading.Log{Service: n.router, Tenant: id.ClusterLog}.Page(context.WithoutCancel(t.Context()), q)
	if err != nil {
		t.Fatal(err)
	}
	var list []entry.Shown
	for _, r := range page.Records {
		list = append(list, r.Shown)
	}
	return list
}

// ClusterFile returns a file of the cluster's own log by its path.
func (n *Node) ClusterFile(t *testing.T, path string) []byte {
	t.Helper()
	content, _, err := reading.Log{Service: n.router, Tenant: id.ClusterLog}.File(t.Context(), path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return content
}

// Rounds records the rounds of erasure on this node's disk at each call of look.
func (n *Node) Rounds() (look func()) { return newRounds(n).look }

// RecordRefusals records the minutes before one.
func (n *Node) RecordRefusals(before int64) { n.recorder.RecordRefusals(before) }
