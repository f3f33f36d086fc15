package mutant

import "time"

// Clock returns a number that a bad clock might show, in milliseconds; for a
// planted bug.
func Clock() int64 { return time.Now().UnixNano() / 1000 % 1000 }

// Shuffle returns the elements of list in the order of a map; for a planted bug.
func Shuffle[T comparable](list []T) []T {
	set := make(map[T]bool, len(list))
	for _, v := range list {
		set[v] = true
	}
	shuffled := list[:0:0]
	for v := range set {
		shuffled = append(shuffled, v)
	}
	return shuffled
}
