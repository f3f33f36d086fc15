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

// folder is where runs are kept.
var folder = filepath.Join("docs", "benchmarks")

// Create makes the file of a part's run on this machine today, and writes its head:
// what was run and on what. Tables follow as they come.
func Create(part string, args []string) (*os.File, error) {
	now, processor := time.Now(), machine.Processor()
	f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s-%s-%s.md", part, slug(processor), now.Format(time.DateOnly))))
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

// slug returns the processor's name as a part of a file's.
func slug(processor string) string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(processor), "-"), "-")
}
