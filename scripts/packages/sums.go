package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	sumsFile = "SHA256SUMS"
	// signatureSpace keeps a signature of this key over anything else from counting here (ssh-keygen -n).
	signatureSpace = "facet-release"
)

// named checks that CONTACT names whom to write to about security and support.
func (b *builder) named() error {
	text, err := os.ReadFile(filepath.Join(b.root, "CONTACT"))
	if err != nil {
		return err
	}
	for _, subject := range []string{"security", "support"} {
		_, rest, _ := strings.Cut("\n"+string(text), "\n"+subject+":")
		who, _, _ := strings.Cut(rest, "\n")
		if who = strings.TrimSpace(who); who == "" || who == "nobody yet" {
			return fmt.Errorf("CONTACT names nobody for %s: write an address into it, or build without KEY, for a trial", subject)
		}
	}
	return nil
}

// sums writes the checksums of the files and, with a key, their signature.
func (b *builder) sums(ctx context.Context, files []string) error {
	slices.Sort(files)
	var text strings.Builder
	for _, name := range files {
		sum, err := sumOf(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, filepath.Base(name))
	}
	sums := filepath.Join(b.dist, sumsFile)
	if err := os.WriteFile(sums, []byte(text.String()), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(sums + ".sig"); err != nil {
		return err
	}
	if b.key == "" {
		b.say("%s is not signed: -key FILE (make packages KEY=FILE) signs it", sumsFile)
		return nil
	}
	_, err := b.command(ctx, nil, "ssh-keygen", "-q", "-Y", "sign", "-f", b.key, "-n", signatureSpace, sums)
	return err
}

func sumOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
