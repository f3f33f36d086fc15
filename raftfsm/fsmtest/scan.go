package fsmtest

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"facet/engine"
)

// Scanner looks for a template in the files of a folder: in clear text, and encrypted with
// any of the keys at any offset.
type Scanner struct {
	secrets  [][]byte
	clear    []byte // the first bytes of the plain text
	text     []byte // that is looked for in clear
	template engine.Template
}

// NewScanner returns a scanner for a template of at least four numbers. Each secret has
// seal.KeyBytes bytes.
func NewScanner(template engine.Template, secrets ...[]byte) Scanner {
	var clear []byte
	for _, x := range template {
		clear = binary.LittleEndian.AppendUint32(clear, math.Float32bits(x))
	}
	return Scanner{secrets, clear[:aes.BlockSize], clear[:aes.BlockSize], template}
}

// NewTextScanner returns a scanner for the note of a subject with this external id, of 11 to 23
// ASCII characters, a salt, and no user data. Clear text is found as the external id itself.
func NewTextScanner(externalID string, secrets ...[]byte) Scanner {
	note := append([]byte{1, 1, 0xa2, 1, 0x60 | byte(len(externalID))}, externalID...) // shard.SealNote
	return NewSealedScanner(note, externalID, secrets...)
}

// NewSealedScanner returns a scanner for a sealed text that begins with these plain bytes, at least
// aes.BlockSize. Clear text is found by a part of it.
func NewSealedScanner(plain []byte, part string, secrets ...[]byte) Scanner {
	return Scanner{secrets, plain[:aes.BlockSize], []byte(part), nil}
}

// Files returns the files of dir that hold the template, also inside zstd frames, or its codes. dir
// may change during the call.
func (s Scanner) Files(t testing.TB, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a removed file, or a folder whose files follow
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		if s.in(t, b) || s.coded(t, filepath.Base(path), b) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// in reports whether b, or a compressed frame in it, has the template.
func (s Scanner) in(t testing.TB, b []byte) bool {
	t.Helper()
	if bytes.Contains(b, s.text) || s.sealedIn(t, b) {
		return true
	}
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd}
	for at := bytes.Index(b, frame); at >= 0; {
		z, err := zstd.NewReader(bytes.NewReader(b[at:]), zstd.WithDecoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		plain, _ := io.ReadAll(io.LimitReader(z, 1<<28)) // bytes after the frame are an error
		z.Close()
		if bytes.Contains(plain, s.text) || s.sealedIn(t, plain) {
			return true
		}
		next := bytes.Index(b[at+1:], frame)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return false
}

// sealedIn reports whether b has the encrypted template. It tries every 12 bytes as a nonce
// and decrypts the block after it. GCM encrypts the first block with the counter 2.
func (s Scanner) sealedIn(t testing.TB, b []byte) bool {
	t.Helper()
	const nonce = 12
	for _, secret := range s.secrets {
		cipher, err := aes.NewCipher(secret)
		if err != nil {
			t.Fatal(err)
		}
		counter, stream := [aes.BlockSize]byte{aes.BlockSize - 1: 2}, make([]byte, aes.BlockSize)
		for i := 0; i+nonce+aes.BlockSize <= len(b); i++ {
			if binary.NativeEndian.Uint64(b[i+nonce:]) == 0 { // no ciphertext: most of a file of bbolt is empty
				continue
			}
			copy(counter[:], b[i:i+nonce])
			cipher.Encrypt(stream, counter[:])
			same := true
			for j := 0; same && j < aes.BlockSize; j++ {
				same = b[i+nonce+j]^stream[j] == s.clear[j]
			}
			if same {
				return true
			}
		}
	}
	return false
}
