package witness

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	cosignature "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"facet/node/datadir"
)

const keyBytesMax = 8 << 10

// Key is the key with which a witness cosigns.
type Key struct {
	note.Signer
	Public string // the text of the verifier key
}

// OpenKey reads a witness's key from a file, or makes one with a name, such as
// "audit.example.com/witness", if there is no file.
func OpenKey(file, name string) (Key, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if name == "" {
			return Key{}, fmt.Errorf("there is no key %s: name the witness with --name, and a key is made", file)
		}
		return makeKey(file, name)
	}
	if err != nil {
		return Key{}, fmt.Errorf("read the witness's key: %w", err)
	}
	lines := strings.Fields(string(text))
	if len(text) > keyBytesMax || len(lines) != 2 {
		return Key{}, fmt.Errorf("%s is no key of a witness: it has two lines, the secret and the public key", file)
	}
	return newKey(lines[0], lines[1])
}

func newKey(secret, public string) (Key, error) {
	s, err := cosignature.NewSignerForCosignatureV1(secret)
	if err != nil {
		return Key{}, fmt.Errorf("read the witness's key: %w", err)
	}
	v, err := cosignature.NewVerifierForCosignatureV1(public)
	if err != nil || v.Name() != s.Name() || v.KeyHash() != s.KeyHash() {
		return Key{}, errors.New("read the witness's key: its two lines don't belong together")
	}
	return Key{s, public}, nil
}

func makeKey(file, name string) (Key, error) {
	secret, plain, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return Key{}, fmt.Errorf("make the witness's key: %w", err)
	}
	public, err := cosignature.VKeyToCosignatureV1(plain)
	if err != nil {
		return Key{}, fmt.Errorf("make the witness's key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return Key{}, fmt.Errorf("make the witness's key: %w", err)
	}
	if err := datadir.WriteSynced(file, []byte(secret+"\n"+public+"\n")); err != nil {
		return Key{}, fmt.Errorf("make the witness's key: %w", err)
	}
	return newKey(secret, public)
}
