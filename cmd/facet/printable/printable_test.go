package printable

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"
)

func TestTextShowsWhatWouldHide(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		if got := Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	f("größe\t12\n東京 👩‍🔬", "größe\t12\n東京 👩‍🔬")
	f("a\x1b[2Jb\rc\a\x00\x7f", `a\u001b[2Jb\u000dc\u0007\u0000\u007f`)
	f("\u009b31m\u2028\u2029", `\u009b31m\u2028\u2029`)
	f("invoice\u202egpj.exe\u2066\u200f", `invoice\u202egpj.exe\u2066\u200f`)
	f("\x9b31m\xff", "\ufffd31m\ufffd")
}

func TestRowHoldsNoFormula(t *testing.T) {
	t.Parallel()
	row := []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "＝1", "a=1", "", "\x1b=1", "7"}
	want := []string{"'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\t=1", "'＝1", "a=1", "", `\u001b=1`, "7"}
	if got := Row(row); !slices.Equal(got, want) || row[0] != "=1+1" {
		t.Errorf("%q of %q, want %q", got, row, want)
	}
}

// Output in JSON keeps its values, because the escapes are those of JSON.
func FuzzText(f *testing.F) {
	f.Add("\\\u202e\x1b\"\u0085\u2029👩‍🔬")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		var out bytes.Buffer
		if err := json.NewEncoder(Writer{&out}).Encode(text); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != text {
			t.Errorf("%q reads as %q: %v", out.Bytes(), back, err)
		}
		if shown := Text(out.String()); shown != out.String() {
			t.Errorf("%q is not shown as it is: %q", out.Bytes(), shown)
		}
	})
}
