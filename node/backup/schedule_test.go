package backup

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/must"
	"facet/raftfsm/metafsm"
)

func TestStoreDecidesIfBackupIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := Open(Config{To: "file://" + dir, Every: 24 * time.Hour, Keep: 2, Log: slog.New(slog.DiscardHandler)})
		defer s.Close()
		add := func(name string, finished bool) {
			t.Helper()
			must.Do(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			part := filepath.Join(dir, name, "part")
			if finished {
				part = filepath.Join(dir, name, manifestName)
			}
			head, err := json.Marshal(Head{Format: Format, Name: name, Created: time.Now(), Level: metafsm.Level})
			must.Do(t, err)
			file := manifestFile{Head: head}
			file.Digest = file.digest()
			raw, err := json.Marshal(file)
			must.Do(t, err)
			must.Do(t, os.WriteFile(part, raw, 0o600))
		}
		now := func() string { return scheduledPrefix + time.Now().UTC().Format(backupNameFormat) }
		var last time.Time
		f := func(what, want string) {
			t.Helper()
			name, due, err := s.due(t.Context())
			if !s.Last().Equal(last) {
				t.Errorf("%s: the last backup is of %s, want %s", what, s.Last(), last)
			}
			if err != nil || name != want || due != (want != "") {
				t.Errorf("%s: due %v under %q, %v; want %q", what, due, name, err, want)
			}
		}
		f("without any", now())
		add("by-hand", true)
		f("with one by hand", now())
		begun := now()
		add(begun, false)
		time.Sleep(24*time.Hour - time.Second)
		f("with one that was begun", begun)
		time.Sleep(time.Second)
		f("with one that was begun long ago", now())
		last = time.Now()
		add(now(), true)
		f("with a new one", "")
		time.Sleep(24*time.Hour - time.Second)
		f("a moment before the next", "")
		time.Sleep(time.Second)
		f("when it is a day old", now())
	})
}
