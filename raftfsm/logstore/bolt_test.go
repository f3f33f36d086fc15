package logstore

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/must"
	"facet/raftfsm/health"
)

// planted is the text that tests look for in files.
var planted = []byte("nothing else in a folder has these bytes")

// has reports whether a file has the planted bytes.
func has(t testing.TB, dir, name string) bool {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	must.Do(t, err)
	return bytes.Contains(b, planted)
}

func TestRenewedLogDropsFreedPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := openBolt(dir, false)
	must.Do(t, err)
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	h := health.New(time.Second, time.Minute)
	defer h.Close()
	log, stable := &Log{disk: d, health: h}, &Stable{disk: d, health: h}
	for index := uint64(1); index <= 40; index++ {
		l := &raft.Log{Index: index, Term: 3, Type: raft.LogCommand, Data: []byte("kept")}
		if index <= 20 {
			l.Data = planted
		}
		must.Do(t, log.StoreLog(l))
	}
	must.Do(t, stable.SetTerm(3))
	must.Do(t, log.DeleteRange(1, 20))
	if !has(t, dir, File) || !log.freed.Load() {
		t.Fatal("the file forgets by itself: there is no need to renew it")
	}
	var work sync.WaitGroup
	work.Go(func() { // others write meanwhile
		for index := uint64(41); index <= 60; index++ {
			if err := log.StoreLog(&raft.Log{Index: index, Term: 3, Type: raft.LogNoop}); err != nil {
				t.Error(err)
			}
		}
	})
	must.Do(t, d.renew())
	work.Wait()
	if has(t, dir, File) {
		t.Error("the renewed file has what was cut off")
	}
	first, firstErr := log.FirstIndex()
	last, lastErr := log.LastIndex()
	if term := stable.Term(); first != 21 || last != 60 || term != 3 || firstErr != nil || lastErr != nil {
		t.Errorf("entries %d to %d, term %d; %v, %v", first, last, term, firstErr, lastErr)
	}
	if err := log.Verify(); err != nil {
		t.Error(err)
	}
}

func TestUnfinishedLogCopyIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, renewedFile), planted, 0o600))
	d, err := openBolt(dir, false)
	must.Do(t, err)
	must.Do(t, d.Close())
	if _, err := os.Stat(filepath.Join(dir, renewedFile)); err == nil {
		t.Error("it stays")
	}
}
