package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"facet/cmd/facet/authority"
	"facet/cmd/facet/cli"
	"facet/internal/must"
)

// withoutPassphrase is a command that can't find the passphrase in its environment.
func withoutPassphrase(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, authority.PassphraseVariable+"=")
	return cmd
}

// dialogue is a command on a terminal.
type dialogue struct {
	cmd    *exec.Cmd
	pty    *os.File
	output bytes.Buffer
}

func onTerminal(t *testing.T, args ...string) *dialogue {
	t.Helper()
	d := &dialogue{cmd: withoutPassphrase(t, args...)}
	var err error
	if d.pty, err = pty.Start(d.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it may have ended
		d.pty.Close()
	})
	return d
}

// expect reads until the text comes. Each call looks at new output only.
func (d *dialogue) expect(t *testing.T, text string) {
	t.Helper()
	from := d.output.Len()
	for b := make([]byte, 1); !strings.Contains(d.output.String()[from:], text); {
		must.Do(t, d.pty.SetReadDeadline(time.Now().Add(time.Minute)))
		n, err := d.pty.Read(b)
		d.output.Write(b[:n])
		if err != nil {
			t.Fatalf("waiting for %q: %v, the terminal has:\n%s", text, err, &d.output)
		}
	}
}

func (d *dialogue) answer(t *testing.T, prompt, line string) {
	t.Helper()
	d.expect(t, prompt)
	time.Sleep(100 * time.Millisecond) // the prompt comes just before the terminal hides what is typed
	if _, err := d.pty.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
}

// end returns the exit code.
func (d *dialogue) end(t *testing.T) int {
	t.Helper()
	for b := make([]byte, 1<<10); ; {
		n, err := d.pty.Read(b)
		d.output.Write(b[:n])
		if err != nil {
			break // EIO: the other end was closed
		}
	}
	err := d.cmd.Wait()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	return d.cmd.ProcessState.ExitCode()
}

func filesIn(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	if err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b, err := os.ReadFile(name)
			all.WriteString(name + "\n" + string(b))
			return err
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestTerminalAsksForPassphrase(t *testing.T) {
	t.Parallel()
	const chosen, next = "chosen at the terminal", "another one of these"
	m := some(t, 1)
	d := onTerminal(t, append([]string{"cluster", "init", "--shards", "1"}, m.flags(t, 0)...)...)
	d.answer(t, "new passphrase for", chosen)
	d.answer(t, "again: ", chosen+"x")
	d.answer(t, "the two differ; once more, new passphrase: ", chosen)
	d.answer(t, "again: ", chosen)
	if code := d.end(t); code != 0 || strings.Contains(d.output.String(), chosen) {
		t.Fatalf("exit code %d:\n%s", code, &d.output)
	}
	for _, want := range []string{"authority  " + m.authority(), "move it off this machine", "invite, renew"} {
		if !strings.Contains(d.output.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &d.output)
		}
	}
	if inside, err := filepath.Rel(m.folder(0), m.authority()); err != nil || filepath.IsLocal(inside) {
		t.Errorf("the authority lies in the node's folder: %s", inside)
	}

	before := filesIn(t, m.dir)
	d = onTerminal(t, "cluster", "passphrase", "--dir", m.folder(0))
	d.answer(t, "passphrase of", "wrong")
	d.answer(t, "this passphrase is wrong; try again: ", "wrong")
	d.answer(t, "this passphrase is wrong; try again: ", "wrong")
	if code := d.end(t); code != cli.ExitFailed || !strings.Contains(d.output.String(), "3 wrong passphrases") || filesIn(t, m.dir) != before {
		t.Errorf("exit code %d, files unchanged %t:\n%s", code, filesIn(t, m.dir) == before, &d.output)
	}

	d = onTerminal(t, "cluster", "passphrase", "--dir", m.folder(0))
	d.answer(t, "passphrase of", "wrong")
	d.answer(t, "this passphrase is wrong; try again: ", chosen)
	d.answer(t, "new passphrase for", next)
	d.answer(t, "again: ", next)
	if code := d.end(t); code != 0 || strings.Contains(d.output.String(), next) {
		t.Errorf("exit code %d:\n%s", code, &d.output)
	}
	if _, err := (authority.Access{Dir: m.authority(), Passphrase: authority.Passphrase{Text: next}}).Open(t.Context()); err != nil {
		t.Error(err)
	}
}

