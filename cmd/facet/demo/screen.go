package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"facet/cmd/facet/process"
)

const timeColumn = 70

// screen prints the story. It uses colours only on a terminal.
type screen struct {
	w       io.Writer
	colours bool
	chapter int
}

func newScreen(w *os.File) *screen {
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" //nolint:misspell // no-color.org chose the name
	return &screen{w: w, colours: process.IsTerminal(w) && !plain}
}

// The styles of text: SGR codes (ECMA-48, 8.3.117).
const (
	bold  = "1"
	dim   = "2"
	green = "32"
	red   = "31"
	blue  = "1;36"
)

func (s *screen) in(look, text string) string {
	if !s.colours {
		return text
	}
	return "\x1b[" + look + "m" + text + "\x1b[0m"
}

func (s *screen) title(text string) {
	fmt.Fprintf(s.w, "\n%s\n", s.in(bold, text))
}

// head starts a chapter.
func (s *screen) head(format string, args ...any) {
	s.chapter++
	fmt.Fprintf(s.w, "\n%s\n", s.in(blue, fmt.Sprintf("%d  ", s.chapter)+fmt.Sprintf(format, args...)))
}

// tell prints a sentence.
func (s *screen) tell(format string, args ...any) {
	fmt.Fprintf(s.w, "   %s\n", fmt.Sprintf(format, args...))
}

// aside prints a sentence that explains.
func (s *screen) aside(format string, args ...any) {
	fmt.Fprintf(s.w, "   %s\n", s.in(dim, fmt.Sprintf(format, args...)))
}

// timed prints a mark, a sentence and how long it took, unless that is zero.
func (s *screen) timed(mark, text string, took time.Duration) {
	looks := map[string]string{"✓": green, "✗": red, "→": green}
	gap := strings.Repeat(" ", max(1, timeColumn-utf8.RuneCountInString(text)))
	if took == 0 {
		fmt.Fprintf(s.w, "   %s %s\n", s.in(looks[mark], mark), text)
		return
	}
	fmt.Fprintf(s.w, "   %s %s%s%s\n", s.in(looks[mark], mark), text, gap, s.in(dim, short(took)))
}

// short formats d for people.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%6.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%6.1f s", d.Seconds())
	}
	return fmt.Sprintf("%5d ms", d.Milliseconds())
}
