package tiles

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/id"
)

// CheckpointBytesMax is the most bytes of a signed checkpoint, with the cosignatures of witnesses.
const CheckpointBytesMax = 64 << 10

// ErrCheckpoint is returned for a text that is no checkpoint with a valid signature.
var ErrCheckpoint = errors.New("not a valid checkpoint")

// Checkpoint is the size and the root hash of the log with this origin.
type Checkpoint struct {
	Origin string
	tlog.Tree
}

// Origin returns the origin of a tenant's audit log. The log's key has the same name.
func Origin(cluster id.Cluster, tenant id.Tenant) string {
	return "facet/" + cluster.String() + "/" + tenant.String()
}

// Key returns the text of a log's verifier key. Open takes it.
func Key(origin string, key ed25519.PublicKey) (string, error) {
	text, err := note.NewEd25519VerifierKey(origin, key)
	if err != nil {
		return "", fmt.Errorf("write the key of a log: %w", err)
	}
	return text, nil
}

// KeyOrigin returns the origin of the log that a verifier key belongs to.
func KeyOrigin(key string) (string, error) {
	v, err := verifier(key)
	if err != nil {
		return "", err
	}
	return v.Name(), nil
}

func verifier(key string) (note.Verifier, error) {
	v, err := note.NewVerifier(strings.TrimSpace(key))
	if err != nil {
		return nil, fmt.Errorf("%w: the log's key can't be read; it has the form NAME+HASH+KEY", ErrCheckpoint)
	}
	return v, nil
}

// signer signs notes.
type signer struct {
	note.Verifier
	key ed25519.PrivateKey
}

// Sign returns the signature of a note's text.
func (s signer) Sign(text []byte) ([]byte, error) { return ed25519.Sign(s.key, text), nil }

// Sign returns the signed checkpoint.
func (c Checkpoint) Sign(key ed25519.PrivateKey) ([]byte, error) {
	public, err := Key(c.Origin, key.Public().(ed25519.PublicKey)) //nolint:forcetypeassert // by its doc
	if err != nil {
		return nil, err
	}
	v, err := verifier(public)
	if err != nil {
		return nil, err
	}
	signed, err := note.Sign(&note.Note{Text: c.String()}, signer{v, key})
	if err != nil {
		return nil, fmt.Errorf("sign a checkpoint: %w", err)
	}
	return signed, nil
}

// String returns the text that is signed: the origin, the size and the root hash.
func (c Checkpoint) String() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.N, c.Hash)
}

// Open returns the checkpoint that the owner of a verifier key has signed, with its note. The key's
// name must be the origin. Signatures by other keys count only if others has those. The error wraps
// ErrCheckpoint.
func Open(signed []byte, key string, others ...note.Verifier) (c Checkpoint, n *note.Note, err error) {
	v, err := verifier(key)
	if err != nil {
		return c, nil, err
	}
	if len(signed) > CheckpointBytesMax {
		return c, nil, fmt.Errorf("%w: it has more than %d bytes", ErrCheckpoint, CheckpointBytesMax)
	}
	n, err = note.Open(signed, note.VerifierList(append(others, v)...))
	if _, unsigned := errors.AsType[*note.UnverifiedNoteError](err); unsigned {
		return c, nil, fmt.Errorf("%w: the log's key %s has not signed it", ErrCheckpoint, v.Name())
	}
	if err != nil {
		return c, nil, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	byLog := false
	for _, s := range n.Sigs {
		// Bits at the end of a base64 text may count nothing: a signature has one form.
		if _, err := base64.StdEncoding.Strict().DecodeString(s.Base64); err != nil {
			return c, nil, fmt.Errorf("%w: the signature of %s has another form", ErrCheckpoint, s.Name)
		}
		byLog = byLog || s.Name == v.Name() && s.Hash == v.KeyHash()
	}
	if !byLog {
		return c, nil, fmt.Errorf("%w: the log's key %s has not signed it", ErrCheckpoint, v.Name())
	}
	if c, err = parse(n.Text); err != nil {
		return c, nil, err
	}
	if c.Origin != v.Name() {
		return c, nil, fmt.Errorf("%w: it is of the log %s, and the key is that of %s", ErrCheckpoint, c.Origin, v.Name())
	}
	return c, n, nil
}

// Claimed returns what a signed checkpoint says, without a look at its signature. The error wraps
// ErrCheckpoint.
func Claimed(signed []byte) (Checkpoint, error) {
	if len(signed) > CheckpointBytesMax {
		return Checkpoint{}, fmt.Errorf("%w: it has more than %d bytes", ErrCheckpoint, CheckpointBytesMax)
	}
	text, _, _ := strings.Cut(string(signed), "\n\n")
	return parse(text + "\n")
}

// parse reads the text of a checkpoint. Lines of extensions are refused: facet writes none, and
// nobody could check them.
func parse(text string) (c Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[0] == "" || lines[3] != "" {
		return c, fmt.Errorf("%w: it must have three lines: origin, size and root hash", ErrCheckpoint)
	}
	c.Origin = lines[0]
	if c.N, err = strconv.ParseInt(lines[1], 10, 64); err == nil {
		c.Hash, err = tlog.ParseHash(lines[2])
	}
	if err != nil || c.N < 0 || c.String() != text {
		return c, fmt.Errorf("%w: its size or root hash can't be read", ErrCheckpoint)
	}
	if empty, _ := tlog.TreeHash(0, nil); c.N == 0 && c.Hash != empty {
		return c, fmt.Errorf("%w: an empty log has another root hash", ErrCheckpoint)
	}
	return c, nil
}
