package receipt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"facet/internal/id"
)

const (
	// title is the first line of a receipt.
	title = "facet erasure receipt"
	// ed25519Key is the byte that stands before the keys of notes.
	ed25519Key = 1
)

// ErrReceipt is returned for a text that is no receipt with a valid signature.
var ErrReceipt = errors.New("not a valid receipt")

// PublicKey returns the text of a cluster's public key. Open takes it.
func PublicKey(of id.Cluster, key ed25519.PublicKey) (string, error) {
	text, err := note.NewEd25519VerifierKey(signerName(of), key)
	if err != nil {
		return "", fmt.Errorf("write the public key: %w", err)
	}
	return text, nil
}

func signerName(of id.Cluster) string { return "facet-" + of.String() }

// Sign returns the signed receipt.
func Sign(r *Receipt, key ed25519.PrivateKey) ([]byte, error) {
	public, err := PublicKey(r.Cluster, key.Public().(ed25519.PublicKey)) //nolint:forcetypeassert // by its doc
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(public, "+", 3) // name, hash, key; a base64 text may have a plus sign
	secret := append([]byte{ed25519Key}, key.Seed()...)
	signer, err := note.NewSigner(fmt.Sprintf("PRIVATE+KEY+%s+%s+%s", parts[0], parts[1], base64.StdEncoding.EncodeToString(secret)))
	if err != nil {
		return nil, fmt.Errorf("sign a receipt: %w", err)
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write a receipt: %w", err)
	}
	signed, err := note.Sign(&note.Note{Text: title + "\n" + string(text) + "\n"}, signer)
	if err != nil {
		return nil, fmt.Errorf("sign a receipt: %w", err)
	}
	if len(signed) > BytesMax {
		return nil, fmt.Errorf("a receipt of %d bytes is too long: erase fewer subjects at a time", len(signed))
	}
	return signed, nil
}

// Open returns the receipt that the owner of a public key has signed. The error wraps ErrReceipt.
func Open(signed []byte, publicKey string) (*Receipt, error) {
	verifier, err := note.NewVerifier(strings.TrimSpace(publicKey))
	if err != nil {
		return nil, fmt.Errorf("%w: the public key can't be read; facet cluster status shows it", ErrReceipt)
	}
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if _, unsigned := errors.AsType[*note.UnverifiedNoteError](err); unsigned {
		return nil, fmt.Errorf("%w: another key has signed it", ErrReceipt)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	// A note may have further signatures, and bits at the end of a base64 text that count nothing.
	// A receipt has one form.
	if _, err := base64.StdEncoding.Strict().DecodeString(opened.Sigs[0].Base64); err != nil || len(opened.Sigs)+len(opened.UnverifiedSigs) != 1 {
		return nil, fmt.Errorf("%w: its signature has another form", ErrReceipt)
	}
	text, ok := strings.CutPrefix(opened.Text, title+"\n")
	if !ok {
		return nil, fmt.Errorf("%w: the note is about something else", ErrReceipt)
	}
	var r Receipt
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	if r.Format != Format || len(r.Subjects) > SubjectsMax || verifier.Name() != signerName(r.Cluster) {
		return nil, fmt.Errorf("%w: it has format %d of cluster %s", ErrReceipt, r.Format, r.Cluster)
	}
	return &r, nil
}
