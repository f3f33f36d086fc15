package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
)

var long = strings.Repeat("Zm9v", outlineMin/4)

func TestOutlineLeavesOutLongPlainValues(t *testing.T) {
	t.Parallel()
	f := func(body, want string) {
		t.Helper()
		o := outlineOf([]byte(body))
		if string(o.text) != want {
			t.Errorf("%.60s: outline %.60s, want %.60s", body, o.text, want)
		}
	}
	same := func(body string) { t.Helper(); f(body, body) }
	f(`{"probe":"`+long+`","limit":5}`, `{"probe":"","limit":5}`)
	f("{\"a\" : \n\""+long+`","b":{"c":"`+long+`"}}`, "{\"a\" : \n\"\",\"b\":{\"c\":\"\"}}")
	f(`{"face":"`+long+`~ 1","id":"x"}`, `{"face":"","id":"x"}`)
	same(`{"face":"` + long[1:] + `"}`)
	same(`{"` + long + `":1}`)
	same(`["` + long + `"]`)
	same(`{"face":"` + long + `\n"}`)
	same(`{"face":"` + long + "\n" + `"}`)
	same(`{"face":"` + long + "é" + `"}`)
	same(`{"face":"` + long)
	same(strings.Repeat(`"":`, outlinePairs) + `"` + long + `"`)
}

func TestBytesAreFoundAtEveryOffset(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("~ !"), 30)
	for n := range len(text) {
		for at := range n {
			for c := range 256 {
				part := slices.Clone(text[:n])
				part[at] = byte(c)
				if got, want := hasBelow(part, ' '), c < ' '; got != want {
					t.Fatalf("byte %#x at %d of %d: below %v, want %v", c, at, n, got, want)
				}
				if got, want := isASCII(part), c < 0x80; got != want {
					t.Fatalf("byte %#x at %d of %d: ASCII %v, want %v", c, at, n, got, want)
				}
			}
		}
	}
}

// An outline changes no answer. In the fuzzed texts a tilde stands for a string
// that is left out.
func FuzzOutline(f *testing.F) {
	for _, s := range []string{
		`{"face":"~","limit":1}`, `{"~":1,"~":2}`, `{"x":{"face":"~"},"face":"~!"}`, `{"face":"~","face":"~"}`,
		`{"face":["~","~"]}`, `{"face":"~\u0020"}`, `{"face":"~" "~"}`, "{\"face\":\"~\xff\"}", `{"face":~}`, `{"a":"~"},`, `:"~"`,
	} {
		f.Add([]byte(s))
	}
	known := []string{"face", "limit", "x"}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = bytes.ReplaceAll(text[:min(len(text), 200)], []byte("~"), []byte(long))
		got, gotErr := readObject(text, known...)
		want, wantErr := readOutline(outline{body: text, text: text}, known)
		if (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() || !cmp.Equal(got, want) {
			t.Fatalf("%q: got %v, %v; want %v, %v", text, got, gotErr, want, wantErr)
		}
	})
}

// plainBase64 does the work of decodeBase64 with the standard library alone, for a
// text without a data prefix.
func plainBase64(text []byte) ([]byte, bool) {
	text = bytes.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n\f\v", r) {
			return -1
		}
		return r
	}, text)
	encoding := base64.RawStdEncoding
	if bytes.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	bare := bytes.TrimRight(text, "=")
	if n := len(text) - len(bare); n > 2 || n > 0 && len(text)%4 != 0 {
		return nil, false
	}
	plain := make([]byte, encoding.DecodedLen(len(bare)))
	n, err := encoding.Decode(plain, bare)
	return plain[:n], err == nil
}

// The fast decoder agrees with the standard library. It works on blocks: the fuzzed
// text stands in the middle of a block, between two blocks, and at the end.
func FuzzLongBase64(f *testing.F) {
	for _, s := range []string{"Zm9v", "Zg==", " Zg = =", "-_", "+/+", "\n", "/", "_", "\x00", "\x8f", "é", "\u00a0", "=", "Zh=="} {
		f.Add([]byte(s), byte(40), byte(33))
	}
	f.Fuzz(func(t *testing.T, text []byte, before, behind byte) {
		if !bytes.ContainsFunc(text, func(r rune) bool { return r == 0xfffd }) && len(text) < 1000 {
			whole := slices.Concat([]byte(long[:before]), text, []byte(long[:behind]))
			got, ok := decodeBase64(slices.Clone(whole))
			want, wantOK := plainBase64(whole)
			if ok != wantOK || ok && !bytes.Equal(got, want) {
				t.Fatalf("%q: got %q, %v; want %q, %v", whole, got, ok, want, wantOK)
			}
		}
	})
}

// BenchmarkBody prints the time for JSON and base64 of a body of 400 KB, and how
// many times as long the standard library takes. The two run in turns.
func BenchmarkBody(b *testing.B) {
	image := make([]byte, 300_000)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(image) // it never fails
	body, err := json.Marshal(map[string]any{"probe": image, "limit": 5})
	must.Do(b, err)
	text := make([]byte, len(body))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var spent [2]int64
	for b.Loop() {
		copy(text, body)
		spent[0] += took(func() {
			o, err := readObject(text, "probe", "threshold", "limit", "tags")
			must.Do(b, err)
			if got, err := o.image("probe"); err != nil || len(got) != len(image) {
				b.Fatal(len(got), err)
			}
		})
		b.StopTimer()
		spent[1] += took(func() {
			var want struct{ Probe []byte }
			must.Do(b, json.Unmarshal(body, &want))
		})
		b.StartTimer()
	}
	b.ReportMetric(float64(spent[0])/1e6/float64(b.N), "ms/body")
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "x-stdlib")
}

func took(do func()) int64 {
	begin := time.Now()
	do()
	return time.Since(begin).Nanoseconds()
}
