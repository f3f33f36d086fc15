package authority

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ascii "filippo.io/age/armor" //nolint:misspell // the library spells it so

	"facet/internal/must"
)

const (
	first  = "the first passphrase"
	second = "the second passphrase"
)

func TestMain(m *testing.M) {
	WorkFactor = 10
	os.Exit(m.Run())
}

func access(dir, passphrase string) Access {
	return Access{Dir: dir, Flag: "authority", Passphrase: Passphrase{Text: passphrase, Flag: PassphraseFlag}}
}

// bytesIn returns the bytes of the files in dir and its folders, by name.
func bytesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must.Do(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all[name] = bytesOf(t, name)
		}
		return err
	}))
	return all
}

func equal(a, b map[string]string) bool {
	for name, text := range a {
		if b[name] != text {
			return false
		}
	}
	return len(a) == len(b)
}

// typed answers prompts like a person at a terminal.
func typed(lines ...string) func(context.Context, string) (string, error) {
	return func(context.Context, string) (string, error) {
		if len(lines) == 0 {
			return "", errors.New("asked once too often")
		}
		line := lines[0]
		lines = lines[1:]
		return line, nil
	}
}

func TestNewAuthorityKeyIsEncrypted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	f, err := access(dir, first).OpenOrCreate(t.Context(), "test")
	must.Do(t, err)
	key := bytesOf(t, f.key())
	if !strings.HasPrefix(key, "-----BEGIN AGE ENCRYPTED FILE-----") {
		t.Errorf("the key starts with %.40q", key)
	}
	again, err := access(dir, first).Open(t.Context())
	if err != nil || !again.ca.Certificate().Equal(f.ca.Certificate()) {
		t.Errorf("opened again: %v", err)
	}
	for _, name := range []string{f.key(), f.CA()} {
		if strings.Contains(bytesOf(t, name), "PRIVATE KEY") {
			t.Errorf("%s has a key in clear", name)
		}
	}
}

func TestWrongPassphraseChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := access(dir, first).OpenOrCreate(t.Context(), "test")
	must.Do(t, err)
	must.Do(t, os.Remove(filepath.Join(f.Admin(), "admin.pem"))) // opening would renew it
	before := bytesIn(t, dir)
	fails := func(a Access, want string) {
		t.Helper()
		_, err := a.Open(t.Context())
		_, err2 := a.ChangePassphrase(t.Context(), Passphrase{Text: second})
		_, err3 := a.OpenWithKeys(t.Context(), "test")
		for _, err := range []error{err, err2, err3} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		if !equal(before, bytesIn(t, dir)) {
			t.Error("files changed")
		}
	}
	fails(access(dir, second), "the passphrase in FACET_AUTHORITY_PASSPHRASE is not that of")
	fails(access(dir, ""), "give --passphrase-file FILE")
	a := access(dir, "")
	a.Passphrase.File = filepath.Join(dir, "none")
	fails(a, "read the passphrase of --passphrase-file")
	empty := filepath.Join(t.TempDir(), "empty")
	must.Do(t, os.WriteFile(empty, []byte("\nsecond line\n"), 0o600))
	a.Passphrase.File = empty
	fails(a, "must be a passphrase")
}

func TestTerminalHasThreeAttempts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := access(dir, first).OpenOrCreate(t.Context(), "test")
	must.Do(t, err)
	a := access(dir, "")
	a.Passphrase.Ask = typed("wrong", "", first)
	if _, err := a.Open(t.Context()); err != nil {
		t.Errorf("right at the third attempt: %v", err)
	}
	a.Passphrase.Ask = typed("wrong", "wrong", "wrong", first)
	if _, err := a.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "3 wrong passphrases for "+f.key()) {
		t.Errorf("after three wrong ones: %v", err)
	}
}

func TestNewPassphraseIsTypedTwice(t *testing.T) {
	t.Parallel()
	f := func(want string, lines ...string) {
		t.Helper()
		got, err := Passphrase{Ask: typed(lines...)}.chosen(t.Context(), "ca.key")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", lines, got, err)
		}
	}
	f(first, first, first)
	f(second, first, second, second, second)
	f(first, "short", first, first)
	f("", "short", "", "short")
	f("", first, second, first, second, first, second)
}

