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
)

// Names of files in the folder.
const (
	caFile     = "ca.pem"
	caKeyFile  = "ca.key"
	clusterKey = "cluster.key"
	gossipKey  = "gossip.key"
	adminName  = "admin"

	keyBytes = 32
)

// nodeName is what can name a node's folder.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Folder is a folder with an authority.
type Folder struct {
	dir string
	ca  *cert.CA
}

// Open opens the authority in dir. It makes the folder, the authority (called
// name), the two keys and the administrator's certificate where they are missing,
// and renews that certificate when less than a third of its life is left.
func Open(dir, name string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the authority: %w", err)
	}
	f := &Folder{dir: dir}
	var err error
	if f.ca, err = openCA(f.CA(), filepath.Join(dir, caKeyFile), name); err != nil {
		return nil, err
	}
	for _, key := range []string{f.ClusterKey(), f.GossipKey()} {
		if err := ensureKey(key); err != nil {
			return nil, err
		}
	}
	return f, f.ensureAdmin()
}

// openCA loads the authority, and makes it when neither of its files is there:
// with one of them left, a new one would lock every node out.
func openCA(certFile, keyFile, name string) (*cert.CA, error) {
	_, err1 := os.Stat(certFile)
	_, err2 := os.Stat(keyFile)
	if !errors.Is(err1, fs.ErrNotExist) || !errors.Is(err2, fs.ErrNotExist) {
		return cert.LoadCA(certFile, keyFile)
	}
	ca, err := cert.NewCA(name)
	if err != nil {
		return nil, err
	}
	return ca, ca.Save(certFile, keyFile)
}

// ensureKey writes a random key in hexadecimal digits where there is none. It
// never replaces one: data would be lost with it.
func ensureKey(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make key %s: %w", filepath.Base(name), err)
	}
	var key [keyBytes]byte
	_, err = rand.Read(key[:])
	if err == nil {
		_, err = f.WriteString(hex.EncodeToString(key[:]) + "\n")
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("make key %s: %w", filepath.Base(name), err), os.Remove(name))
	}
	return nil
}

// CA is the file with the authority's certificate; clients check nodes with it.
func (f *Folder) CA() string { return filepath.Join(f.dir, caFile) }

// ClusterKey is the file with the key that wraps all data keys.
func (f *Folder) ClusterKey() string { return filepath.Join(f.dir, clusterKey) }

// GossipKey is the file with the key that encrypts gossip.
func (f *Folder) GossipKey() string { return filepath.Join(f.dir, gossipKey) }

// Admin is the folder with the administrator's certificate.
func (f *Folder) Admin() string { return filepath.Join(f.dir, adminName) }

// Node is the folder with the certificates of the node called name.
func (f *Folder) Node(name string) string { return filepath.Join(f.dir, name) }

// AdminFiles names the files in a folder like Admin.
func AdminFiles(dir string) cert.Files {
	return cert.Files{
		CA:   filepath.Join(dir, caFile),
		Cert: filepath.Join(dir, "admin.pem"),
		Key:  filepath.Join(dir, "admin.key"),
	}
}

func (f *Folder) ensureAdmin() error {
	if err := os.MkdirAll(f.Admin(), 0o700); err != nil {
		return fmt.Errorf("make the administrator's folder: %w", err)
	}
	_, err := cert.Ensure(AdminFiles(f.Admin()), f.ca, func() (cert.Pair, error) { return f.ca.IssueAdmin(adminName) })
	return err
}

// NodeCertificates is a node that gets certificates.
type NodeCertificates struct {
	Name string // of the folder
	ID   id.Node
	// Hosts are the names and IP addresses under which clients and operators call
	// the node.
	Hosts []string
}

// Ensure makes the certificates of a node, or renews them when less than a third
// of their life is left, or when they are not for this node.
func (f *Folder) Ensure(n NodeCertificates) error {
	if n.Name == adminName || !nodeName.MatchString(n.Name) {
		return fmt.Errorf("issue certificates: %q can't be a node's name", n.Name)
	}
	dir := f.Node(n.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("issue certificates: %w", err)
	}
	files := func(name string) cert.Files {
		return cert.Files{
			CA:   filepath.Join(dir, caFile),
			Cert: filepath.Join(dir, name+".pem"),
			Key:  filepath.Join(dir, name+".key"),
		}
	}
	if err := dropForeign(files("node"), n); err != nil {
		return err
	}
	if _, err := cert.Ensure(files("node"), f.ca, func() (cert.Pair, error) { return f.ca.IssueNode(n.ID, n.Hosts) }); err != nil {
		return err
	}
	if err := dropForeign(files("server"), n); err != nil {
		return err
	}
	_, err := cert.Ensure(files("server"), f.ca, func() (cert.Pair, error) { return f.ca.IssueServer(n.Hosts) })
	return err
}

// dropForeign removes a certificate that names another node or other hosts, so
// that Ensure issues a new one.
func dropForeign(files cert.Files, n NodeCertificates) error {
	leaf, err := leafOf(files)
	if err != nil {
		return nil //nolint:nilerr // missing or broken: Ensure replaces it
	}
	mine := len(leaf.URIs) == 0 || leaf.URIs[0].Path == "/node/"+n.ID.String()
	hosts := append([]string{}, leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	wanted := slices.Sorted(slices.Values(n.Hosts))
	if mine && slices.Equal(slices.Sorted(slices.Values(hosts)), wanted) {
		return nil
	}
	return os.Remove(files.Cert)
}