// The terminal shows what is typed again afterwards.
func TestInterruptedPromptLeavesTerminalAsItWas(t *testing.T) {
	t.Parallel()
	m := some(t, 1)
	d := &dialogue{cmd: withoutPassphrase(t, append([]string{"cluster", "init"}, m.flags(t, 0)...)...)}
	var terminal *os.File
	var err error
	if d.pty, terminal, err = pty.Open(); err != nil {
		t.Fatal(err)
	}
	defer d.pty.Close()
	defer terminal.Close()
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = terminal, terminal, terminal
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.Do(t, d.cmd.Start())
	echo := func() bool {
		t.Helper()
		look := exec.Command("stty", "-a")
		look.Stdin = terminal
		out, err := look.Output()
		must.Do(t, err)
		return strings.Contains(string(out), " echo ")
	}
	d.expect(t, "new passphrase for")
	until(t, func() (string, bool) { return "the terminal shows the passphrase", !echo() })
	if _, err := d.pty.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Wait(); d.cmd.ProcessState.ExitCode() != cli.ExitFailed || !echo() {
		t.Errorf("%v, the terminal shows what is typed: %t", err, echo())
	}
	if files := filesIn(t, m.dir); files != "" {
		t.Errorf("it left %s", files)
	}
}

// The node runs, so that each command comes to its end.
func TestAuthorityCommandsNeedPassphrase(t *testing.T) {
	t.Parallel()
	m := some(t, 1)
	right, wrong := filepath.Join(m.dir, "right"), filepath.Join(m.dir, "wrong")
	for name, text := range map[string]string{right: passphraseOfTests + "\n", wrong: "not the passphrase\n"} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	refused := func(want string, cmd *exec.Cmd) {
		t.Helper()
		before := filesIn(t, m.authority())
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != cli.ExitFailed || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s, want %q", cmd.Args[1:], err, out, want)
		}
		if filesIn(t, m.authority()) != before {
			t.Errorf("%v changed the authority", cmd.Args[1:])
		}
	}
	taken := func(want string, args ...string) {
		t.Helper()
		out, err := withoutPassphrase(t, append(args, "--passphrase-file", right)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s, want %q", args, err, out, want)
		}
	}
	must.Do(t, os.MkdirAll(m.authority(), 0o700))
	init := append([]string{"cluster", "init", "--shards", "1", "--replicas", "1"}, m.flags(t, 0)...)
	refused("give --passphrase-file FILE", withoutPassphrase(t, init...))
	taken("node n1 for", init...)
	m.start(t, 0)
	m.serves(t, 1)
	at := []string{"--profile", m.profile}
	refused("the passphrase in "+wrong+" is not that of", withoutPassphrase(t, append([]string{"cluster", "renew", "--passphrase-file", wrong}, at...)...))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"node n1 has new certificates", append([]string{"cluster", "renew", "n1"}, at...)},
		{"step 1 of 3", append([]string{"cluster", "rotate", "authority"}, at...)},
		{"step 2 of 3", append([]string{"cluster", "rotate", "authority"}, at...)},
		{"step 3 of 3", append([]string{"cluster", "rotate", "authority"}, at...)},
		{"n9/node.pem", []string{"certs", "issue", "n9", "--dir", m.authority(), "--data", filepath.Join(m.dir, "n9"), "--host", "h"}},
		{"wrote", []string{"certs", "init", "--dir", m.authority()}},
		{"has the new passphrase", []string{"cluster", "passphrase", "--authority", m.authority(), "--new-passphrase-file", right}},
	} {
		refused("give --passphrase-file FILE", withoutPassphrase(t, c.args...))
		taken(c.want, c.args...)
	}
	invite := []string{"cluster", "invite", "--dir", m.folder(0), "--for", "1s"}
	refused("give --passphrase-file FILE", withoutPassphrase(t, invite...))
	refused("the time is over", withoutPassphrase(t, append(invite, "--passphrase-file", right)...))

	away := filepath.Join(m.dir, "away")
	must.Do(t, os.Rename(m.authority(), away))
	out, err := withoutPassphrase(t, append([]string{"cluster", "renew", "--passphrase-file", right}, at...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "name its folder with --authority") {
		t.Errorf("without the folder: %v, %s", err, out)
	}
	taken("no certificate is due", append([]string{"cluster", "renew", "--authority", away}, at...)...)
	facet(t, append([]string{"tenant", "create", "acme"}, at...)...)
}
