package authority

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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

// Folder is an opened authority.
type Folder struct {
	dir, admin string
	notices    io.Writer
	ca         *cert.CA
	passphrase string // empty: the key is not encrypted
	made       []string
}

// Made returns the names of the files that opening the folder has created or
// renewed.
func (f *Folder) Made() []string { return f.made }

// Dir returns the folder.
func (f *Folder) Dir() string { return f.dir }

// Authority returns the authority.
func (f *Folder) Authority() *cert.CA { return f.ca }

func (f *Folder) key() string { return filepath.Join(f.dir, caKeyFile) }

// files returns the files of the authority.
func (f *Folder) files() cert.Files { return cert.Files{Cert: f.CA(), Key: f.key()} }

func (f *Folder) notice(text string) {
	if f.notices != nil {
		fmt.Fprintln(f.notices, "facet: "+text)
	}
}

// ensureKeys creates the two keys of the cluster if they are missing.
func (f *Folder) ensureKeys() error {
	for _, key := range []string{f.ClusterKey(), f.GossipKey()} {
		made, err := EnsureKey(key)
		if err != nil {
			return err
		}
		if made {
			f.made = append(f.made, key)
		}
	}
	return nil
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
func (f *Folder) Admin() string { return cmp.Or(f.admin, filepath.Join(f.dir, adminName)) }

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

// renewAdmin does the work of ensureAdmin if the administrator's folder exists.
func (f *Folder) renewAdmin() error {
	if _, err := os.Stat(f.Admin()); err != nil {
		return nil //nolint:nilerr // another machine has the certificate
	}
	return f.ensureAdmin()
}

func (f *Folder) ensureAdmin() error {
	if err := os.MkdirAll(f.Admin(), 0o700); err != nil {
		return fmt.Errorf("make the administrator's folder: %w", err)
	}
	files := filesOf(f.Admin(), adminName)
	if err := f.shares(files.CA); err != nil {
		return err
	}
	issued, err := cert.Ensure(files, f.ca, func() (cert.Pair, error) { return f.ca.IssueAdmin(adminName) })
	if issued {
		f.made = append(f.made, files.Cert, files.Key)
	}
	return err
}

// shares returns an error if a file names authorities, and none of them is one of this
// cluster: the certificates beside it are of another one.
func (f *Folder) shares(file string) error {
	b, err := cert.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	theirs, err := cert.ParseAuthorities(b)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	ours, err := cert.ParseAuthorities(f.ca.CertPEM())
	if err != nil {
		return err
	}
	for _, c := range theirs {
		if slices.ContainsFunc(ours, c.Equal) {
			return nil
		}
	}
	return fmt.Errorf("the certificates in %s are not of the authority in %s: name the folder of their authority", filepath.Dir(file), f.dir)
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
