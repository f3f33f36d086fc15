package memscan

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// random returns n bytes that follow from seed.
func random(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b) // never fails
	return b
}

func TestRunIsFoundAtAnyAlignment(t *testing.T) {
	t.Parallel()
	text := random(1, 1000)
	p := New()
	p.Add("text", text)
	f := func(from, to int, want bool) {
		t.Helper()
		memory := random(2, 4096)
		at := 1000 + from
		copy(memory[at:], text[from:to])
		memory[at+to-from] = ^text[min(to, len(text)-1)]
		memory[at-1] = ^text[max(from-1, 0)]
		var got []find
		p.search(memory, 1<<20, func(f find) { got = append(got, f) })
		if len(got) > 1 || (len(got) == 1) != want {
			t.Fatalf("bytes %d to %d: found %d runs", from, to, len(got))
		}
		if want && (got[0].address != int64(1<<20+at) || !bytes.Equal(got[0].text, text[from:to])) {
			t.Errorf("bytes %d to %d: found %v", from, to, got[0])
		}
	}
	for from := range 2 * runBytes {
		f(from, from+runBytes, true)
		f(from, from+runBytes-1, false)
	}
	f(0, 1000, true)
	f(7, 900, true)
}
