package shard

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"facet/shard/scan"
)

// patterns number the tags of subjects whose events have different tags. A search by tags may use the
// template of a subject only if each of its events matches. Whether it does is the same for all
// subjects of one pattern, so a row of a mean has the number of its pattern in the place of tags.
// Where all events have the same tags, as in most subjects, the row has these tags instead.
//
//	events with tags {3, 9} and events with tags {9, 3}: no pattern, tags {3, 9}
//	events with tags {3}, {3, 9} and events with tags {3, 9}, {3}: one pattern
type patterns struct {
	byText map[string]*pattern
	// byNumber has the patterns, each at its number less firstPattern; free numbers have nil.
	byNumber []*pattern
	free     []uint32
	bytes    int64 // about the memory of all
}

type pattern struct {
	number uint32
	text   string
	sets   [][]uint32 // the tags of each event, distinct
	uses   int
}

const (
	// firstPattern is the least number of a pattern. A gallery counts its tags from 1, so they are
	// lower; rows with others have patterns.
	firstPattern uint32 = 1 << 31
	// noPattern matches nothing.
	noPattern uint32 = math.MaxUint32
	// patternBytes is the memory of a pattern without its tags, and setBytes of a set of tags without
	// these. The text and the sets have each tag once.
	patternBytes = 200
	setBytes     = 24
)

// take returns the tags for a row of events with these tags: their common tags, or the number of their
// pattern, or nothing if one of the events has no tags. The caller releases them.
func (p *patterns) take(events [][]uint32) []uint32 {
	sets := make([][]uint32, 0, len(events))
	for _, tags := range events {
		if len(tags) == 0 {
			return nil
		}
		set := slices.Clone(tags)
		slices.Sort(set)
		sets = append(sets, slices.Compact(set))
	}
	slices.SortFunc(sets, slices.Compare)
	sets = slices.CompactFunc(sets, slices.Equal)
	if len(sets) == 1 && slices.Max(sets[0]) < firstPattern {
		return sets[0]
	}
	var text strings.Builder
	for _, set := range sets {
		text.Write(binary.AppendUvarint(nil, uint64(len(set))))
		for _, tag := range set {
			text.Write(binary.BigEndian.AppendUint32(nil, tag))
		}
	}
	found := p.byText[text.String()]
	if found == nil {
		found = &pattern{number: p.number(), text: text.String(), sets: sets}
		if p.byText == nil {
			p.byText = make(map[string]*pattern)
		}
		p.byText[found.text], p.byNumber[found.number-firstPattern] = found, found
		p.bytes += found.bytes()
	}
	found.uses++
	return []uint32{found.number}
}

func (p *pattern) bytes() int64 {
	return patternBytes + int64(len(p.sets))*setBytes + 2*int64(len(p.text))
}

// number returns a number that no pattern has.
func (p *patterns) number() uint32 {
	if n := len(p.free); n > 0 {
		number := p.free[n-1]
		p.free = p.free[:n-1]
		return number
	}
	p.byNumber = append(p.byNumber, nil)
	return firstPattern + uint32(len(p.byNumber)-1)
}

// release takes back what take returned.
func (p *patterns) release(tags []uint32) {
	if len(tags) == 0 || tags[0] < firstPattern {
		return
	}
	at := p.byNumber[tags[0]-firstPattern]
	if at.uses--; at.uses > 0 {
		return
	}
	delete(p.byText, at.text)
	p.byNumber[at.number-firstPattern] = nil
	p.bytes -= at.bytes()
	p.free = append(p.free, at.number)
}

// matching returns the tags with which a search by tags finds rows all of whose events match: the
// given ones, which are some, and the numbers of patterns.
func (p *patterns) matching(tags []uint32) []uint32 {
	list := []uint32{noPattern}
	for _, tag := range tags {
		if tag < firstPattern {
			list = append(list, tag)
		}
	}
	for _, at := range p.byNumber {
		if at == nil {
			continue
		}
		misses := func(set []uint32) bool { return !scan.Tagged(set, tags) }
		if !slices.ContainsFunc(at.sets, misses) {
			list = append(list, at.number)
		}
	}
	return list
}
