// Command core measures the files of docs/core.md, which must be right for a promise, and plants faults outside of
// them.
//
//	go run ./scripts/core                    prints the lines of each promise and of each row
//	go run ./scripts/core -write             writes them into docs/core.md
//	go run ./scripts/core -plant 60 -seed 1  plants 60 faults, one after the other, in files of the product that
//	                                         the page does not name, and runs an attacked world with each
//
// A fault is a small change of the syntax at a random place: a comparison or an operator replaced, a condition
// negated, a call or an error left out. It runs in the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
)

const page = "docs/core.md"

var (
	named = regexp.MustCompile("`([a-z0-9_/]+\\.go)`")
	row   = regexp.MustCompile(`(?m)^(\| \d+ \| .* \| )\d+ \|$`)
)

func main() {
	write := flag.Bool("write", false, "write the lines into "+page)
	var p planter
	flag.IntVar(&p.faults, "plant", 0, "how many faults to plant")
	flag.Uint64Var(&p.seed, "seed", 1, "which faults")
	flag.IntVar(&p.lanes, "lanes", 2, "worlds at once")
	flag.IntVar(&p.blows, "blows", 40, "faults of each world")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *write, p); err != nil {
		fmt.Fprintln(os.Stderr, "core:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, write bool, p planter) error {
	raw, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("%w: run this in the repository's root", err)
	}
	text := string(raw)
	if p.faults > 0 {
		p.core = map[string]bool{}
		for _, name := range named.FindAllStringSubmatch(text, -1) {
			p.core[name[1]] = true
		}
		return p.run(ctx)
	}
	counted, err := measured(text)
	if err == nil && write {
		err = os.WriteFile(page, []byte(counted), 0o644)
	}
	return err
}

// measured returns the page with the lines of each row, and prints those of each promise.
func measured(text string) (string, error) {
	var errs []error
	sum, all, title := 0, 0, ""
	end := func() {
		if sum > 0 {
			fmt.Fprintf(os.Stdout, "%6d  %s\n", sum, title)
		}
		sum = 0
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "## ") {
			end()
			title = line[3:]
		}
		if row.MatchString(line) {
			n := 0
			for _, name := range named.FindAllStringSubmatch(line, -1) {
				data, err := os.ReadFile(name[1])
				errs = append(errs, err)
				n += strings.Count(string(data), "\n")
			}
			sum, all = sum+n, all+n
			line = row.ReplaceAllString(line, "${1}"+strconv.Itoa(n)+" |")
		}
		out = append(out, line)
	}
	end()
	fmt.Fprintf(os.Stdout, "%6d  all\n", all)
	return strings.Join(out, "\n"), errors.Join(errs...)
}
