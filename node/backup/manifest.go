package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"facet/internal/id"
	"facet/node/bucket"
	"facet/raftfsm/metafsm"
	"facet/shard/seal"
)

const (
	// Format is the version of backups that this software writes.
	Format = 1

	manifestName = "manifest"
	metaName     = "meta"
	// manifestBytesMax is the most bytes of a manifest.
	manifestBytesMax = 256 << 20
	nameBytesMax     = 64
)

// ErrUnfinished is returned for a backup without a manifest: it was never finished, or does
// not exist.
var ErrUnfinished = errors.New("backup: there is no finished backup of that name")

// Contents is the sealed part of a manifest.
type Contents struct {
	Cluster id.Cluster `json:"cluster"`
	Shards  int        `json:"shards"`
	Pack    string     `json:"pack"`
	// Galleries lists the galleries of the backup; empty is all.
	Galleries []id.Gallery `json:"galleries,omitempty"`
	Meta      Part         `json:"meta"`
	// ClusterLog is the signed checkpoint of the cluster's own audit log, or empty.
	ClusterLog []byte `json:"cluster_log,omitempty"`
	Parts      []Part `json:"parts"` // one for each shard, in order
}

// Active returns the number of active events.
func (c Contents) Active() (n uint64) {
	for _, p := range c.Parts {
		for _, s := range p.Slices {
			n += s.Active
		}
	}
	return n
}

// Manifest lists the parts of a backup.
type Manifest struct {
	Head
	Contents
	// Digest is the manifest's digest. It covers the parts by their digests.
	Digest Digest
}

// manifestFile is the stored form of a manifest.
type manifestFile struct {
	Head   json.RawMessage `json:"head"`
	Sealed []byte          `json:"sealed"`
	Digest Digest          `json:"sha256"` // of head and sealed
}

func (f manifestFile) digest() Digest {
	return sha256.Sum256(append(append(slices.Clone([]byte(f.Head)), 0), f.Sealed...))
}

// KeyCheck returns a hash that identifies a cluster key and reveals nothing of it.
func KeyCheck(m *seal.Master) Digest { return m.MAC("backup-key-check/1", nil) }

// checkName returns an error for a name that is not a plain folder name.
func checkName(name string) error {
	if name == "" || len(name) > nameBytesMax || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return fmt.Errorf("a backup's name has up to %d letters, digits, - and _", nameBytesMax)
	}
	return nil
}

func manifestPlace(name string) place { return place{name, manifestName} }

// writeManifest writes the manifest, which finishes a backup, and returns its digest.
func writeManifest(ctx context.Context, f *bucket.Folder, m Manifest, master *seal.Master) (Digest, error) {
	head, err := json.Marshal(m.Head)
	if err != nil {
		return Digest{}, fmt.Errorf("encode the manifest: %w", err)
	}
	plain, err := json.Marshal(m.Contents)
	if err != nil {
		return Digest{}, fmt.Errorf("encode the manifest: %w", err)
	}
	file := manifestFile{Head: head, Sealed: keyOf(master, m.Name).Seal(plain, manifestPlace(m.Name).aad(head, 0, true))}
	file.Digest = file.digest()
	raw, err := json.Marshal(file)
	if err != nil {
		return Digest{}, fmt.Errorf("encode the manifest: %w", err)
	}
	return file.Digest, f.Create(ctx, m.Name+"/"+manifestName, func(w io.Writer) error {
		_, err := w.Write(raw)
		return err
	})
}

// readHead reads the part of a manifest that needs no key.
func readHead(ctx context.Context, f *bucket.Folder, name string) (manifestFile, Head, error) {
	if err := checkName(name); err != nil {
		return manifestFile{}, Head{}, err
	}
	r, _, err := f.Open(ctx, name+"/"+manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return manifestFile{}, Head{}, fmt.Errorf("%w: %s", ErrUnfinished, name)
	}
	if err != nil {
		return manifestFile{}, Head{}, err
	}
	defer r.Close()
	raw, err := io.ReadAll(io.LimitReader(r, manifestBytesMax))
	if err != nil {
		return manifestFile{}, Head{}, fmt.Errorf("read the manifest of %s: %w", name, err)
	}
	return parseHead(raw, name)
}

