package authority

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"facet/node/cert"
)

// Names of the files of an authority that will replace the present one.
const (
	nextFile    = "next.pem"
	nextKeyFile = "next.key"
)

// Phase is a phase in the replacement of an authority.
type Phase int

// The phases. A certificate issued in one of them is accepted in the next.
const (
	// PhaseSettled means that there is one authority.
	PhaseSettled Phase = iota
	// PhaseTrusted means that there are two authorities, and the old one signs.
	PhaseTrusted
	// PhaseTakenOver means that there are two authorities, and the new one signs.
	// The key of the old one is removed.
	PhaseTakenOver
)

// Phase returns the phase of the replacement.
func (f *Folder) Phase() Phase {
	_, err := os.Stat(filepath.Join(f.dir, nextKeyFile))
	switch {
	case err == nil && f.ca.Trusted() > 1: // with one authority, the replacement was interrupted and starts again
		return PhaseTrusted
	case f.ca.Trusted() > 1:
		return PhaseTakenOver
	default:
		return PhaseSettled
	}
}

// next returns the files of the authority that will replace the present one.
func (f *Folder) next() cert.Files {
	return cert.Files{Cert: filepath.Join(f.dir, nextFile), Key: filepath.Join(f.dir, nextKeyFile)}
}

// loadNext loads the authority that will replace the present one. Its key has the
// present passphrase. It may also have the other one, if a change of the passphrase was
// interrupted.
func (f *Folder) loadNext(other string) (*cert.CA, error) {
	pair, err := readPair(f.next())
	if err != nil {
		return nil, err
	}
	if encrypted(pair.Key) {
		file := pair.Key
		pair.Key, err = decrypt(file, f.passphrase)
		if errors.Is(err, errWrongPassphrase) {
			pair.Key, err = decrypt(file, other)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: complete the change with \"facet cluster passphrase --authority %s\"", f.next().Key, err, f.dir)
		}
	}
	return parseCA(pair, f.next())
}

// halfSaved returns the successor if key is its key, else nil. So it is if Advance was
// interrupted when the successor's key had replaced the old one and its certificate had not.
// The next Advance takes the same step again.
func (f *Folder) halfSaved(key []byte) *cert.CA {
	successor, err := f.loadNext("")
	if err != nil {
		return nil
	}
	ca, err := parseCA(cert.Pair{Cert: successor.CertPEM(), Key: key}, f.next())
	if err != nil {
		return nil
	}
	return ca
}

// Advance moves to the next phase. The last phase is followed by the first.
func (f *Folder) Advance() error {
	var err error
	switch f.Phase() {
	case PhaseSettled:
		var successor *cert.CA
		if successor, err = f.ca.Successor(); err == nil {
			err = errors.Join(f.save(successor, f.next()), f.save(f.ca, f.files()))
		}
	case PhaseTrusted:
		var successor *cert.CA
		if successor, err = f.loadNext(""); err == nil {
			err = f.save(successor, f.files())
		}
		if err == nil {
			f.ca = successor
			err = errors.Join(remove(f.next().Key), remove(f.next().Cert))
		}
	default:
		f.ca = f.ca.Alone()
		err = f.save(f.ca, f.files())
	}
	if err != nil {
		return fmt.Errorf("replace the authority: %w", err)
	}
	return f.renewAdmin()
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
