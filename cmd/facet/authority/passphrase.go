package authority

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// PassphraseVariable is the environment variable that may have the passphrase.
const PassphraseVariable = "FACET_AUTHORITY_PASSPHRASE"

const (
	passphraseMin      = 12 // characters
	passphraseBytesMax = 1 << 10
	attemptsMax        = 3 // on a terminal
)

// Passphrase finds the passphrase of an authority's key: in a file, else in a text,
// else on the terminal.
type Passphrase struct {
	// File is a file whose first line is the passphrase, and Flag the flag that names it.
	File, Flag string
	// Text is the passphrase, if File is empty.
	Text string
	// Ask prints a prompt on the terminal and returns what was typed there, unseen.
	// It is nil without a terminal.
	Ask func(ctx context.Context, prompt string) (string, error)
}

// missing returns the error for a passphrase that can't be found.
func (p Passphrase) missing(key string) error {
	instead := ""
	if p.Flag == PassphraseFlag {
		instead = ", or set " + PassphraseVariable
	}
	return fmt.Errorf("the passphrase of %s is needed, and there is no terminal to ask for it: give --%s FILE, a file whose first line is the passphrase%s",
		key, p.Flag, instead)
}

// given returns the passphrase of File or Text, or "" if neither is set.
func (p Passphrase) given() (string, error) {
	if p.File == "" {
		return p.Text, nil
	}
	f, err := os.Open(p.File)
	if err != nil {
		return "", fmt.Errorf("read the passphrase of --%s: %w", p.Flag, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, passphraseBytesMax+1))
	if err != nil {
		return "", fmt.Errorf("read the passphrase of --%s: %w", p.Flag, err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" || len(line) > passphraseBytesMax {
		return "", fmt.Errorf("the first line of %s must be a passphrase of 1 to %d bytes", p.File, passphraseBytesMax)
	}
	return line, nil
}

// origin names the place of a passphrase that was not typed.
func (p Passphrase) origin() string {
	if p.File != "" {
		return p.File
	}
	return PassphraseVariable
}

// chosen returns a passphrase for a new key file. On a terminal it is typed twice.
func (p Passphrase) chosen(ctx context.Context, key string) (string, error) {
	given, err := p.given()
	switch {
	case err != nil:
		return "", err
	case given != "" && tooShort(given):
		return "", fmt.Errorf("the passphrase in %s has fewer than %d characters: choose a longer one", p.origin(), passphraseMin)
	case given != "":
		return given, nil
	case p.Ask == nil:
		return "", p.missing(key)
	}
	prompt := fmt.Sprintf("new passphrase for %s (at least %d characters): ", key, passphraseMin)
	for range attemptsMax {
		once, err := p.Ask(ctx, prompt)
		if err != nil {
			return "", err
		}
		if tooShort(once) {
			prompt = fmt.Sprintf("it has fewer than %d characters; a longer one: ", passphraseMin)
			continue
		}
		again, err := p.Ask(ctx, "the same passphrase again: ")
		if err != nil || once == again {
			return once, err
		}
		prompt = "the two differ; once more, new passphrase: "
	}
	return "", fmt.Errorf("no passphrase was chosen in %d attempts: nothing has changed", attemptsMax)
}

func tooShort(passphrase string) bool { return utf8.RuneCountInString(passphrase) < passphraseMin }

// unlock decrypts the bytes of a key file, and returns the passphrase too. On a
// terminal there are three attempts.
func (p Passphrase) unlock(ctx context.Context, key string, file []byte) (opened []byte, passphrase string, err error) {
	given, err := p.given()
	if err != nil {
		return nil, "", err
	}
	if given != "" {
		opened, err = decrypt(file, given)
		if errors.Is(err, errWrongPassphrase) {
			err = fmt.Errorf("the passphrase in %s is not that of %s: nothing has changed", p.origin(), key)
		}
		return opened, given, err
	}
	if p.Ask == nil {
		return nil, "", p.missing(key)
	}
	prompt := fmt.Sprintf("passphrase of %s: ", key)
	for range attemptsMax {
		typed, err := p.Ask(ctx, prompt)
		if err != nil {
			return nil, "", err
		}
		opened, err := decrypt(file, typed)
		if !errors.Is(err, errWrongPassphrase) {
			return opened, typed, err
		}
		prompt = "this passphrase is wrong; try again: "
	}
	return nil, "", fmt.Errorf("%d wrong passphrases for %s: nothing has changed", attemptsMax, key)
}