// parseHead reads the clear part of a manifest.
func parseHead(raw []byte, name string) (file manifestFile, head Head, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&file); err != nil {
		return file, head, fmt.Errorf("%w: the manifest of %s: %w", ErrDamaged, name, err)
	}
	if err := json.Unmarshal(file.Head, &head); err != nil {
		return file, head, fmt.Errorf("%w: the manifest of %s: %w", ErrDamaged, name, err)
	}
	switch {
	case head.Level > metafsm.Level:
		return file, head, fmt.Errorf("backup %s may have forms of level %d, and this software knows %d: it needs a newer version (it was made by %s)",
			name, head.Level, metafsm.Level, head.Version)
	case head.Level < metafsm.LevelFirst:
		return file, head, metafsm.OldLevel("backup "+name, head.Level)
	case head.Format > Format:
		return file, head, fmt.Errorf("backup %s is of format %d: it needs a newer version of the software (it was made by %s)", name, head.Format, head.Version)
	case file.digest() != file.Digest || head.Name != name:
		return file, head, fmt.Errorf("%w: the manifest of %s", ErrDamaged, name)
	}
	return file, head, nil
}

// readManifest reads and opens a manifest.
func readManifest(ctx context.Context, f *bucket.Folder, name string, master *seal.Master) (Manifest, error) {
	file, head, err := readHead(ctx, f, name)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{Head: head, Digest: file.Digest}
	if head.Key != KeyCheck(master) {
		return m, fmt.Errorf("backup %s is sealed with another cluster key: give the key of the cluster that made it", name)
	}
	plain, err := keyOf(master, name).Open(file.Sealed, manifestPlace(name).aad(file.Head, 0, true))
	if err != nil {
		return m, fmt.Errorf("%w: the manifest of %s", ErrDamaged, name)
	}
	if err := json.Unmarshal(plain, &m.Contents); err != nil {
		return m, fmt.Errorf("%w: the manifest of %s: %w", ErrDamaged, name, err)
	}
	if m.Shards != len(m.Contents.Parts) || m.Shards < 1 {
		return m, fmt.Errorf("%w: the manifest of %s has %d parts of %d", ErrDamaged, name, len(m.Contents.Parts), m.Shards)
	}
	return m, nil
}

// List returns the backups in a folder, in the order of their names. It skips folders whose
// name can't be a backup's.
func List(ctx context.Context, f *bucket.Folder) ([]Listed, error) {
	names, err := f.Folders(ctx)
	if err != nil {
		return nil, err
	}
	list := []Listed{}
	for _, name := range names {
		if checkName(name) != nil {
			continue
		}
		_, head, err := readHead(ctx, f, name)
		switch {
		case err != nil && ctx.Err() != nil && !errors.Is(err, ErrUnfinished):
			return nil, err
		case err != nil:
			list = append(list, Listed{Head: Head{Name: name}})
		default:
			list = append(list, Listed{Head: head, Finished: true})
		}
	}
	return list, nil
}

// Newest returns the name of the newest finished backup.
func Newest(ctx context.Context, f *bucket.Folder) (string, error) {
	list, err := List(ctx, f)
	if err != nil {
		return "", err
	}
	var newest Listed
	for _, l := range list {
		if l.Finished && l.Created.After(newest.Created) {
			newest = l
		}
	}
	if newest.Name == "" {
		return "", ErrUnfinished
	}
	return newest.Name, nil
}

// Prune removes the oldest finished backups whose names begin with prefix, until keep of them
// remain. It returns the names of the removed ones.
func Prune(ctx context.Context, f *bucket.Folder, prefix string, keep int) ([]string, error) {
	list, err := List(ctx, f)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(l Listed) bool { return !l.Finished || !strings.HasPrefix(l.Name, prefix) })
	slices.SortFunc(list, func(a, b Listed) int { return a.Created.Compare(b.Created) })
	var gone []string
	for _, l := range list[:max(0, len(list)-keep)] {
		if err := f.Remove(ctx, l.Name, manifestName); err != nil {
			return gone, err
		}
		gone = append(gone, l.Name)
	}
	return gone, nil
}
