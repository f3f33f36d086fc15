package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"facet/cmd/facet/config"
	"facet/cmd/facet/process"
)

const (
	linesShown   = 7  // of one command's output
	columnsShown = 96 // of a line
)

// shell runs command lines as a person types them, in one folder, with facet in PATH. It
// prints each line and the begin of its output.
type shell struct {
	dir     string
	program string
	out     io.Writer
	starter *process.Starter // its processes die with this one
}

// answer is the output of a command with its exit status.
type answer struct {
	text   string
	status int
}

// command returns a command that runs a line. The settings of facet in this process's
// environment don't count.
func (s *shell) command(line string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir = s.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, config.VariablePrefix) && !strings.HasPrefix(v, "PATH=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(s.program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// say prints a line as it is typed.
func (s *shell) say(line string) { fmt.Fprintf(s.out, "   $ %s\n", line) }

// quiet runs a line and prints nothing. The error is that of bash or of ctx.
func (s *shell) quiet(ctx context.Context, line string) (a answer, err error) {
	cmd := s.command(line)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := s.starter.Start(cmd); err != nil {
		return a, fmt.Errorf("run %q: %w", line, err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })()
	err = cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		err = nil
	}
	return answer{text.String(), cmd.ProcessState.ExitCode()}, errors.Join(err, ctx.Err())
}

// run prints a line, runs it, prints its output, and checks its exit status.
func (s *shell) run(ctx context.Context, status int, line string) (string, error) {
	s.say(line)
	a, err := s.quiet(ctx, line)
	if err != nil {
		return "", err
	}
	s.show(a.text)
	return a.text, a.want(status, line)
}

// want checks the exit status.
func (a answer) want(status int, line string) error {
	if a.status != status {
		return fmt.Errorf("%q ended with exit status %d, want %d:\n%s", line, a.status, status, a.text)
	}
	return nil
}

// end returns the last lines of a command's output.
func end(text string) string {
	lines := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-linesShown):], "")
}

// show prints the begin of a command's output.
func (s *shell) show(text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	more := max(0, len(lines)-linesShown)
	if more == 1 { // it fits into the place of the remark
		more = 0
	}
	for _, line := range lines[:len(lines)-more] {
		if utf8.RuneCountInString(line) > columnsShown {
			line = string([]rune(line)[:columnsShown-1]) + "…"
		}
		if line != "" {
			fmt.Fprintf(s.out, "     %s\n", line)
		}
	}
	if more > 0 {
		fmt.Fprintf(s.out, "     … %d more lines\n", more)
	}
}

// job is a command in the background.
type job struct {
	cmd   *exec.Cmd
	text  output
	ended chan struct{} // closed when the command has ended
}

// output is a buffer that is read while a command writes to it.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write takes a part of the output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns the output so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start prints a line and runs it in the background.
func (s *shell) start(line string) (*job, error) {
	s.say(line + " &")
	j := &job{cmd: s.command("exec " + line), ended: make(chan struct{})}
	j.cmd.Stdout, j.cmd.Stderr = &j.text, &j.text
	if err := s.starter.Start(j.cmd); err != nil {
		return nil, fmt.Errorf("run %q: %w", line, err)
	}
	go func() {
		_ = j.cmd.Wait() // its state has the exit status
		close(j.ended)
	}()
	return j, nil
}

// wait waits for the end of the command.
func (j *job) wait(ctx context.Context) (answer, error) {
	select {
	case <-j.ended:
		return answer{j.text.String(), j.cmd.ProcessState.ExitCode()}, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}
