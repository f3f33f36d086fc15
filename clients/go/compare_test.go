package client_test

import (
	"testing"

	"facet.internal/client"
)

func TestScoreFindsEachPair(t *testing.T) {
	t.Parallel()
	c := client.Comparison{Scores: []*int{new(10), new(20), nil, new(30), new(31), new(32)}}
	f := func(i, j int, want *int) {
		t.Helper()
		for _, got := range []*int{c.Score(i, j), c.Score(j, i)} {
			if (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Errorf("%d, %d: got %v, want %v", i, j, got, want)
			}
		}
	}
	f(0, 1, new(10))
	f(0, 2, new(20))
	f(1, 2, nil)
	f(0, 3, new(30))
	f(1, 3, new(31))
	f(2, 3, new(32))
	f(2, 2, nil)
	f(0, 4, nil)
}
