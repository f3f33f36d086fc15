package snapshots

import (
	"testing"
	"time"

	"facet/raftfsm/health"
	"facet/raftfsm/logstore"
	"facet/raftfsm/logstore/disktest"
)

// openLog opens an empty log.
func openLog(t testing.TB) (*logstore.Log, *health.Monitor) {
	t.Helper()
	d, err := disktest.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	h := health.New(time.Second, time.Minute)
	t.Cleanup(h.Close)
	return logstore.NewLog(d, h), h
}