// The old bytes are overwritten, not only unlinked.
func TestChangeOverwritesOldKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain, err := OpenPlain(dir, "test")
	must.Do(t, err)
	old, err := os.Open(plain.key())
	must.Do(t, err)
	defer old.Close()
	var notices bytes.Buffer
	a := access(dir, "")
	a.Notices = &notices
	if _, err := a.Open(t.Context()); err != nil || !strings.Contains(notices.String(), `"facet cluster passphrase --authority `+dir+`" encrypts it`) {
		t.Errorf("a key without a passphrase: %v, %q", err, notices.String())
	}
	_, err = a.ChangePassphrase(t.Context(), Passphrase{Text: first})
	must.Do(t, err)
	b, err := io.ReadAll(old)
	if err != nil || len(b) == 0 || bytes.Trim(b, "\x00") != nil {
		t.Errorf("the old file has %q, %v", b, err)
	}
	f, err := access(dir, first).Open(t.Context())
	if err != nil || !f.ca.Certificate().Equal(plain.ca.Certificate()) {
		t.Errorf("with the passphrase: %v", err)
	}
	if _, err := access(dir, first).ChangePassphrase(t.Context(), Passphrase{Text: second}); err != nil {
		t.Error(err)
	}
	if _, err := access(dir, first).Open(t.Context()); err == nil {
		t.Error("the old passphrase still opens the key")
	}
}

func TestOtherHardLinkOfOldKeyIsReported(t *testing.T) {
	t.Parallel()
	dir, copies := t.TempDir(), t.TempDir()
	plain, err := OpenPlain(dir, "test")
	must.Do(t, err)
	link := filepath.Join(copies, "ca.key")
	must.Do(t, os.Link(plain.key(), link))
	before := bytesOf(t, link)
	var notices bytes.Buffer
	a := access(dir, "")
	a.Notices = &notices
	_, err = a.ChangePassphrase(t.Context(), Passphrase{Text: first})
	must.Do(t, err)
	if bytesOf(t, link) != before || !strings.Contains(notices.String(), "another name") {
		t.Errorf("notices %q", notices.String())
	}
}

// A rotation keeps the passphrase in each of its steps.
func TestSuccessorIsEncryptedToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := access(dir, first).OpenOrCreate(t.Context(), "test")
	must.Do(t, err)
	passphrase := first
	for step := range 3 {
		f, err := access(dir, passphrase).Open(t.Context())
		must.Do(t, err)
		must.Do(t, f.Advance())
		for name, text := range bytesIn(t, dir) {
			if filepath.Dir(name) == dir && strings.Contains(text, "PRIVATE KEY") {
				t.Errorf("step %d: %s has a key in clear", step+1, filepath.Base(name))
			}
		}
		if step == 0 { // in the middle of the rotation
			_, err := access(dir, first).ChangePassphrase(t.Context(), Passphrase{Text: second})
			must.Do(t, err)
			passphrase = second
		}
	}
}

// The change stops after the successor's key has the new passphrase.
func TestInterruptedChangeIsCompleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := access(dir, first).OpenOrCreate(t.Context(), "test")
	must.Do(t, err)
	f, err := access(dir, first).Open(t.Context())
	must.Do(t, err)
	must.Do(t, f.Advance())
	key := bytesOf(t, f.key())
	_, err = access(dir, first).ChangePassphrase(t.Context(), Passphrase{Text: second})
	must.Do(t, err)
	must.Do(t, os.WriteFile(f.key(), []byte(key), 0o600))

	f, err = access(dir, first).Open(t.Context())
	must.Do(t, err)
	if err := f.Advance(); err == nil || !strings.Contains(err.Error(), "complete the change") {
		t.Errorf("the next step of the rotation: %v", err)
	}
	_, err = access(dir, first).ChangePassphrase(t.Context(), Passphrase{Text: second})
	must.Do(t, err)
	f, err = access(dir, second).Open(t.Context())
	must.Do(t, err)
	if err := f.Advance(); err != nil || f.Phase() != PhaseTakenOver {
		t.Errorf("after the change: %v, phase %d", err, f.Phase())
	}
}

