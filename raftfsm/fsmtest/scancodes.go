package fsmtest

import (
	"bytes"
	"encoding/hex"
	"testing"

	"facet/shard/codes"
	"facet/shard/kernel"
	"facet/shard/seal"
	"facet/shard/segment"
)

// coded reports whether a file of codes, which b is or the start of it, has those of the template. It
// knows codes without a spectrum only.
func (s Scanner) coded(t testing.TB, name string, b []byte) bool {
	t.Helper()
	if s.template == nil || !segment.IsCompanion(name) {
		return false
	}
	var of segment.Hash
	if _, err := hex.Decode(of[:], []byte(name[:2*len(of)])); err != nil {
		t.Fatal(err)
	}
	heads, _ := codes.Heads(bytes.NewReader(b), int64(len(b))) // those before the end of an unfinished one
	row := s.rowCode(t)
	var o codes.Opener
	for _, h := range heads {
		for _, secret := range s.secrets {
			key, err := seal.NewKey(secret)
			if err != nil {
				t.Fatal(err)
			}
			if _, blocks, err := o.Open(bytes.NewReader(b), of, h, key); err == nil && bytes.Contains(blocks, row) {
				return true
			}
		}
	}
	return false
}

// rowCode returns the 8-bit codes of the template, as a block has them.
func (s Scanner) rowCode(t testing.TB) []byte {
	t.Helper()
	arena, owners := kernel.NewArena(0), new(kernel.OwnerList)
	m, err := kernel.New(arena, len(s.template), owners)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, m.BlockBytes())
	slot, err := m.Add(owners.Add(&kernel.Owner{}, nil), s.template)
	if err != nil || !m.CopyCodes(block, kernel.BlockRows-1, slot) {
		t.Fatalf("the template has no codes: %v", err)
	}
	m.Free()
	if err := arena.Close(); err != nil {
		t.Fatal(err)
	}
	return block[len(block)-len(s.template)/64*64:] // the last row of the block, in whole lines
}
