package reviews

import (
	"bytes"
	"cmp"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/shard/job"
)

func admits(f router.CaseFilter, s job.CaseState) bool {
	return f == router.AnyCase || (f == router.OpenCases) == (s == job.CaseOpen)
}

func caseNotFound() error { return router.Errorf(router.NotFound, "", "there is no case with this id") }

func caseClosed(c *job.Case) error {
	return router.Errorf(router.InvalidRequest, router.ReasonCaseClosed, "the case was closed before, as %s", router.StateName(c.State))
}

// casePlace is the place of a case in the order of all.
type casePlace struct {
	Created int64   `cbor:"1,keyasint"`
	Case    id.UUID `cbor:"2,keyasint"`
}

func placeOf(c job.Case) casePlace { return casePlace{c.Created, c.ID} }

func (p casePlace) compare(q casePlace) int {
	return cmp.Or(cmp.Compare(p.Created, q.Created), bytes.Compare(p.Case[:], q.Case[:]))
}

// openCaseQuery asks to open a case for Days.
type openCaseQuery struct {
	Name  shardfsm.JobName  `cbor:"1,keyasint"`
	Case  job.Case          `cbor:"2,keyasint"`
	Days  int               `cbor:"3,keyasint"`
	Share shardfsm.JobShare `cbor:"4,keyasint,omitzero"`
}

// openCaseAnswer has the id of the case, or none if there is no room.
type openCaseAnswer struct {
	Case id.UUID `cbor:"1,keyasint,omitzero"`
}

// decideQuery adds a verdict, whose time the leader sets.
type decideQuery struct {
	Name    shardfsm.JobName  `cbor:"1,keyasint"`
	Case    id.UUID           `cbor:"2,keyasint"`
	Verdict job.Verdict       `cbor:"3,keyasint"`
	Share   shardfsm.JobShare `cbor:"4,keyasint,omitzero"`
}

// listCasesQuery asks for cases after a place, or for one case.
type listCasesQuery struct {
	Name   shardfsm.JobName  `cbor:"1,keyasint"`
	Filter router.CaseFilter `cbor:"2,keyasint,omitempty"`
	After  casePlace         `cbor:"3,keyasint,omitzero"`
	Length int               `cbor:"4,keyasint"`
	Only   id.UUID           `cbor:"5,keyasint,omitzero"`
}

// listCasesAnswer is a page of cases. Total counts all that the filter admits, and More reports that others
// follow.
type listCasesAnswer struct {
	Cases []job.Case `cbor:"1,keyasint,omitempty"`
	Total int        `cbor:"2,keyasint"`
	More  bool       `cbor:"3,keyasint,omitempty"`
}
