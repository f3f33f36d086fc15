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
