package node

import (
	"strings"
	"testing"
	"time"
)

func TestScheduleRefusesUnknownStore(t *testing.T) {
	t.Parallel()
	f := func(to string, want string) {
		t.Helper()
		err := Config{BackupTo: to, BackupEvery: time.Hour, BackupKeep: 1}.checkBackup()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", to, err, want)
		}
	}
	f("file:///copies", "")
	f("ftp://copies", "no object store of the kind ftp://")
}
