package answers

import "time"

// AuditIndex is the index of a shard's log at which it was searched.
//
//facet:ext
type AuditIndex struct {
	Shard uint64 `json:"shard"`
	Index uint64 `json:"index"`
}

// AuditCandidate is a candidate of an answer.
//
//facet:ext
type AuditCandidate struct {
	// The MAC of a subject.
	Subject string `json:"subject"`
	Score   Score  `json:"score"`
}

// AuditRecord is a record of the audit log. MACs stand for subjects and probes.
//
//facet:ext
type AuditRecord struct {
	// The place in the log, from 0.
	Number    uint64    `json:"number" schema:"min=0"`
	Time      time.Time `json:"time"`
	Kind      string    `json:"kind"`
	Operation string    `json:"operation,omitzero"`
	// The status of the answer.
	Status int `json:"status,omitzero"`
	// Why the request was refused. Of an operator's order it is what the order was about.
	Reason string `json:"reason,omitzero"`
	Holder string `json:"holder,omitzero"`
	Key    string `json:"key,omitzero"`
	// The client's address.
	Source      string `json:"source,omitzero"`
	RequestID   string `json:"requestId,omitzero"`
	Application string `json:"application,omitzero"`
	Gallery     string `json:"gallery,omitzero"`
	Generation  int    `json:"generation,omitzero"`
	// The header x-purpose.
	Purpose    string           `json:"purpose,omitzero"`
	Threshold  *int             `json:"threshold,omitzero"`
	Limit      int              `json:"limit,omitzero"`
	Pack       string           `json:"pack,omitzero"`
	Quality    float64          `json:"quality,omitzero"`
	Probe      string           `json:"probe,omitzero"`
	Searched   []AuditIndex     `json:"searched,omitzero"`
	Candidates []AuditCandidate `json:"candidates,omitzero"`
	Subjects   []string         `json:"subjects,omitzero"`
	// The case that a verification opened or the request is about.
	Case    string `json:"case,omitzero"`
	Verdict string `json:"verdict,omitzero" schema:"enum=same|different"`
	// How many events an act of the cluster has expired, or how many requests the record stands for.
	Count uint64 `json:"count,omitzero"`
	// How long the request took.
	Millis float64 `json:"ms,omitzero"`
	// Signed checkpoint of the log that this one follows, in the first record of a tenant that was restored from a backup.
	Former string `json:"former,omitzero"`
	// The retention has passed: only the hash is left.
	Expired bool `json:"expired,omitzero"`
	// The bytes of the record. Absent if not asked for.
	Content Bytes `json:"content,omitzero"`
}

// AuditPage is a page of the audit log, the newest record first.
//
//facet:ext
type AuditPage struct {
	// The number of records in the log.
	Size uint64 `json:"size"`
	// Whether requests of the tenant have records now.
	Recording bool          `json:"recording"`
	Records   []AuditRecord `json:"records"`
	// The record before which the next page begins. Absent after the last page.
	Next *uint64 `json:"next,omitzero"`
}
