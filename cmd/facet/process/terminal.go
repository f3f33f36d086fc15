package process

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Rows returns the height of a terminal, or 24 if it does not tell.
func Rows(f *os.File) int {
	if _, rows, err := term.GetSize(int(f.Fd())); err == nil && rows > 0 {
		return rows
	}
	return 24
}

// AskSecret prints a prompt on the terminal and returns the line that is typed there.
// The terminal does not show the line. When ctx ends, the terminal is as it was before.
func AskSecret(ctx context.Context, prompt string) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("ask on the terminal: %w", err)
	}
	type answer struct {
		line []byte
		err  error
	}
	answers := make(chan answer, 1)
	fmt.Fprint(os.Stderr, prompt)
	defer fmt.Fprintln(os.Stderr) // the typed line break is not shown
	go func() {                   // ends with the line, or with the process
		line, err := term.ReadPassword(fd)
		answers <- answer{line, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return "", fmt.Errorf("ask on the terminal: %w", a.err)
		}
		return string(a.line), nil
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), term.Restore(fd, before))
	}
}
