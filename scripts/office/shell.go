package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"facet/cmd/facet/config"
	"facet/cmd/facet/process"
	"facet/internal/testkit/launch"
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
	err     error            // the first error of run
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
func (s *shell) quiet(ctx context.Context, line string) (answer, error) {
	p, err := launch.Start(s.command(line), s.starter.Start)
	if err != nil {
		return answer{}, fmt.Errorf("run %q: %w", line, err)
	}
	defer context.AfterFunc(ctx, func() { p.Signal(syscall.SIGINT) })()
	return answer{status: p.Wait(), text: p.Out.String()}, ctx.Err()
}

// run prints a line, runs it, prints its output, and checks its exit status. After an
// error it does nothing; the error stays in s.err.
func (s *shell) run(ctx context.Context, status int, line string) {
	if s.err != nil {
		return
	}
	s.say(line)
	a, err := s.quiet(ctx, line)
	s.show(a.text)
	if s.err = err; err == nil {
		s.err = a.want(status, line)
	}
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

// start prints a line and runs it in the background.
func (s *shell) start(line string) (*launch.Process, error) {
	s.say(line + " &")
	p, err := launch.Start(s.command("exec "+line), s.starter.Start)
	if err != nil {
		err = fmt.Errorf("run %q: %w", line, err)
	}
	return p, err
}

// wait waits for the end of a command in the background.
func wait(ctx context.Context, p *launch.Process) (answer, error) {
	select {
	case <-p.Exited():
		return answer{p.Out.String(), p.Wait()}, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}
