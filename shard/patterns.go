package shard

import (
	"encoding/binary"
	"slices"
	"strings"

	"facet/shard/scan"
)

// patterns number the tags of subjects all of whose events have tags. A search by tags may use the
// template of a subject only if each of its events matches. Whether it does is the same for all
// subjects of one pattern, so a row of a mean has the number of its pattern in the place of tags.
//
//	events with tags {3}, {3, 9} and events with tags {3, 9}, {3}: one pattern
type patterns struct {
	byText map[string]*pattern
	// byNumber has the patterns, each at its number less 1; free numbers have nil.
	byNumber []*pattern
	free     []uint32
}

type pattern struct {
	number uint32
	text   string
	sets   [][]uint32 // the tags of each event, distinct
	uses   int
}

// noPattern matches nothing: numbers begin at 1.
const noPattern = 0

// take returns the tags for a row with these events: the number of its pattern, or nothing if one of
// the events has no tags. The caller releases them.
func (p *patterns) take(events []*entry) []uint32 {
	sets := make([][]uint32, 0, len(events))
	for _, e := range events {
		if len(e.Tags) == 0 {
			return nil
		}
		set := slices.Clone(e.Tags)
		slices.Sort(set)
		sets = append(sets, slices.Compact(set))
	}
	slices.SortFunc(sets, slices.Compare)
	sets = slices.CompactFunc(sets, slices.Equal)
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
		p.byText[found.text], p.byNumber[found.number-1] = found, found
	}
	found.uses++
	return []uint32{found.number}
}

// number returns a number that no pattern has.
func (p *patterns) number() uint32 {
	if n := len(p.free); n > 0 {
		number := p.free[n-1]
		p.free = p.free[:n-1]
		return number
	}
	p.byNumber = append(p.byNumber, nil)
	return uint32(len(p.byNumber))
}

// release takes back what take returned.
func (p *patterns) release(tags []uint32) {
	if len(tags) == 0 {
		return
	}
	at := p.byNumber[tags[0]-1]
	if at.uses--; at.uses > 0 {
		return
	}
	delete(p.byText, at.text)
	p.byNumber[at.number-1] = nil
	p.free = append(p.free, at.number)
}

// matching returns the tags with which a search by tags finds rows all of whose events match. For a
// search without tags it returns none.
func (p *patterns) matching(tags []uint32) []uint32 {
	if len(tags) == 0 {
		return nil
	}
	list := []uint32{noPattern}
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
