package shardfsm

import (
	"facet/internal/codec"
	"facet/internal/id"
	"facet/shard/job"
)

// The codes of commands on bulk registrations: 32 to 47.
var (
	headBeginJob   = codec.Head{Code: 32, Version: 1}
	headAddJob     = codec.Head{Code: 33, Version: 1}
	headOpenJob    = codec.Head{Code: 34, Version: 1}
	headFinishJob  = codec.Head{Code: 35, Version: 1}
	headExpireJobs = codec.Head{Code: 36, Version: 1}
)

// JobName names a batch of a gallery.
type JobName struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Batch      id.Batch   `cbor:"3,keyasint"`
}

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

// AddJob gives a batch its items from index First on, each by job.SealItem. Those
// that came before are passed over.
type AddJob struct {
	Name  JobName  `cbor:"1,keyasint"`
	First uint32   `cbor:"2,keyasint"`
	Items [][]byte `cbor:"3,keyasint"`
	Time  int64    `cbor:"4,keyasint"`
}

// OpenJob lets the work on a complete batch begin.
type OpenJob struct {
	Name JobName `cbor:"1,keyasint"`
	Time int64   `cbor:"2,keyasint"`
}

// FinishJob notes what became of items of a batch; each item's first result counts.
type FinishJob struct {
	Name    JobName      `cbor:"1,keyasint"`
	Results []job.Result `cbor:"2,keyasint"`
	Time    int64        `cbor:"3,keyasint"`
}

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

// Encode gives the bytes to propose.
func (c BeginJob) Encode() []byte { return codec.Encode(headBeginJob, c) }

// Encode gives the bytes to propose.
func (c AddJob) Encode() []byte { return codec.Encode(headAddJob, c) }

// Encode gives the bytes to propose.
func (c OpenJob) Encode() []byte { return codec.Encode(headOpenJob, c) }

// Encode gives the bytes to propose.
func (c FinishJob) Encode() []byte { return codec.Encode(headFinishJob, c) }

// Encode gives the bytes to propose.
func (c ExpireJobs) Encode() []byte { return codec.Encode(headExpireJobs, c) }

// ParseJobAnswer reads the answer to any command on jobs; the error wraps
// codec.ErrMalformed.
func ParseJobAnswer(b []byte) (JobAnswer, error) {
	return parse[JobAnswer](b, answerOf(headBeginJob))
}

// decodeJob reads a command on jobs; known is false if it is none.
func decodeJob(m codec.Message) (c command, known bool, err error) {
	switch m.Code {
	case headBeginJob.Code:
		c, err = body[BeginJob](m, headBeginJob)
	case headAddJob.Code:
		c, err = body[AddJob](m, headAddJob)
	case headOpenJob.Code:
		c, err = body[OpenJob](m, headOpenJob)
	case headFinishJob.Code:
		c, err = body[FinishJob](m, headFinishJob)
	case headExpireJobs.Code:
		c, err = body[ExpireJobs](m, headExpireJobs)
	default:
		return nil, false, nil
	}
	return c, true, err
}
