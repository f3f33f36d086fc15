package reviews

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/shard/job"
	"facet/shard/seal"
)

// casesPerMinute is the most cases that an application opens in a minute.
const casesPerMinute = 60

// caseItem is an item of the job: a case and its sealed form, which is empty if the item is free.
type caseItem struct {
	job.Case
	sealed []byte
}

// caseIndex is the cases of one gallery. It is used during a turn of caseWork.looks.
type caseIndex struct {
	mark  job.Mark
	items []caseItem // by their index in the job
	byID  map[id.UUID]int
	open  map[caseSame]int // by what makes another doubt the same case
	order []int            // the items that are not free, the oldest case first
}

// caseSame makes another doubt the same case: its application and subject, and the name of its probe, which is the
// reference or a MAC.
type caseSame struct {
	application id.Application
	subject     id.Subject
	name        string
}

// sames returns what further doubts of a case have in common with it.
func sames(c *job.Case) (list []caseSame) {
	if c.Probe != [16]byte{} {
		list = append(list, caseSame{c.Application, c.Subject, "probe " + string(c.Probe[:])})
	}
	if c.Reference != "" {
		list = append(list, caseSame{c.Application, c.Subject, "reference " + c.Reference})
	}
	return list
}

// update takes over what a book has changed since the last call, and reports whether it has.
func (x *caseIndex) update(book *job.Book, name shardfsm.JobName, key *seal.Key) (changed bool, err error) {
	list, mark, all, err := book.Changes(job.Name(name), x.mark)
	switch {
	case errors.Is(err, job.ErrUnknown):
		all = true // the gallery has no case
	case err != nil:
		return false, err
	}
	if all {
		*x = caseIndex{byID: map[id.UUID]int{}, open: map[caseSame]int{}}
	}
	for _, rec := range list {
		item := caseItem{sealed: rec.Sealed}
		if len(rec.Sealed) > 0 {
			if item.Case, err = job.OpenCase(key, name.Gallery, name.Generation, rec.Sealed); err != nil {
				return false, err // the mark stays, so that the next call tries it again
			}
		}
		x.set(int(rec.Index), item)
	}
	x.mark = mark
	return all || len(list) > 0, nil
}

// set replaces an item, or adds one.
func (x *caseIndex) set(index int, item caseItem) {
	for len(x.items) <= index {
		x.items = append(x.items, caseItem{})
	}
	if old := &x.items[index]; len(old.sealed) > 0 {
		if x.byID[old.ID] == index { // else it is at another item now
			delete(x.byID, old.ID)
		}
		for _, s := range sames(&old.Case) {
			if x.open[s] == index { // else it is a later case's
				delete(x.open, s)
			}
		}
		at := x.find(index)
		x.order = slices.Delete(x.order, at, at+1)
	}
	x.items[index] = item
	if len(item.sealed) == 0 {
		return
	}
	x.byID[item.ID] = index
	if item.State == job.CaseOpen {
		for _, s := range sames(&item.Case) {
			if other, ok := x.open[s]; !ok || x.items[other].Expires <= item.Expires { // the other one may have expired
				x.open[s] = index
			}
		}
	}
	x.order = slices.Insert(x.order, x.find(index), index)
}

// find returns where an item is in the order, or would be.
func (x *caseIndex) find(index int) (at int) {
	at, _ = slices.BinarySearchFunc(x.order, index, func(a, b int) int {
		return cmp.Or(placeOf(x.items[a].Case).compare(placeOf(x.items[b].Case)), cmp.Compare(a, b))
	})
	return at
}

// known returns the case that a doubt belongs to: one of the same request, or an open one of the same application
// and subject with the same probe or reference.
func (x *caseIndex) known(c *job.Case, now int64) (id.UUID, bool) {
	if _, ok := x.byID[c.ID]; ok {
		return c.ID, true
	}
	for _, s := range sames(c) {
		if index, ok := x.open[s]; ok && x.items[index].At(now).State == job.CaseOpen {
			return x.items[index].ID, true
		}
	}
	return id.UUID{}, false
}

// mayOpen reports whether an application has opened fewer than casesPerMinute cases in the last minute.
func (x *caseIndex) mayOpen(app id.Application, now int64) bool {
	n := 0
	for _, index := range slices.Backward(x.order) {
		c := &x.items[index]
		if c.Created <= now-time.Minute.Milliseconds() || n == casesPerMinute {
			break
		}
		if c.Application == app {
			n++
		}
	}
	return n < casesPerMinute
}

// place returns where a new case goes: a free item, one more, or that of the case that was closed first. ok is
// false if all cases are open.
func (x *caseIndex) place(now int64) (index int, ok bool) {
	if free := slices.IndexFunc(x.items, func(i caseItem) bool { return len(i.sealed) == 0 }); free >= 0 {
		return free, true
	}
	if len(x.items) < router.CasesMax {
		return len(x.items), true
	}
	var first int64
	for i := range x.items {
		if c := x.items[i].At(now); c.State != job.CaseOpen && (!ok || c.Closed < first) {
			index, first, ok = i, c.Closed, true
		}
	}
	return index, ok
}

// at returns an item, which is free if there is none.
func (x *caseIndex) at(index int) caseItem {
	if index < len(x.items) {
		return x.items[index]
	}
	return caseItem{}
}

// page returns the cases that a query asks for.
func (x *caseIndex) page(q listCasesQuery, now int64) (a listCasesAnswer) {
	if !q.Only.IsZero() {
		if index, ok := x.byID[q.Only]; ok {
			a.Cases, a.Total = []job.Case{x.items[index].At(now)}, 1
		}
		return a
	}
	length := min(q.Length, router.CasesPageMax)
	for _, index := range x.order {
		c := x.items[index].At(now)
		if !admits(q.Filter, c.State) {
			continue
		}
		a.Total++
		switch {
		case placeOf(c).compare(q.After) <= 0:
		case len(a.Cases) < length:
			a.Cases = append(a.Cases, c)
		default:
			a.More = true
		}
	}
	return a
}

// figures returns how many cases are open, and when the oldest one was opened.
func (x *caseIndex) figures(now int64) (o openCases) {
	for _, index := range x.order {
		if c := x.items[index].At(now); c.State == job.CaseOpen {
			if o.number++; o.number == 1 {
				o.oldest = c.Created
			}
		}
	}
	return o
}

// openCases are how many cases of a gallery are open, and when the oldest one was opened.
type openCases struct {
	number int
	oldest int64
}
