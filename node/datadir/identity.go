package datadir

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"facet/internal/id"
)

// IdentityFile is the name of the file with the directory's Identity.
const IdentityFile = "node.json"

// Identity names the owner of a data directory. Each new directory gets a random epoch, so a
// node that comes back with an empty disk is another member.
type Identity struct {
	Format int     `json:"format"`
	Node   id.Node `json:"node"`
	Epoch  uint32  `json:"epoch"`
	// Groups lists the groups of which the directory has a replica (Registry), ascending.
	Groups []id.Shard `json:"groups,omitempty"`
}

// Member returns the name under which its replicas vote.
func (i Identity) Member() id.Member { return id.NewMember(i.Node, i.Epoch) }

// Identify returns the node of a data directory. It creates a missing directory with a new
// node id, so that a certificate can be issued before the node's first start.
func Identify(dir string) (id.Node, error) {
	who, err := Open(dir)
	return who.Node, err
}

// Open returns the Identity of a data directory, which it creates when missing.
func Open(dir string) (Identity, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Identity{}, fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(dir, IdentityFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newIdentity(path)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("read %s: %w", IdentityFile, err)
	}
	var who Identity
	if err := json.Unmarshal(raw, &who); err != nil {
		return Identity{}, fmt.Errorf("read %s: %w", IdentityFile, err)
	}
	if who.Format != 1 || who.Node.IsZero() {
		return Identity{}, fmt.Errorf("%s is of format %d, which this version can't use", IdentityFile, who.Format)
	}
	return who, nil
}

func newIdentity(path string) (Identity, error) {
	var seed [20]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return Identity{}, fmt.Errorf("make a node id: %w", err)
	}
	who := Identity{
		Format: 1,
		Node:   id.Node{UUID: id.Random([16]byte(seed[:16]))},
		Epoch:  binary.BigEndian.Uint32(seed[16:]),
	}
	return who, who.write(path)
}

func (i Identity) write(path string) error {
	raw, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", IdentityFile, err)
	}
	return WriteSynced(path, append(raw, '\n'))
}

// WriteSynced writes a file. After a crash it has either its old content or the new one.
func WriteSynced(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return Sync(filepath.Dir(path))
}

// Sync brings the names in a folder to the disk.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder %s: %w", filepath.Base(dir), err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync folder %s: %w", filepath.Base(dir), err)
	}
	return nil
}
