package table

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"facet/scripts/bench/machine"
)

// folder contains the files of earlier runs.
var folder = filepath.Join("docs", "benchmarks")

// Create creates the file for today's run of a part on this machine, and writes its
// head: the command and the machine. The tables follow.
func Create(part string, args []string) (*os.File, error) {
	now, processor := time.Now(), machine.Processor()
	f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s-%s-%s.txt", part, slug(processor), now.Format(time.DateOnly))))
	if err != nil {
		return nil, err
	}
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return nil, fmt.Errorf("find the commit: %w", err)
	}
	command := "make bench-" + part
	if len(args) > 0 {
		command += " ARGS='" + strings.Join(args, " ") + "'"
	}
	_, err = fmt.Fprintf(f, "# %s: %s, %s\n\n- **Machine**: %s, %d cores, %s/%s, %s.\n- **Commit**: recorded by `%s`.\n- **Command**: `%s`.\n",
		strings.ToUpper(part[:1])+part[1:], processor, now.Format("2 January 2006"), processor, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(),
		strings.TrimSpace(string(commit)), command)
	return f, err
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// slug returns the processor's name in a form for file names.
func slug(processor string) string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(processor), "-"), "-")
}
