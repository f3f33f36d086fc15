package raftfsm

import (
	"testing"
	"time"

	"facet/raftfsm/health"
	"facet/raftfsm/logstore"
)

// openLog opens a log in dir, without a group.
func openLog(t testing.TB, dir string) (*logstore.Log, *health.Monitor) {
	t.Helper()
	d, err := openUnsynced(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	h := health.New(time.Second, time.Minute)
	t.Cleanup(h.Close)
	return logstore.NewLog(d, h), h
}
