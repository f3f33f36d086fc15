package shardfsm

import (
	"facet/internal/id"
	"facet/raftfsm/command"
	"facet/shard/job"
)

// JobName names a batch of a gallery.
type JobName struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Batch      id.Batch   `cbor:"3,keyasint"`
}

const codeBeginJob = 32

// BeginJobOp is the command BeginJob.
var BeginJobOp = command.Op[BeginJob, JobAnswer]{Code: codeBeginJob, Version: 1}

// BeginJob makes a batch that nobody sees before OpenJob. The batch's id is derived
// from the client's write, so that a retry begins the same one.
type BeginJob struct {
	Name        JobName        `cbor:"1,keyasint"`
	Application id.Application `cbor:"2,keyasint"`
	// Request is a hash of the request's body.
	Request [16]byte `cbor:"3,keyasint"`
	Total   uint32   `cbor:"4,keyasint"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time int64 `cbor:"5,keyasint"`
	// Epoch is the gallery's by which the shard was chosen; if the shard knows a later
	// one, the answer is Outdated, unless the batch was begun. 0 does not ask. Since
	// metafsm.LevelJobEpoch.
	Epoch uint32 `cbor:"6,keyasint,omitempty"`
}

const codeAddJob = 33

// AddJobOp is the command AddJob.
var AddJobOp = command.Op[AddJob, JobAnswer]{Code: codeAddJob, Version: 1, AnswersAs: codeBeginJob}

// AddJob gives a batch its items from index First on, each by job.SealItem. Those
// that came before are passed over.
type AddJob struct {
	Name  JobName  `cbor:"1,keyasint"`
	First uint32   `cbor:"2,keyasint"`
	Items [][]byte `cbor:"3,keyasint"`
	Time  int64    `cbor:"4,keyasint"`
}

const codeOpenJob = 34

// OpenJobOp is the command OpenJob.
var OpenJobOp = command.Op[OpenJob, JobAnswer]{Code: codeOpenJob, Version: 1, AnswersAs: codeBeginJob}

// OpenJob lets the work on a complete batch begin.
type OpenJob struct {
	Name JobName `cbor:"1,keyasint"`
	Time int64   `cbor:"2,keyasint"`
}

const codeFinishJob = 35

// FinishJobOp is the command FinishJob.
var FinishJobOp = command.Op[FinishJob, JobAnswer]{Code: codeFinishJob, Version: 1, AnswersAs: codeBeginJob}

// FinishJob notes what became of items of a batch; each item's first result counts.
type FinishJob struct {
	Name    JobName      `cbor:"1,keyasint"`
	Results []job.Result `cbor:"2,keyasint"`
	Time    int64        `cbor:"3,keyasint"`
}

const codeExpireJobs = 36

// ExpireJobsOp is the command ExpireJobs.
var ExpireJobsOp = command.Op[ExpireJobs, JobAnswer]{Code: codeExpireJobs, Version: 1, AnswersAs: codeBeginJob}

// ExpireJobs drops the batches that are kept for too long by Time.
type ExpireJobs struct {
	Time int64 `cbor:"1,keyasint"`
}

// JobAnswer answers all commands on jobs: Done, Replayed (BeginJob: it was begun
// before), Conflict, StaleGeneration, Outdated (BeginJob), JobsFull, UnknownJob or
// JobItemsMissing.
// The counts are set for Done and Replayed.
type JobAnswer struct {
	Status Status `cbor:"1,keyasint"`
	Total  uint32 `cbor:"2,keyasint"`
	Items  uint32 `cbor:"3,keyasint"`
	Done   uint32 `cbor:"4,keyasint"`
	Open   bool   `cbor:"5,keyasint,omitempty"`
}
