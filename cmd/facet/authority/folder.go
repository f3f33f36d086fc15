package authority

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"facet/internal/id"
	"facet/node/cert"
	"facet/node/wire"
)

// Names of files in the folder.
const (
	caFile     = "ca.pem"
	caKeyFile  = "ca.key"
	clusterKey = "cluster.key"
	gossipKey  = "gossip.key"
	adminName  = "admin"
	statusName = "status"
	nodeFiles  = "node"

	keyBytes = 32
)

// nodeName matches the names that a node's folder can have.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Folder is a folder with an authority.
type Folder struct {
	dir  string
	ca   *cert.CA
	made []string
}

// Open does the work of OpenAuthority, and also creates the two keys of the cluster
// in dir if they are missing.
func Open(dir, name string) (*Folder, error) {
	f, err := OpenAuthority(dir, name)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{f.ClusterKey(), f.GossipKey()} {
		made, err := EnsureKey(key)
		if err != nil {
			return nil, err
		}
		if made {
			f.made = append(f.made, key)
		}
	}
	return f, nil
}

// OpenAuthority opens the authority in dir. It creates the folder, the authority
// (called name; an empty name creates none) and the administrator's certificate
// when they are missing. It renews that certificate when less than a third of its
// life is left.
func OpenAuthority(dir, name string) (*Folder, error) {
	f := &Folder{dir: dir}
	if _, err := os.Stat(f.key()); name == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no authority in %s (%s is missing)", dir, caKeyFile)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the authority: %w", err)
	}
	var err error
	if err = f.openCA(name); err != nil {
		return nil, err
	}
	return f, f.ensureAdmin()
}

// Made returns the names of the files that opening the folder has created or
// renewed.
func (f *Folder) Made() []string { return f.made }

// Authority returns the authority.
func (f *Folder) Authority() *cert.CA { return f.ca }

func (f *Folder) key() string { return filepath.Join(f.dir, caKeyFile) }

// openCA loads the authority. It creates one only when both of its files are
// missing: if one of them is left, a new authority would lock every node out.
func (f *Folder) openCA(name string) (err error) {
	_, err1 := os.Stat(f.CA())
	_, err2 := os.Stat(f.key())
	if !errors.Is(err1, fs.ErrNotExist) || !errors.Is(err2, fs.ErrNotExist) {
		f.ca, err = cert.LoadCA(f.CA(), f.key())
		return err
	}
	if f.ca, err = cert.NewCA(name); err != nil {
		return err
	}
	f.made = append(f.made, f.CA(), f.key())
	return f.ca.Save(f.CA(), f.key())
}

// EnsureKey writes a random key in hexadecimal digits if the file is missing, and
// reports whether it did. It never replaces a key: data would be lost with it.
func EnsureKey(name string) (made bool, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("make key %s: %w", filepath.Base(name), err)
	}
	var key [keyBytes]byte
	_, err = rand.Read(key[:])
	if err == nil {
		_, err = f.WriteString(hex.EncodeToString(key[:]) + "\n")
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return false, errors.Join(fmt.Errorf("make key %s: %w", filepath.Base(name), err), os.Remove(name))
	}
	return true, nil
}

// CA returns the file with the authority's certificate. Clients check nodes with
// it.
func (f *Folder) CA() string { return filepath.Join(f.dir, caFile) }

// ClusterKey returns the file with the key that wraps all data keys.
func (f *Folder) ClusterKey() string { return filepath.Join(f.dir, clusterKey) }

// GossipKey returns the file with the key that encrypts gossip.
func (f *Folder) GossipKey() string { return filepath.Join(f.dir, gossipKey) }

// Admin returns the folder with the administrator's certificate.
func (f *Folder) Admin() string { return filepath.Join(f.dir, adminName) }

// Node returns the folder with the certificates of the node called name.
func (f *Folder) Node(name string) string { return filepath.Join(f.dir, name) }

// AdminFiles returns the files of the certificate that commands use. dir is a
// folder like Admin with the administrator's certificate, or a node's folder with
// the read-only one. Commands never use the certificate of a node itself.
func AdminFiles(dir string) (cert.Files, error) {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name+".pem"))
		return err == nil
	}
	switch {
	case has(adminName) || !has(statusName) && !has(nodeFiles):
		return filesOf(dir, adminName), nil
	case has(statusName):
		return filesOf(dir, statusName), nil
	default:
		return cert.Files{}, fmt.Errorf("%s holds only the certificate of a node, which may give no orders: %s", dir, wire.RenewForStatus)
	}
}

func filesOf(dir, name string) cert.Files {
	return cert.Files{
		CA:   filepath.Join(dir, caFile),
		Cert: filepath.Join(dir, name+".pem"),
		Key:  filepath.Join(dir, name+".key"),
	}
}

func (f *Folder) ensureAdmin() error {
	if err := os.MkdirAll(f.Admin(), 0o700); err != nil {
		return fmt.Errorf("make the administrator's folder: %w", err)
	}
	files := filesOf(f.Admin(), adminName)
	issued, err := cert.Ensure(files, f.ca, func() (cert.Pair, error) { return f.ca.IssueAdmin(adminName) })
	if issued {
		f.made = append(f.made, files.Cert, files.Key)
	}
	return err
}

// NodeCertificates describes a node that gets certificates.
type NodeCertificates struct {
	Name string // of the folder
	ID   id.Node
	// Hosts are the names and IP addresses under which clients and operators call
	// the node.
	Hosts []string
}

// Ensure creates the certificates of a node. It renews them when less than a third
// of their life is left, or when they are for another node. It returns the names of
// the files that it wrote.
func (f *Folder) Ensure(n NodeCertificates) (written []string, err error) {
	if n.Name == adminName || !nodeName.MatchString(n.Name) {
		return nil, fmt.Errorf("issue certificates: %q can't be a node's name: use 1 to 63 letters, digits, '.', '_' and '-'", n.Name)
	}
	return f.EnsureIn(f.Node(n.Name), n)
}

// EnsureIn does the work of Ensure in another folder than the authority's own.
func (f *Folder) EnsureIn(dir string, n NodeCertificates) (written []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("issue certificates: %w", err)
	}
	for _, of := range []struct {
		name  string
		issue func() (cert.Pair, error)
	}{
		{nodeFiles, func() (cert.Pair, error) { return f.ca.IssueNode(n.ID, n.Hosts) }},
		{"server", func() (cert.Pair, error) { return f.ca.IssueServer(n.Hosts) }},
		{statusName, func() (cert.Pair, error) { return f.ca.IssueStatus(n.ID) }},
	} {
		files := filesOf(dir, of.name)
		if err := dropForeign(files, n); err != nil {
			return written, err
		}
		issued, err := cert.Ensure(files, f.ca, of.issue)
		if err != nil {
			return written, err
		}
		if issued {
			written = append(written, files.Cert, files.Key)
		}
	}
	return written, nil
}

// dropForeign removes a certificate of another node or of other hosts, so that
// Ensure issues a new one.
func dropForeign(files cert.Files, n NodeCertificates) error {
	leaf, err := leafOf(files)
	if err != nil {
		return nil //nolint:nilerr // missing or broken: Ensure replaces it
	}
	who, err := cert.StatusIn(leaf)
	if err == nil && who == n.ID {
		return nil // the certificate names no hosts
	}
	mine := len(leaf.URIs) == 0 || leaf.URIs[0].Path == "/node/"+n.ID.String()
	if mine && slices.Equal(cert.Hosts(leaf), slices.Sorted(slices.Values(n.Hosts))) {
		return nil
	}
	return os.Remove(files.Cert)
}
