package node_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"facet/node/nodetest"
	"facet/node/wire"
)

func TestLogWarnsOfExpiringCertificates(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		var log logLines
		cluster := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		n := cluster.Nodes[0].Node
		year := time.Now().Add(365 * 24 * time.Hour)
		f := func(before time.Duration, want int, level string) {
			t.Helper()
			log.take("")
			if warned := n.WarnOfExpiry(t.Context(), year.Add(-before)); warned != (want > 0) {
				t.Errorf("%s before the end: warned %v", before, warned)
			}
			got := log.take("facet cluster renew")
			if len(got) != want {
				t.Errorf("%s before the end: %d lines, want %d: %q", before, len(got), want, got)
			}
			for _, line := range got {
				if !strings.Contains(line, "level="+level) {
					t.Errorf("%s before the end: %q, want level %s", before, line, level)
				}
			}
		}
		f(31*24*time.Hour, 0, "")
		f(29*24*time.Hour, 2, "WARN")
		f(2*24*time.Hour, 2, "ERROR")
	})
}

func TestLoneNodeWarnsOnce(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 16}, func(t *testing.T, cluster *nodetest.Cluster) {
		eventually(t, cluster.Nodes[0].Node, "one warning", func(s wire.Status) bool { return len(s.Warnings) == 1 && warned(s, "one node") })
	})
}
