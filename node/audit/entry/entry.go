// Package entry defines the records of an audit log and their bytes.
//
// A record is the content of one leaf of its tenant's log. It has no image, no template, no external id
// and no secret. Subjects and probes are named by MACs of 16 bytes under the tenant's audit key.
//
// docs/formats/audit.md has the fields. The package imports internal packages only.
package entry

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"facet/internal/answers"
	"facet/internal/codec"
	"facet/internal/id"
)

// Kind says what a record is about.
type Kind uint8

// The kinds of records. The numbers are stored.
const (
	// Request: a request and its answer.
	Request Kind = 0
	// Intent: a write that is about to be carried out. Its outcome has the same request id.
	Intent Kind = 1
	// Withheld: the client did not get the answer of this request's record, because the record was
	// not durable in time.
	Withheld Kind = 2
	// Completed: the outcome of an intent whose node gave none. The cluster has looked it up.
	Completed Kind = 3
	// Act: something that the cluster did by itself.
	Act Kind = 4
	// Command: an operator's command.
	Command Kind = 5
)

var kindNames = [...]string{"request", "intent", "withheld", "completed", "act", "command"}

// String names the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Verdict says whether the photos of a case show one person.
type Verdict uint8

// The verdicts. The numbers are stored.
const (
	Same      Verdict = 1
	Different Verdict = 2
)

