package keys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// commandTimeout is the longest time for a command that prints keys.
	commandTimeout = 30 * time.Second
	// commandWait is how long its output may stay open after it has ended.
	commandWait = time.Second
	// complaintMax is the most bytes of its standard error that an error shows.
	complaintMax = 1 << 10
)

// Places of keys that a node only reads, for people.
const (
	fromCredential = "a systemd credential"
	fromCommand    = "a command"
)

// Source is the place of the keys of a ring. A node reads it once, when it starts.
type Source struct {
	// File has the keys. Rotations rewrite it, unless it is a credential of systemd.
	File       string
	Credential bool
	// Command prints the keys, instead of File: a program and its arguments.
	Command []string
}

// SourceOf returns the source of a command, or of a file. A file in credentials, unless
// that is empty, is a credential of systemd.
func SourceOf(file, credentials string, command []string) Source {
	inside, err := filepath.Rel(credentials, file)
	return Source{File: file, Credential: credentials != "" && err == nil && filepath.IsLocal(inside), Command: command}
}

// place describes a place that rotations can't rewrite. It is empty for a file.
func (s Source) place() string {
	switch {
	case len(s.Command) > 0:
		return fromCommand
	case s.Credential:
		return fromCredential
	default:
		return ""
	}
}

// Read returns the content of a key file.
func (s Source) Read(ctx context.Context) ([]byte, error) {
	if len(s.Command) > 0 {
		return s.run(ctx)
	}
	f, err := os.Open(s.File)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, ringBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	return raw, nil
}

// name describes the source in errors.
func (s Source) name() string {
	if len(s.Command) > 0 {
		return "what " + filepath.Base(s.Command[0]) + " printed"
	}
	return "key file " + filepath.Base(s.File)
}

// run runs the command without a shell and returns its output. It ends the command and
// its children after commandTimeout.
func (s Source) run(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTimeout, fmt.Errorf("it took longer than %v", commandTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	out, complaint := &bounded{most: ringBytesMax + 1}, &bounded{most: complaintMax}
	cmd.Stdout, cmd.Stderr = out, complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = commandWait
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if text := strings.TrimSpace(string(complaint.kept)); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	if err != nil {
		return nil, fmt.Errorf("the command %s, which has to print a key: %w", s.Command[0], err)
	}
	if len(out.kept) == out.most {
		return nil, fmt.Errorf("the command %s printed more than %d bytes", s.Command[0], ringBytesMax)
	}
	return out.kept, nil
}

// bounded keeps the first bytes that are written to it, and drops the others. It does not
// embed its buffer, whose ReadFrom has no bound.
type bounded struct {
	kept []byte
	most int
}

// Write keeps p, as far as there is room.
func (b *bounded) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), b.most-len(b.kept))]...)
	return len(p), nil
}

// errFixed is returned when a rotation would have to give a new key to a node that only
// reads its keys.
var errFixed = errors.New("a rotation can't write it there: add the new key there as the last line, start the node again, and repeat the command " +
	"(docs/keys.md: Keys that come from systemd or a command)")
