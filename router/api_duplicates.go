package router

import (
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/shard/job"
)

const (
	// DifferentMax is the most pairs of different subjects of a gallery.
	DifferentMax     = job.DifferentMax
	purposeDifferent = "different"
	purposeCases     = "cases"
)

// ItemsName returns the name of the job that has the pairs of different subjects of a gallery, or its cases.
// The gallery's first shard is home.
func ItemsName(g metafsm.Gallery, kind job.Kind, home id.Shard) shardfsm.JobName {
	purpose := purposeDifferent
	if kind == job.Cases {
		purpose = purposeCases
	}
	batch := id.Batch{UUID: id.Derive(g.IDKey[:], purpose, id.Operation{}, home)}
	return shardfsm.JobName{Gallery: g.ID, Generation: g.Generation, Batch: batch}
}

// Limits of comparisons of galleries with themselves.
const (
	// DuplicatesMax is how many pairs end a comparison.
	DuplicatesMax = 100_000
	// DuplicatesPageMax is the most pairs in a page.
	DuplicatesPageMax = 1000
	// DuplicatesThresholdDefault is the default threshold. Below DuplicatesThresholdMin the pairs are of
	// people who merely look alike.
	DuplicatesThresholdDefault = 9000
	DuplicatesThresholdMin     = 7000
)

// Duplicates is how far the comparison of a gallery with itself is, and a page of the pairs that it
// has found.
type Duplicates struct {
	Batch     id.Batch
	Threshold int
	// Blocks is how many parts there are, and Compared how many of them are done. There are no pairs
	// before all are.
	Blocks, Compared int
	LastUpdated      time.Time
	// Found is how many pairs were found, those of subjects that went since included.
	Found int
	// Incomplete reports that pairs are missing: there were too many, or Reason.
	Incomplete bool
	Reason     string
	// Different is how many pairs are left out because somebody found them to be different people.
	Different int
	// Groups is how many groups the pairs form: whoever is in a pair with somebody is in one group.
	Groups int
	Pairs  []DuplicatePair
	Next   string // continues the list; empty at its end
}

// DuplicatePair is two subjects that may show one person.
type DuplicatePair struct {
	// Group counts from 1 on.
	Group, Score int
	Subjects     [2]DuplicateSubject
}

// DuplicateSubject is a subject with its note, or nil.
type DuplicateSubject struct {
	Subject id.Subject
	Note    *Note
}
