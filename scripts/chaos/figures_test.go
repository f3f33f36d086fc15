package main

import (
	"errors"
	"testing"
	"time"

	"facet/scripts/chaos/traffic"
)

func TestGapsAndClassesAreMeasured(t *testing.T) {
	t.Parallel()
	const s = time.Second
	acked := []traffic.Ack{{At: s, Shard: 1}, {At: 2 * s, Shard: 2}, {At: 2 * s, Shard: 1}, {At: 5 * s, Shard: 1}, {At: 6 * s, Shard: 2}, {At: 7 * s, Shard: 1}, {At: 30 * s, Shard: 2}}
	for _, c := range []struct {
		shard int
		from  time.Duration
		want  time.Duration
	}{
		{1, 2 * s, 5 * s}, // nothing from the seventh second on
		{2, s, 5 * s},
		{2, 7 * s, gapWindow},
		{3, s, gapWindow},
	} {
		if got := gapAfter(acked, c.shard, c.from, c.from+gapWindow); got != c.want {
			t.Errorf("shard %d after %s: %s, want %s", c.shard, c.from, got, c.want)
		}
	}
	windows := []window{{fault: "kill", from: s, to: 3 * s, alone: true, placed: placed{led: []int{1}}}, {fault: "loss", from: 3 * s, to: 4 * s}}
	reads := []traffic.Reading{{Call: 0, End: s / 2}, {Call: s, End: 2 * s, Refused: 1}, {Call: 2 * s, End: 40 * s}}
	got := classes(windows, acked, reads, time.Minute)
	want := []Class{
		{Fault: "kill", Count: 1, Gaps: 1, GapP50: 1000, GapMax: 1000, Searches: 2, SearchP50: 1000, SearchP99: 1000, SearchMax: 38000, Refused: 1, Late: 1},
		{Fault: "calm", Searches: 1, SearchP50: 500, SearchP99: 500, SearchMax: 500},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestUnbridgedLinkIsAnError(t *testing.T) {
	t.Parallel()
	const s = time.Second
	alone := window{fault: bridgeName, from: 10 * s, to: 20 * s, alone: true}
	f := func(w window, began time.Duration, bad bool) {
		t.Helper()
		err := unbridged([]window{w}, []traffic.Failure{{Began: began, Err: errors.New("500")}})
		if (err != nil) != bad {
			t.Errorf("a failure at %s: got %v", began, err)
		}
	}
	f(alone, 12*s, false)
	f(alone, 13*s, true)
	f(alone, 20*s, false)
	f(window{fault: bridgeName, from: 10 * s, to: 20 * s}, 13*s, false)
	f(window{fault: "kill", from: 10 * s, to: 20 * s, alone: true}, 13*s, false)
	for ended, bad := range map[time.Duration]bool{0: true, 5 * s: false} {
		before := window{fault: "mute", from: -s, to: ended, alone: true}
		err := unbridged([]window{before, alone}, []traffic.Failure{{Began: 13 * s, Err: errors.New("500")}})
		if (err != nil) != bad {
			t.Errorf("after a fault that ended at %s: got %v", ended, err)
		}
	}
}

func TestMergesUnderFaultsAreCounted(t *testing.T) {
	t.Parallel()
	const s = time.Second
	windows := []window{
		{fault: "kill", from: 10 * s, to: 12 * s, placed: placed{led: []int{1}, held: []int{1, 2}}},
		{fault: "pause", from: 20 * s, to: 22 * s, placed: placed{led: []int{3}, held: []int{3}}},
	}
	got := mergesOf(windows, []traffic.Merge{
		{Call: 1 * s, End: 6 * s, Shards: [2]int{1, 1}},
		{Call: 8 * s, End: 13 * s, Shards: [2]int{3, 1}},
		{Call: 8 * s, End: 13 * s, Shards: [2]int{2, 2}, Left: true},
		{Call: 8 * s, End: 13 * s, Shards: [2]int{3, 3}},
		{Call: 11 * s, End: 16 * s, Shards: [2]int{1, 1}},
		{Call: 18 * s, End: 23 * s, Shards: [2]int{3, 3}},
		{Call: 8 * s, Shards: [2]int{1, 1}, Left: true},
	})
	want := Merges{Ended: 6, TwoShards: 1, Left: 2, LeftEnded: 1, Faulty: 5, Killed: 2, Leader: 1}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