// The second step stops between the successor's key and its certificate.
func TestInterruptedTakeoverIsRepeated(t *testing.T) {
	t.Parallel()
	for _, passphrase := range []string{"", first} {
		dir := t.TempDir()
		f, err := access(dir, passphrase).create("test", passphrase)
		must.Do(t, err)
		must.Do(t, f.Advance())
		old, half := bytesOf(t, f.CA()), bytesIn(t, dir)
		successor, err := f.loadNext("")
		must.Do(t, err)
		must.Do(t, f.Advance())
		half[f.key()] = bytesOf(t, f.key())
		for name, text := range half {
			must.Do(t, os.WriteFile(name, []byte(text), 0o600))
		}

		f, err = access(dir, passphrase).Open(t.Context())
		must.Do(t, err)
		if !f.ca.Certificate().Equal(successor.Certificate()) || f.Phase() != PhaseTrusted || bytesOf(t, f.CA()) != old {
			t.Errorf("opened: %v, phase %d", f.ca.Certificate().SerialNumber, f.Phase())
		}
		must.Do(t, f.Advance())
		f, err = access(dir, passphrase).Open(t.Context())
		must.Do(t, err)
		if !f.ca.Certificate().Equal(successor.Certificate()) || f.Phase() != PhaseTakenOver || f.ca.Trusted() != 2 {
			t.Errorf("after the same step again: phase %d", f.Phase())
		}
	}
}

// The library's own bound is 4 GiB.
func TestCostlyKeyFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := OpenPlain(dir, "test")
	must.Do(t, err)
	key := []byte(bytesOf(t, f.key()))
	file, err := encrypt(key, first)
	must.Do(t, err)
	file, err = io.ReadAll(ascii.NewReader(bytes.NewReader(file)))
	must.Do(t, err)
	must.Do(t, os.WriteFile(f.key(), file, 0o600))
	if _, err = access(dir, first).Open(t.Context()); err != nil {
		t.Errorf("the binary form: %v", err)
	}
	must.Do(t, os.WriteFile(f.key(), bytes.Replace(file, []byte(" 10\n"), []byte(" 19\n"), 1), 0o600))
	began := time.Now()
	_, err = access(dir, first).Open(t.Context())
	if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "work factor too large") || took > time.Second || !strings.Contains(err.Error(), "19") {
		t.Errorf("got %v after %v", err, took)
	}
	must.Do(t, os.WriteFile(f.key(), bytes.Replace(key, []byte("PRIVATE"), []byte("ENCRYPTED PRIVATE"), 2), 0o600))
	if _, err = access(dir, first).Open(t.Context()); err == nil || !strings.Contains(err.Error(), "encrypted by another program") {
		t.Errorf("a key of another program: %v", err)
	}
}

func TestAdminCertificateOfOthersIsKept(t *testing.T) {
	t.Parallel()
	other, err := OpenPlain(t.TempDir(), "test")
	must.Do(t, err)
	before := bytesIn(t, other.Admin())
	dir := t.TempDir()
	_, err = OpenPlain(dir, "test")
	must.Do(t, err)
	a := access(dir, "")
	a.Admin = other.Admin()
	if _, err := a.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "are not of the authority in") {
		t.Errorf("got %v", err)
	}
	if !equal(before, bytesIn(t, other.Admin())) {
		t.Error("the other cluster's certificate changed")
	}
}

func FuzzDecryptNeverPanics(f *testing.F) {
	file, err := encrypt([]byte("key"), first)
	must.Do(f, err)
	f.Add(file)
	f.Add([]byte("age-encryption.org/v1\n-> scrypt AAAAAAAAAAAAAAAAAAAAAA 18\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if key, err := decrypt(file, first); encrypted(file) && err == nil && string(key) != "key" {
			t.Errorf("decrypted %q", key)
		}
	})
}
