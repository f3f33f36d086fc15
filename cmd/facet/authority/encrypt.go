package authority

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	ascii "filippo.io/age/armor" //nolint:misspell // the library spells it so
)

// WorkFactor is the logarithm of scrypt's cost for a new key: 128 MiB, and about half a
// second. It is a variable only so that tests, which open many keys, can lower it.
var WorkFactor = 17

const (
	// workFactorMax is the highest cost that is accepted: 256 MiB, the choice of the
	// program age. It bounds what an altered file can take.
	workFactorMax = 18

	keyBytesMax = 64 << 10
)

// errWrongPassphrase is returned when a passphrase does not open a key.
var errWrongPassphrase = errors.New("the passphrase is wrong")

// encrypted reports whether a key file is in the format of age: its text form, which
// encrypt writes, or its binary form.
func encrypted(key []byte) bool {
	text := bytes.TrimSpace(key)
	return bytes.HasPrefix(text, []byte(ascii.Header)) || bytes.HasPrefix(text, []byte("age-encryption.org/"))
}

// encrypt encrypts key with a passphrase (https://age-encryption.org/v1).
func encrypt(key []byte, passphrase string) ([]byte, error) {
	recipient, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, fmt.Errorf("encrypt the authority's key: %w", err)
	}
	recipient.SetWorkFactor(WorkFactor)
	var out bytes.Buffer
	text := ascii.NewWriter(&out)
	w, err := age.Encrypt(text, recipient)
	if err == nil {
		_, err = w.Write(key)
	}
	if err == nil {
		err = errors.Join(w.Close(), text.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("encrypt the authority's key: %w", err)
	}
	return out.Bytes(), nil
}

// decrypt returns the key that encrypt was given, or errWrongPassphrase.
func decrypt(file []byte, passphrase string) ([]byte, error) {
	identity, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, errWrongPassphrase // it is empty
	}
	identity.SetMaxWorkFactor(workFactorMax)
	var in io.Reader = bytes.NewReader(file)
	if strings.HasPrefix(strings.TrimSpace(string(file)), ascii.Header) {
		in = ascii.NewReader(in)
	}
	r, err := age.Decrypt(in, identity)
	if errors.Is(err, age.ErrIncorrectIdentity) {
		return nil, errWrongPassphrase
	}
	if err != nil {
		return nil, fmt.Errorf("decrypt the authority's key: %w", err)
	}
	key, err := io.ReadAll(io.LimitReader(r, keyBytesMax))
	if err != nil {
		return nil, fmt.Errorf("decrypt the authority's key: %w", err)
	}
	return key, nil
}
