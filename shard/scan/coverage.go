package scan

import (
	"math/bits"
	"sync/atomic"
)

// Coverage is what a search went through in a slice. The search notes the rows as it scans them, a
// bit for each slot of the slice's matrix, and at its end counts those that are still there. So a row
// that the scan skipped is missing from the counts:
//
//	Searched + LeftOut = Active   unless something is wrong
//
// Each search needs a Coverage of its own.
type Coverage struct {
	// Index is that of the last command of the group's log in the state that was searched.
	Index uint64
	// Active is the number of active events in that state, by the slice's list of entries.
	Active int
	// Searched counts the rows that the search compared, or excluded by their bounds. LeftOut counts
	// those that it left out because they have none of its tags.
	Searched, LeftOut int

	searched, leftOut noted
}

// noted has a bit for each slot.
type noted []uint64

const slotsPerWord = 64

// grow makes room for this many slots.
func (n *noted) grow(slots int) {
	if more := (slots+slotsPerWord-1)/slotsPerWord - len(*n); more > 0 {
		*n = append(*n, make([]uint64, more)...)
	}
}

// Reset forgets the rows, for another scan of a matrix with this many slots.
func (c *Coverage) Reset(slots int) {
	clear(c.searched)
	clear(c.leftOut)
	c.Searched, c.LeftOut = 0, 0
	c.searched.grow(slots)
}

// Note notes the rows that are searched, from slot first on, 64 to a word. The slots of each word lie in
// one word of the matrix.
func (c *Coverage) Note(first int, searched []uint64) {
	c.searched.grow(first + len(searched)*slotsPerWord)
	i, shift := first/slotsPerWord, first%slotsPerWord
	to := c.searched[i:][:len(searched)]
	for n, word := range searched {
		to[n] |= word << shift
	}
}

// LeaveOut notes the rows of one word that are left out.
func (c *Coverage) LeaveOut(first int, rows uint64) {
	c.leftOut.grow(first + slotsPerWord)
	c.leftOut[first/slotsPerWord] |= rows << (first % slotsPerWord)
}

// Put notes the row that is in a slot now, whatever was there before.
func (c *Coverage) Put(slot int, searched bool) {
	c.searched.grow(slot + 1)
	c.leftOut.grow(slot + 1)
	i, bit := slot/slotsPerWord, uint64(1)<<(slot%slotsPerWord)
	c.searched[i] &^= bit
	c.leftOut[i] &^= bit
	if searched {
		c.searched[i] |= bit
	} else {
		c.leftOut[i] |= bit
	}
}

// Count counts those rows that are in the slots from first on now, 64 to a word.
func (c *Coverage) Count(first int, live []atomic.Uint64) {
	shift := first % slotsPerWord
	for n := range live {
		word := live[n].Load()
		i := first/slotsPerWord + n
		if i < len(c.searched) {
			searched := c.searched[i] >> shift & word
			c.Searched += bits.OnesCount64(searched)
			word &^= searched
		}
		if i < len(c.leftOut) {
			c.LeftOut += bits.OnesCount64(c.leftOut[i] >> shift & word)
		}
	}
}
