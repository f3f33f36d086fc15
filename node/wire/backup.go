package wire

import (
	"encoding/hex"
	"errors"
	"time"

	"facet/internal/id"
)

// Paths of the admin port about backups. A POST starts a long job, and GET PathBackup reports
// its progress. A node does one such job at a time.
const (
	PathBackup       = "/admin/backup"
	PathBackupVerify = PathBackup + "/verify"
	PathBackupList   = PathBackup + "/list"
	// PathErasures lists the subjects that a backup knows as erased.
	PathErasures = PathBackup + "/erasures"
	PathRestore  = "/admin/restore"
	// PathReceipt takes a receipt.Order and answers with a receipt.Answer (POST).
	PathReceipt = "/admin/receipt"
)

// BackupOrder asks for a backup (POST PathBackup).
type BackupOrder struct {
	To   string `json:"to"`             // URL of a folder
	Name string `json:"name,omitempty"` // empty is the time
	// Galleries has ids, or TENANT/GALLERY; empty is all.
	Galleries []string `json:"galleries,omitempty"`
}

// BackupQuery names a backup (POST PathBackupVerify, PathBackupList, PathErasures).
type BackupQuery struct {
	From string `json:"from"`
	Name string `json:"name,omitempty"` // empty is the newest
	// Key is the cluster key of the backup; empty is the key of this cluster.
	Key []byte `json:"key,omitempty"`
}

// RestoreOrder asks for a restoration (POST PathRestore).
type RestoreOrder struct {
	BackupQuery
	// Gallery is the id or name of the one gallery to restore; empty is all.
	Gallery string `json:"gallery,omitempty"`
	// Erasures lists subjects to leave out.
	Erasures []Erasure `json:"erasures,omitempty"`
	// WithErased also restores subjects that newer backups in the folder show as erased.
	WithErased bool `json:"with_erased,omitempty"`
}

// BackupProgress is the progress of the last job (GET PathBackup). With the query "id" it is
// the job before that one, if it has this id.
type BackupProgress struct {
	ID      string    `json:"id"`   // a random name of the job
	What    string    `json:"what"` // "backup", "verify", "restore" or empty
	Running bool      `json:"running"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	Done    int       `json:"done"` // parts
	Total   int       `json:"total"`
	Error   string    `json:"error,omitempty"`
	// Backup is the result of a backup or verification, Restored that of a restoration.
	Backup   *BackupResult `json:"backup,omitempty"`
	Restored *Restored     `json:"restored,omitempty"`
}

// BackupResult is a finished backup.
type BackupResult struct {
	Head
	Digest Digest `json:"digest"`
	Events uint64 `json:"events"` // active ones
}

// Digest is a SHA-256, in JSON as hexadecimal digits.
type Digest [32]byte

// MarshalText writes 64 digits.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads 64 digits.
func (d *Digest) UnmarshalText(b []byte) error {
	if len(b) != 2*len(d) {
		return errors.New("a digest has 64 digits")
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// Head is the part of a manifest that needs no key.
type Head struct {
	Format  int       `json:"format"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Version string    `json:"version"` // of the software that made it
	// Level is the highest level that this software knew (metafsm.Level). The records have
	// no newer forms. 0 stands for 1.
	Level uint32 `json:"level,omitempty"`
	// Key identifies the cluster key that seals the backup and reveals nothing of it.
	Key   Digest `json:"key"`
	Parts int    `json:"part_count"`
	Bytes int64  `json:"bytes"` // of all parts
}

// Listed is a backup in a folder.
type Listed struct {
	Head
	// Finished is false for a backup without a manifest, of which only the name is known.
	Finished bool `json:"finished"`
}

// Erasure names a subject that a restoration leaves out.
type Erasure struct {
	Gallery id.Gallery `json:"gallery"`
	Subject id.Subject `json:"subject"`
}

// Restored reports what a restoration did.
type Restored struct {
	Backup    string `json:"backup"`
	Digest    Digest `json:"digest"`
	Galleries int    `json:"galleries"`
	Active    uint64 `json:"active"`
	Deleted   uint64 `json:"deleted"`
	Erased    uint64 `json:"erased"` // events left out
	// Former is the signed checkpoint of the audit log of the cluster that made the backup, or empty. It is for the
	// act of the restoration, and no answer has it.
	Former string `json:"-"`
	// Since is the newer backup that showed later erasures, if there is one.
	Since string `json:"since,omitempty"`
	// Sealed names newer backups that could not be opened, because other keys seal them.
	Sealed []string `json:"sealed,omitempty"`
}
