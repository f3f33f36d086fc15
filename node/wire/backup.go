package wire

import (
	"encoding/hex"
	"errors"
	"time"

	"facet/internal/id"
)

// Paths of the admin port about backups. What takes long is started by a POST and
// told of by GET PathBackup; a node does one such thing at a time.
const (
	PathBackup       = "/admin/backup"
	PathBackupVerify = PathBackup + "/verify"
	PathBackupList   = PathBackup + "/list"
	// PathErasures gives the subjects that a backup knows to be erased.
	PathErasures = PathBackup + "/erasures"
	PathRestore  = "/admin/restore"
)

// BackupOrder asks for a backup (POST PathBackup).
type BackupOrder struct {
	To   string `json:"to"`             // URL of a folder
	Name string `json:"name,omitempty"` // the time, when empty
	// Galleries are ids, or TENANT/GALLERY; none is all.
	Galleries []string `json:"galleries,omitempty"`
}

// BackupQuery names a backup (POST PathBackupVerify, PathBackupList, PathErasures).
type BackupQuery struct {
	From string `json:"from"`
	Name string `json:"name,omitempty"` // the newest, when empty
	// Key is the cluster key that it was made with; none is the cluster's own.
	Key []byte `json:"key,omitempty"`
}

// RestoreOrder asks for a restoration (POST PathRestore).
type RestoreOrder struct {
	BackupQuery
	// Gallery is the id or name of the only one that is wanted; empty is all.
	Gallery string `json:"gallery,omitempty"`
	// Erasures are subjects that are not to come back.
	Erasures []Erasure `json:"erasures,omitempty"`
	// WithErased brings back who was erased since, by newer backups in the folder.
	WithErased bool `json:"with_erased,omitempty"`
}

// BackupProgress is how far the last thing is (GET PathBackup), or with the query "id" the one
// before it, if that has this id.
type BackupProgress struct {
	ID      string    `json:"id"`   // of this thing, among all that nodes ever do
	What    string    `json:"what"` // "backup", "verify", "restore" or nothing
	Running bool      `json:"running"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	Done    int       `json:"done"` // parts
	Total   int       `json:"total"`
	Error   string    `json:"error,omitempty"`
	// Backup is what was made or verified, Restored what was restored.
	Backup   *BackupResult `json:"backup,omitempty"`
	Restored *Restored     `json:"restored,omitempty"`
}

// BackupResult is a finished backup.
type BackupResult struct {
	Head
	Digest Digest `json:"digest"`
	Events uint64 `json:"events"` // active ones
}

// Digest is a SHA-256 that JSON has as hexadecimal digits.
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

// Head is the part of a manifest that can be read without a key.
type Head struct {
	Format  int       `json:"format"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Version string    `json:"version"` // of the software that made it
	// Level is what that software knew (metafsm.Level): the records are of no newer
	// form. 0 stands for 1.
	Level uint32 `json:"level,omitempty"`
	// Key tells which cluster key it is sealed with, and nothing about it.
	Key   Digest `json:"key"`
	Parts int    `json:"part_count"`
	Bytes int64  `json:"bytes"` // of all parts
}

// Listed is a backup in a folder.
type Listed struct {
	Head
	// Finished is false for what was begun only, of which just the name is known.
	Finished bool `json:"finished"`
}

// Erasure is a subject that is not to come back.
type Erasure struct {
	Gallery id.Gallery `json:"gallery"`
	Subject id.Subject `json:"subject"`
}

// Restored says what was restored.
type Restored struct {
	Backup    string `json:"backup"`
	Digest    Digest `json:"digest"`
	Galleries int    `json:"galleries"`
	Active    uint64 `json:"active"`
	Deleted   uint64 `json:"deleted"`
	Erased    uint64 `json:"erased"` // events left out
	// Since is the newer backup that told who was erased since, if there is one.
	Since string `json:"since,omitempty"`
	// Sealed names newer backups that could not be asked: other keys have sealed them.
	Sealed []string `json:"sealed,omitempty"`
}
