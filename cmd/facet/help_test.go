package main

import (
	"strings"
	"testing"

	"facet/cmd/facet/cli"
	"facet/node/wire"
)

// exits runs facet and checks its exit status and a part of its output.
func exits(t *testing.T, status int, want string, args ...string) (out string) {
	t.Helper()
	cmd := command(t, args...)
	text, _ := cmd.CombinedOutput() // the exit status tells
	if got := cmd.ProcessState.ExitCode(); got != status || !strings.Contains(string(text), want) {
		t.Errorf("facet %v ends with %d, want %d and %q in\n%s", args, got, status, want, text)
	}
	return string(text)
}

func TestUnknownCommandNamesNearest(t *testing.T) {
	t.Parallel()
	exits(t, cli.ExitUsage, `there is no command "facet stauts": do you mean "facet status"?`, "stauts")
	exits(t, cli.ExitUsage, `do you mean "facet status"?`, "stauts", "--help")
	exits(t, cli.ExitUsage, `do you mean "facet status"?`, "--help", "stauts")
	exits(t, cli.ExitUsage, `do you mean "facet status"?`, "help", "stauts")
	exits(t, cli.ExitUsage, `do you mean "facet cluster init"?`, "cluster", "ini", "-h")
	exits(t, cli.ExitUsage, `do you mean "facet cluster rotate gossip"?`, "cluster", "rotate", "gosip")
	exits(t, cli.ExitUsage, `there is no command "facet fly"`+"\nmore:  facet --help\n", "fly", "away", "--fast")
	exits(t, cli.ExitUsage, "usage: facet status [flags]\nmore:  facet status --help\n", "status", "extra")
	exits(t, cli.ExitUsage, `do you mean "facet backup list"?`, "backup", "lst", "--to", "x", "--help")
	exits(t, cli.ExitFailed, "no cluster", "backup", "--to", "list", "--dir", "none")
	const subject = "5b0b9b32-8392-8002-b506-6b5b46edb7fa"
	exits(t, cli.ExitFailed, "no cluster", "erase", subject, "--dir", "none")
	exits(t, cli.ExitUsage, `do you mean "facet erase verify"?`, "erase", "verfy")
	exits(t, cli.ExitUsage, "there is no command", "subject", subject)
	exits(t, 0, "Usage:\n  facet status [flags]", "status", "--help")
	exits(t, 0, "Usage:\n  facet cluster join TOKEN [flags]", "help", "cluster", "join")
	exits(t, 0, "rotate", "cluster")
	exits(t, 0, "Usage:\n  facet gallery list [flags]", "gallery", "ls", "--help")
	exits(t, 0, "Usage:\n  facet enrol PHOTO [flags]", "help", "enroll")
	exits(t, 0, "facet "+wire.Version, "--version")
	exits(t, 0, "complete -o default", "completion", "bash")
	exits(t, 0, "status", "__complete", "sta")
}

// The first screen shows the three commands of a newcomer, each as it is, and no other.
func TestFirstScreenShowsThreeCommands(t *testing.T) {
	t.Parallel()
	out := exits(t, 0, "facet help lists all commands")
	shown := 0
	for line := range strings.Lines(out) {
		if len(strings.TrimRight(line, "\n")) > 100 {
			t.Errorf("%q is wider than 100 columns", line)
		}
		name, found := strings.CutPrefix(line, "  facet ")
		if !found {
			continue
		}
		shown++
		name, _, _ = strings.Cut(name, "  ")
		exits(t, 0, "Usage:\n  facet "+name, append(strings.Fields(name), "--help")...)
	}
	if shown != 3 {
		t.Errorf("%d commands are shown, want 3:\n%s", shown, out)
	}
	for _, args := range [][]string{{"help"}, {"--help"}} {
		exits(t, 0, " recover a cluster", args...)
	}
}
