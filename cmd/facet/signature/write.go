package signature

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"facet/cmd/facet/table"
	"facet/node/sigv4"
)

// Write prints an explanation: each step, the first problem with its fix, and the texts that were
// signed. Signed values are not shortened, so these lines may be long.
func Write(w io.Writer, e sigv4.Explanation) error {
	first := slices.IndexFunc(e.Steps, func(s sigv4.Step) bool { return s.Problem != "" })
	for _, s := range e.Steps {
		mark, text := "ok", s.Got
		if s.Problem != "" {
			mark, text = "refused", s.Problem
		}
		fmt.Fprintf(w, "%-8s %-17s %s\n", mark, s.Name, table.Wrap(strings.Fields(text), " ", indent))
		for _, more := range []struct{ what, text string }{{"got", s.Got}, {"expected", s.Want}, {"do", s.Fix}} {
			if s.Problem != "" && more.text != "" {
				fmt.Fprintf(w, "%26s %-8s %s\n", "", more.what, table.Wrap(strings.Fields(more.text), " ", indent+9))
			}
		}
	}
	if e.Canonical != "" {
		fmt.Fprintf(w, "\ncanonical request, in the server's form\n%s", marked(e.Canonical, ""))
		fmt.Fprintf(w, "\nstring to sign\n%s", marked(e.StringToSign, ""))
	}
	if e.Signed != "" {
		fmt.Fprintf(w, "\ncanonical request, as it was signed (> marks what differs)\n%s", marked(e.Signed, e.Canonical))
	}
	verdict := "accepted: the signature is right"
	if !e.Accepted {
		verdict = fmt.Sprintf("refused with %q", e.Message)
		if first >= 0 {
			verdict += ": " + e.Steps[first].Problem
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", table.Wrap(strings.Fields(verdict), " ", 0))
	return err
}

// indent is the column of the texts of steps.
const indent = 27

// marked returns the lines of text. Those that differ from the same line of another text have a
// mark.
func marked(text, other string) string {
	var b strings.Builder
	lines, others := strings.Split(text, "\n"), strings.Split(other, "\n")
	for i, line := range lines {
		mark := " "
		if other != "" && (i >= len(others) || others[i] != line) {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s %s\n", mark, line)
	}
	return b.String()
}