// String names the verdict, or is empty if there is none.
func (v Verdict) String() string {
	switch v {
	case 0:
		return ""
	case Same:
		return "same"
	case Different:
		return "different"
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

const (
	// NameBytes is the length of the MAC that stands for a subject or a probe.
	NameBytes = 16
	// TextMax is the most bytes of a text from outside: a caller's ground, what an order is about.
	TextMax = 256
	// BytesMax is the most bytes of a record.
	BytesMax = 30 << 10

	candidateBytes = NameBytes + 2
)

// The reasons of completed intents: a shard remembers that it has carried the write out; none does,
// though it would; or none would know.
const (
	ReasonCarriedOut    = "CarriedOut"
	ReasonNotCarriedOut = "NotCarriedOut"
	ReasonUnknown       = "OutcomeUnknown"
)

// ErrRecord is returned for bytes that are no record.
var ErrRecord = errors.New("entry: no record of an audit log")

var head = codec.Head{Code: 1, Version: 1}

// Name stands for a subject or a probe.
type Name [NameBytes]byte

// Candidate is a subject that an answer named, with its score.
type Candidate struct {
	Subject Name
	Score   uint16
}

// Record is the content of a leaf. Zero fields are left out.
type Record struct {
	// Random makes the leaf hash tell nothing about the other fields.
	Random [16]byte `cbor:"1,keyasint"`
	// Time is when the request came, in milliseconds since 1970.
	Time        int64          `cbor:"2,keyasint"`
	Kind        Kind           `cbor:"3,keyasint,omitempty"`
	Application id.Application `cbor:"4,keyasint,omitzero"`
	// Key is the access key, Holder who has it, Source the client's address.
	Key    string `cbor:"5,keyasint,omitempty"`
	Holder string `cbor:"6,keyasint,omitempty"`
	Source []byte `cbor:"7,keyasint,omitempty"`
	// ID is the request id that the answer carries.
	ID [16]byte `cbor:"8,keyasint,omitzero"`
	// Operation is the method and the path pattern, the name of a command, or what the cluster did.
	Operation  string     `cbor:"9,keyasint,omitempty"`
	Gallery    id.Gallery `cbor:"10,keyasint,omitzero"`
	Generation uint32     `cbor:"11,keyasint,omitempty"`
	// Searched has a shard and the commit index at which it was searched, in turns.
	Searched []uint64 `cbor:"12,keyasint,omitempty"`
	// Threshold is the lowest score that was asked for, plus 1. Limit is the most candidates.
	Threshold uint32 `cbor:"13,keyasint,omitempty"`
	Limit     uint32 `cbor:"14,keyasint,omitempty"`
	// Pack is the identity of the model pack.
	Pack string `cbor:"15,keyasint,omitempty"`
	// Probe stands for the template that was searched or compared.
	Probe Name `cbor:"16,keyasint,omitzero"`
	// Candidates has the answer's candidates one behind the other: a name and the score in two bytes.
	Candidates []byte `cbor:"17,keyasint,omitempty"`
	// Quality is that of the photo, in thousandths.
	Quality uint32 `cbor:"18,keyasint,omitempty"`
	// Purpose is the ground that the caller gave (header x-purpose).
	Purpose string `cbor:"19,keyasint,omitempty"`
	// Status is that of the answer, Reason the reason of a refusal.
	Status int    `cbor:"20,keyasint,omitempty"`
	Reason string `cbor:"21,keyasint,omitempty"`
	// Micros is how long the request took, in microseconds.
	Micros uint64 `cbor:"22,keyasint,omitempty"`
	// Subjects are those that a write named, one behind the other.
	Subjects []byte `cbor:"23,keyasint,omitempty"`
	// Doing is the operation of an intent, by which a shard remembers the write.
	Doing id.Operation `cbor:"24,keyasint,omitzero"`
	// Case is the review that the request opened or is about, and Verdict what it says of the photos.
	Case    id.UUID `cbor:"25,keyasint,omitzero"`
	Verdict Verdict `cbor:"26,keyasint,omitempty"`
	// Count is how many events an act has expired, how many requests it stands for, or, of OperationExpire, how
	// many of the log's first records have no contents from then on.
	Count uint64 `cbor:"27,keyasint,omitempty"`
	// Former is the signed checkpoint of the log that this one follows after a restoration. It is set in the
	// first record of a tenant's log, of OperationRestored, and in OperationRestore of the cluster's.
	Former string `cbor:"40,keyasint,omitempty"`
}

// OperationRestored is the operation of the act that begins the log of a restored tenant.
const OperationRestored = "log restored"

// OperationRestore is the operation of the act of a restoration's end, in the cluster's log.
const OperationRestore = "restore a backup"

// OperationExpire is the operation of the act by which the contents of the log's first records go.
const OperationExpire = "expire records"

// New returns a record of something that began at a time.
func New(kind Kind, at time.Time) *Record {
	r := &Record{Kind: kind, Time: at.UnixMilli()}
	_, _ = rand.Read(r.Random[:]) // it never fails, by its documentation
	return r
}

// Text returns a text from outside as a record may have it: TextMax bytes at most, and UTF-8.
func Text(s string) string { return strings.ToValidUTF8(s[:min(len(s), TextMax)], "?") }

// From sets the client's address.
func (r *Record) From(a netip.Addr) { r.Source = a.Unmap().AsSlice() }

// Add adds a candidate.
func (r *Record) Add(subject Name, score int) {
	r.Candidates = binary.BigEndian.AppendUint16(append(r.Candidates, subject[:]...), uint16(min(max(score, 0), 1<<16-1)))
}

// List returns the candidates.
func (r *Record) List() (list []Candidate) {
	for b := r.Candidates; len(b) >= candidateBytes; b = b[candidateBytes:] {
		list = append(list, Candidate{Name(b[:NameBytes]), binary.BigEndian.Uint16(b[NameBytes:])})
	}
	return list
}

// Encode returns the bytes of the record.
func (r *Record) Encode() []byte { return codec.Encode(head, r) }

// Decode returns the record with these bytes. The error wraps ErrRecord.
func Decode(b []byte) (*Record, error) {
	r := new(Record)
	if err := codec.Decode(b, head, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	switch {
	case len(r.Candidates)%candidateBytes != 0, len(r.Subjects)%NameBytes != 0, len(r.Searched)%2 != 0:
		return nil, fmt.Errorf("%w: a list is cut short", ErrRecord)
	case len(r.Source) != 0 && len(r.Source) != 4 && len(r.Source) != 16:
		return nil, fmt.Errorf("%w: an address of %d bytes", ErrRecord, len(r.Source))
	}
	return r, nil
}

func text(n []byte) string { return base64.RawURLEncoding.EncodeToString(n) }

// Show returns the record with its number in the log as JSON shows it.
func (r *Record) Show(number uint64) answers.AuditRecord {
	s := answers.AuditRecord{
		Number: number, Time: time.UnixMilli(r.Time).UTC(), Kind: r.Kind.String(), Operation: r.Operation, Status: r.Status, Reason: r.Reason,
		Holder: r.Holder, Key: r.Key, Generation: int(r.Generation), Purpose: r.Purpose, Limit: int(r.Limit), Pack: r.Pack,
		Quality: float64(r.Quality) / 1000, Verdict: r.Verdict.String(), Count: r.Count, Millis: float64(r.Micros) / 1000,
		Former: r.Former,
	}
	if a, ok := netip.AddrFromSlice(r.Source); ok {
		s.Source = a.String()
	}
	if r.ID != ([16]byte{}) {
		s.RequestID = hex.EncodeToString(r.ID[:])
	}
	if !r.Application.IsZero() {
		s.Application = r.Application.String()
	}
	if !r.Gallery.IsZero() {
		s.Gallery = r.Gallery.String()
	}
	if !r.Case.IsZero() {
		s.Case = r.Case.String()
	}
	if r.Threshold > 0 {
		threshold := int(r.Threshold) - 1
		s.Threshold = &threshold
	}
	if r.Probe != (Name{}) {
		s.Probe = text(r.Probe[:])
	}
	for i := 0; i+1 < len(r.Searched); i += 2 {
		s.Searched = append(s.Searched, answers.AuditIndex{Shard: r.Searched[i], Index: r.Searched[i+1]})
	}
	for _, c := range r.List() {
		s.Candidates = append(s.Candidates, answers.AuditCandidate{Subject: text(c.Subject[:]), Score: int(c.Score)})
	}
	for b := r.Subjects; len(b) >= NameBytes; b = b[NameBytes:] {
		s.Subjects = append(s.Subjects, text(b[:NameBytes]))
	}
	return s
}
