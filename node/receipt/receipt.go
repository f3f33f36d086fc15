package receipt

import (
	"time"

	"facet/internal/id"
)

const (
	// Format is the version of the receipts that this software writes.
	Format = 1
	// SubjectsMax is the most subjects on a receipt.
	SubjectsMax = 500
	// BytesMax is the most bytes of a signed receipt; the form of notes allows no more.
	BytesMax = 1_000_000
)

// Receipt says what was erased, and where it is still on a disk or in a backup.
type Receipt struct {
	Format  int        `json:"format"`
	Cluster id.Cluster `json:"cluster"`
	Tenant  string     `json:"tenant"` // its name
	// Reported is when the nodes were asked.
	Reported time.Time `json:"reported"`
	// DisksClean reports that no node of the cluster has anything of the subjects on its disk.
	// Complete reports that no backup has, either. Missing says in words what is missing.
	DisksClean bool     `json:"disks_clean"`
	Complete   bool     `json:"complete"`
	Missing    []string `json:"missing,omitempty"`

	Subjects []Subject `json:"subjects"`
	// Replicas has, group by group, each node that has a replica of the group, and each that gave no
	// answer.
	Replicas []Replica `json:"replicas"`
	// Removed lists the nodes that were removed from the cluster. facet does not see their disks.
	Removed []Removed `json:"removed_nodes,omitempty"`
	Backups []Backup  `json:"backups,omitempty"`
	// Folders are the folders of backups that were looked at.
	Folders []string `json:"backup_folders,omitempty"`
}

// Subject is a subject that was erased.
type Subject struct {
	Gallery     id.Gallery `json:"gallery"`
	GalleryName string     `json:"gallery_name"`
	Subject     id.Subject `json:"subject"`
	ExternalID  string     `json:"external_id,omitempty"`
	// Events and Score are as the matches with a photo had them.
	Events int `json:"events,omitempty"`
	Score  int `json:"score,omitempty"`

	// Answered, RequestID and Commit are of the answer to the erasure. Gone reports that it was 404:
	// the subject was not there any more.
	Answered  time.Time `json:"answered"`
	RequestID string    `json:"request_id"`
	Commit    string    `json:"commit,omitempty"`
	Gone      bool      `json:"gone_before,omitempty"`

	// Group keeps the subject. Confirmed is when a majority of it confirmed that the subject is not
	// there, and Index the commit index at that time. The cluster fills in these three.
	Group     id.Shard  `json:"group"`
	Index     uint64    `json:"index"`
	Confirmed time.Time `json:"confirmed"`
}

// Replica is what a node has reported about its replica of a group.
type Replica struct {
	Group id.Shard `json:"group"`
	Node  id.Node  `json:"node"`
	Name  string   `json:"name"`
	State string   `json:"state"` // of the node, as in facet status
	// Needed is the index up to which the replica must have erased.
	Needed uint64 `json:"needed_index"`
	// Answered is when the node last answered; zero: never since the receipt was begun. The following
	// fields are of that answer.
	Answered time.Time `json:"answered,omitzero"`
	// Began and Ended are the times of the last round of erasure, and ErasedTo is the index up to
	// which it has erased.
	Began    time.Time `json:"round_began,omitzero"`
	Ended    time.Time `json:"round_ended,omitzero"`
	ErasedTo uint64    `json:"erased_to_index"`
	// Aside lists folders with an older state of the replica.
	Aside []string `json:"set_aside,omitempty"`
	// Clean reports that nothing of the subjects is on the disk. Else Why says what is missing.
	Clean bool   `json:"clean"`
	Why   string `json:"why,omitempty"`
}

// Removed is a node that has left the cluster, with what it had last reported.
type Removed struct {
	Node id.Node   `json:"node"`
	Name string    `json:"name"`
	Last []Replica `json:"last_reports,omitempty"`
}

// Backup is a backup that may hold a subject of the receipt.
type Backup struct {
	Folder  string    `json:"folder"`
	Name    string    `json:"name"`
	Created time.Time `json:"created,omitzero"` // zero: the backup is not finished
	// Goes is when the schedule removes it, by the present settings; zero: an operator must.
	Goes time.Time `json:"goes,omitzero"`
}

// Needed returns the index up to which each group must have erased.
func (r *Receipt) Needed() map[id.Shard]uint64 {
	needed := map[id.Shard]uint64{}
	for _, s := range r.Subjects {
		needed[s.Group] = max(needed[s.Group], s.Index)
	}
	return needed
}

// Since returns when the last of the subjects was confirmed to be gone.
func (r *Receipt) Since() (t time.Time) {
	for _, s := range r.Subjects {
		if s.Confirmed.After(t) {
			t = s.Confirmed
		}
	}
	return t
}
