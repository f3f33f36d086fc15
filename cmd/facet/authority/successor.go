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

// Advance moves to the next phase. The last phase is followed by the first.
func (f *Folder) Advance() error {
	next := cert.Files{Cert: filepath.Join(f.dir, nextFile), Key: filepath.Join(f.dir, nextKeyFile)}
	var err error
	switch f.Phase() {
	case PhaseSettled:
		var successor *cert.CA
		if successor, err = f.ca.Successor(); err == nil {
			err = errors.Join(successor.Save(next.Cert, next.Key), f.ca.Save(f.CA(), f.key()))
		}
	case PhaseTrusted:
		var successor *cert.CA
		if successor, err = cert.LoadCA(next.Cert, next.Key); err == nil {
			err = successor.Save(f.CA(), f.key())
		}
		if err == nil {
			f.ca = successor
			err = errors.Join(remove(next.Key), remove(next.Cert))
		}
	default:
		f.ca = f.ca.Alone()
		err = f.ca.Save(f.CA(), f.key())
	}
	if err != nil {
		return fmt.Errorf("replace the authority: %w", err)
	}
	return f.ensureAdmin()
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
