package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"facet/cmd/facet/printable"
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
	fmt.Fprint(os.Stderr, printable.Text(prompt))
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

// lineMax is the most bytes of a typed line.
const lineMax = 4 << 10

// Ask prints a prompt on the terminal and returns the line that is typed there.
func Ask(ctx context.Context, prompt string) (string, error) {
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	fmt.Fprint(os.Stderr, printable.Text(prompt))
	go func() { // ends with the line, or with the process
		line, err := bufio.NewReader(io.LimitReader(os.Stdin, lineMax)).ReadString('\n')
		if errors.Is(err, io.EOF) { // a line without an end
			err = nil
		}
		answers <- answer{strings.TrimRight(line, "\r\n"), err}
	}()
	select {
	case a := <-answers:
		return a.line, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
