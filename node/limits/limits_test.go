package limits

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDiskIsMeasuredEachSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := New(Config{Memory: 100, Used: func() int64 { return 0 }, DiskReserve: 1000, Dir: ".", Log: slog.New(slog.NewTextHandler(&log, nil))})
		free, fault := uint64(5000), error(nil)
		l.MeasureBy(func() (uint64, uint64, error) { return free, 10_000, fault })
		ctx, cancel := context.WithCancel(t.Context())
		go l.Run(ctx)
		f := func(what string, now uint64, err error, full bool, words string) {
			t.Helper()
			synctest.Wait()
			log.Reset()
			free, fault = now, err
			time.Sleep(spaceInterval)
			synctest.Wait()
			failed := l.State().Error != ""
			if l.Full() != full || len(l.Alarms()) == 1 != full || failed != (err != nil) || !l.State().Last.Equal(time.Now()) {
				t.Errorf("%s: full %v, alarms %q, state %+v; want full %v, error %v", what, l.Full(), l.Alarms(), l.State(), full, err)
			}
			if got := log.String(); words == "" && got != "" || !strings.Contains(got, words) {
				t.Errorf("%s: logged %q, want %q", what, got, words)
			}
		}
		f("with space", 1000, nil, false, "")
		f("with too little", 999, nil, true, "nearly full")
		f("with no more", 0, nil, true, "")
		f("unreadable", 5000, errors.New("input/output error"), true, "can't be measured")
		f("still unreadable", 5000, errors.New("input/output error"), true, "")
		f("with space again", 5000, nil, false, "has space again")
		cancel()
		synctest.Wait()
		if l.State().Running {
			t.Error("it runs after its context has ended")
		}
	})
}
