package machine

import (
	"testing"
	"time"
)

func TestBusyLeavesOutWhatIsIdle(t *testing.T) {
	t.Parallel()
	got, err := parseStat("cpu  100 200 300 400 500 10 20 30 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
	want := Busy{All: 1560 * time.Second / ticks, Others: 660 * time.Second / ticks}
	if err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"", "cpu 1 2 3", "cpu 1 2 3 x 5 6 7 8"} {
		if _, err := parseStat(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
