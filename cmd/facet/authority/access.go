package authority

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"facet/node/cert"
)

// PassphraseFlag is the flag that names a file with the passphrase.
const PassphraseFlag = "passphrase-file"

// Access opens an authority. Every command that needs one opens it by an Access.
type Access struct {
	// Dir is the folder of the authority, and Flag the flag that names it.
	Dir, Flag string
	// Admin is the folder of the administrator's certificate. Empty means admin in Dir.
	Admin string
	// Passphrase finds the passphrase of the key.
	Passphrase Passphrase
	// Notices gets a line when the key is not encrypted, and when an old key stays on
	// the disk. It may be nil.
	Notices io.Writer
}

// Beside returns the folder of the authority of the node in dir. It lies beside that
// folder, so that a copy of the node's folder lacks it. A folder that "certs init" made
// is the authority's own.
func Beside(dir string) string {
	if _, err := os.Stat(filepath.Join(dir, caKeyFile)); err == nil {
		return dir
	}
	return filepath.Clean(dir) + "-authority"
}

// OpenPlain opens the authority in dir and the keys of its cluster, and creates what is
// missing. It encrypts nothing: clusters that are thrown away have such an authority.
func OpenPlain(dir, name string) (*Folder, error) {
	a := Access{Dir: dir}
	f, err := a.unlock(context.Background())
	if errors.Is(err, errNoAuthority) {
		f, err = a.create(name, "")
	}
	if err != nil {
		return nil, err
	}
	return f, errors.Join(f.ensureAdmin(), f.ensureKeys())
}

// Open opens the authority, which must exist. It renews the administrator's certificate,
// if that lies here, when less than a third of its life is left.
func (a Access) Open(ctx context.Context) (*Folder, error) {
	f, err := a.unlock(ctx)
	if err != nil {
		return nil, err
	}
	if f.passphrase == "" {
		f.notice(fmt.Sprintf("the authority's key %s is not encrypted: \"facet cluster passphrase --authority %s\" encrypts it", f.key(), a.Dir))
	}
	return f, f.renewAdmin()
}

// OpenOrCreate opens the authority, or creates one called name and encrypts its key. It
// creates the administrator's certificate if that is missing.
func (a Access) OpenOrCreate(ctx context.Context, name string) (*Folder, error) {
	f, err := a.Open(ctx)
	if errors.Is(err, errNoAuthority) {
		var passphrase string
		if passphrase, err = a.Passphrase.chosen(ctx, a.folder().key()); err == nil {
			f, err = a.create(name, passphrase)
		}
	}
	if err != nil {
		return nil, err
	}
	return f, f.ensureAdmin()
}

// OpenFor opens the authority, which must exist and be one of those in the file trusted. It creates
// the administrator's certificate if that is missing.
func (a Access) OpenFor(ctx context.Context, trusted string) (*Folder, error) {
	f, err := a.Open(ctx)
	if err == nil {
		err = f.shares(trusted)
	}
	if err != nil {
		return nil, err
	}
	return f, f.ensureAdmin()
}

// OpenWithKeys does the work of OpenOrCreate, and creates the keys of the cluster in
// the folder if they are missing.
func (a Access) OpenWithKeys(ctx context.Context, name string) (*Folder, error) {
	f, err := a.OpenOrCreate(ctx, name)
	if err != nil {
		return nil, err
	}
	return f, f.ensureKeys()
}

// ChangePassphrase encrypts the key with another passphrase, or encrypts a key that was
// not encrypted. The old file is overwritten where the file system allows it.
func (a Access) ChangePassphrase(ctx context.Context, to Passphrase) (*Folder, error) {
	f, err := a.unlock(ctx)
	if err != nil {
		return nil, err
	}
	before := f.passphrase
	if f.passphrase, err = to.chosen(ctx, f.key()); err != nil {
		return nil, err
	}
	// The successor first: if this is interrupted, the old passphrase still opens the key.
	if next, err := f.loadNext(before); err == nil {
		err = f.save(next, f.next())
		if err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return f, f.save(f.ca, f.files())
}

func (a Access) folder() *Folder { return &Folder{dir: a.Dir, admin: a.Admin, notices: a.Notices} }

// errNoAuthority is returned when both files of the authority are missing.
var errNoAuthority = errors.New("there is no authority")

// unlock reads the authority and decrypts its key. It changes nothing.
func (a Access) unlock(ctx context.Context) (*Folder, error) {
	f := a.folder()
	_, err1 := os.Stat(f.CA())
	_, err2 := os.Stat(f.key())
	if errors.Is(err1, fs.ErrNotExist) && errors.Is(err2, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s (%s is missing): name its folder with --%s", errNoAuthority, a.Dir, caKeyFile, a.Flag)
	}
	if errors.Is(err1, fs.ErrNotExist) && err2 == nil {
		return nil, fmt.Errorf("%s is missing: bring it back from a copy of the folder; if the authority was being created and that was interrupted, delete %s and start again", f.CA(), f.key())
	}
	pair, err := readPair(f.files())
	if err != nil {
		return nil, err
	}
	if encrypted(pair.Key) {
		if pair.Key, f.passphrase, err = a.Passphrase.unlock(ctx, f.key(), pair.Key); err != nil {
			return nil, err
		}
	}
	if f.ca, err = parseCA(pair, f.files()); err != nil {
		if successor := f.halfSaved(pair.Key); successor != nil {
			f.ca, err = successor, nil
		}
	}
	return f, err
}

// create creates an authority. An empty passphrase leaves its key unencrypted.
func (a Access) create(name, passphrase string) (f *Folder, err error) {
	f = a.folder()
	f.passphrase = passphrase
	if f.ca, err = cert.NewCA(name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the authority (--%s names another one): %w", a.Flag, err)
	}
	f.made = append(f.made, f.CA(), f.key())
	return f, f.save(f.ca, f.files())
}

// readPair reads the files of an authority.
func readPair(files cert.Files) (p cert.Pair, err error) {
	if p.Cert, err = cert.ReadFile(files.Cert); err != nil {
		return p, fmt.Errorf("load authority: %w", err)
	}
	if p.Key, err = cert.ReadFile(files.Key); err != nil {
		return p, fmt.Errorf("load authority: %w", err)
	}
	return p, nil
}

func parseCA(p cert.Pair, files cert.Files) (*cert.CA, error) {
	if strings.Contains(string(p.Key), "ENCRYPTED PRIVATE KEY") {
		return nil, fmt.Errorf("%s was encrypted by another program: decrypt it there, then run \"facet cluster passphrase\"", files.Key)
	}
	ca, err := cert.ParseCA(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", files.Cert, err)
	}
	return ca, nil
}
