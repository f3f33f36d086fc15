package importing

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"facet.internal/client"
)

// 20 s of copies, then 25 photos a second.
func TestProgressOfFiveThousandPhotos(t *testing.T) {
	t.Parallel()
	const total, perPage, perSecond = 5000, 1000, 25
	var out bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		p := newProgress(&out, total)
		for range total {
			time.Sleep(20 * time.Second / total)
			p.copy()
		}
		p.show(Summary{}, make([]client.BulkRecord, perPage))
		var finished Summary
		for range total / perPage {
			page := make([]client.BulkRecord, perPage)
			for i := range page {
				page[i] = client.BulkRecord{Status: "Processed", RegisterStatus: "Success"}
				if i%500 == 0 {
					page[i].RegisterStatus = "Failed"
				}
				time.Sleep(time.Second / perSecond)
				p.show(finished, page)
			}
			for _, r := range page {
				finished.count(r)
			}
		}
	})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < 20 || len(lines) > 50 {
		t.Errorf("%d lines in 220 s, want 20 to 50", len(lines))
	}
	if want := "500 of 5000 photos copied to the object store"; lines[0] != want {
		t.Errorf("the first line is %q, want %q", lines[0], want)
	}
	if want := "56 of 5000 photos done, 1 failed, 4944 left (25.0 a second, 3m18s to go)"; lines[10] != want {
		t.Errorf("the first line of the job is %q, want %q", lines[10], want)
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, " 10 failed, ") || strings.ContainsAny(out.String(), "\r\x1b") {
		t.Errorf("the last line is %q", last)
	}
}

func TestProgressOfHoursWritesALineAMinute(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		p := newProgress(&out, 1e6)
		for range 10 * 3600 {
			time.Sleep(time.Second)
			p.copy()
		}
	})
	if lines := strings.Count(out.String(), "\n"); lines < 600 || lines > 640 {
		t.Errorf("%d lines in ten hours, want one a minute after the first ten minutes", lines)
	}
}
