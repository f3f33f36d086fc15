package router

import (
	"facet/internal/id"
	"facet/shard"
)

// Act is something that the cluster has done by itself, for the audit log.
type Act struct {
	// Log is the tenant whose audit log records the act, or id.ClusterLog.
	Log       id.Tenant
	Operation string
	// Reason says more of it, or is empty.
	Reason  string
	Gallery GalleryVersion
	// Case is the review that expired.
	Case id.UUID
	// Count is how many events expired.
	Count int
	// Subjects lost events, at most actNamesMax of them.
	Subjects []Salted
	// Erased has groups, and up to which index of each this node's disk keeps nothing that commands have
	// removed, in turns.
	Erased []uint64
	// Former is the signed checkpoint of the log that the cluster's follows since a restoration, or empty.
	Former string
}

// GalleryVersion is a gallery and its generation.
type GalleryVersion struct {
	ID         id.Gallery
	Generation uint32
}

// Salted is a subject and the salt of its name in audit records. The salt is zero if the subject has none.
type Salted struct {
	Subject id.Subject
	Salt    [shard.SaltBytes]byte
}
