package backup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/node/receipt"
)

func TestHoldingNamesBackupsAndTheirEnd(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	erased := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := Open(Config{To: "file:///auto", Every: day, Keep: 3})
	defer s.Close()
	listed := func(name string, created time.Time, finished bool) Listed {
		return Listed{Head: Head{Name: name, Created: created}, Finished: finished}
	}
	name := func(prefix string, at time.Time) string { return prefix + at.Format(backupNameFormat) }
	old, older, later := erased.Add(-time.Hour), erased.Add(-25*time.Hour), erased.Add(23*time.Hour)
	list := []Listed{
		listed("auto-2", old, true), listed("auto-1", older, true), listed("auto-3", later, true), listed("mine", old, true),
		listed(name("auto-", old), time.Time{}, false), listed(name("", later), time.Time{}, false), listed("torn", time.Time{}, false),
	}
	want := map[string]receipt.Backup{
		// auto-3 is the newest. The next makes auto-1 go, and the one after it auto-2.
		"auto-1": {Created: older, Goes: later.Add(day)}, "auto-2": {Created: old, Goes: later.Add(2 * day)},
		"mine": {Created: old}, name("auto-", old): {}, "torn": {},
	}
	got := map[string]receipt.Backup{}
	for _, b := range s.holding(list, "file:///auto", erased.Add(holdingSlack)) {
		if b.Folder != "file:///auto" {
			t.Errorf("folder %q", b.Folder)
		}
		of := b.Name
		b.Folder, b.Name = "", ""
		got[of] = b
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, b := range s.holding(list, "file:///by-hand", erased) {
		if !b.Goes.IsZero() {
			t.Errorf("%s of a folder without a schedule goes by itself", b.Name)
		}
	}
	if got := s.holding([]Listed{listed("auto-3", later, true)}, "file:///auto", later); len(got) != 0 {
		t.Errorf("a backup that was begun later is listed: %v", got)
	}
}
