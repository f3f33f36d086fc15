package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"facet/internal/must"
)

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	// spoken is a command of this program: at the start, or after a prompt or another command.
	spoken = regexp.MustCompile(`^(?:\$ |sudo -u facet |npx |.* && )?(?:\S*/)?facet ([a-z][a-z-]*(?: .*)?)$`)
	flag   = regexp.MustCompile(`(?:^|[\s\[])(--[a-z][a-z0-9-]*|-[a-z])\b`)
	ends   = regexp.MustCompile(`\s(?:#|&&|\|\|?|>)|;|,\s|…`)
)

// Every command of this program that a page shows exists, and so do its flags.
func TestPagesShowCommandsThatExist(t *testing.T) {
	t.Parallel()
	root := newRoot()
	count := 0
	for _, page := range readPages(t) {
		text, err := os.ReadFile(page)
		must.Do(t, err)
		for _, shown := range commandsOf(string(text)) {
			count++
			if missing := lacks(root, shown); missing != "" {
				t.Errorf("%s: %q: there is no %s", filepath.Base(page), shown, missing)
			}
		}
	}
	if count < 200 {
		t.Errorf("the pages show %d commands, want 200: this test no longer finds them", count)
	}
	for shown, want := range map[string]string{
		"facet gallery create staff --size 5000 # a gallery": "",
		"gallery create staff --sise 5":                      "",
		"facet gallery make staff":                           "command gallery make",
		"facet gallery create staff --sise 5":                "--sise of gallery create",
	} {
		for _, c := range commandsOf("    " + shown) {
			if got := lacks(root, c); got != want {
				t.Errorf("%q: %q is missing, want %q", shown, got, want)
			}
		}
	}
}

// Each command has an example, whose own words and flags exist. Only help and completion, which are
// Cobra's, have none.
func TestCommandsHaveExamplesThatExist(t *testing.T) {
	t.Parallel()
	root := newRoot()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			return
		}
		shown := commandsOf(strings.ReplaceAll("\n"+cmd.Example, "\n", "\n    "))
		own := strings.TrimPrefix(cmd.CommandPath(), "facet ")
		if (!cmd.HasSubCommands() || cmd.Example != "") && !slices.ContainsFunc(shown, func(s string) bool { return s == own || strings.HasPrefix(s, own+" ") }) {
			t.Errorf("%s has no example of itself", cmd.CommandPath())
		}
		for _, s := range shown {
			if missing := lacks(root, s); missing != "" {
				t.Errorf("%s: %q: there is no %s", cmd.CommandPath(), s, missing)
			}
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
	for path := range examples {
		if cmd, rest, err := root.Find(strings.Fields(path)); err != nil || len(rest) > 0 {
			t.Errorf("an example is for %q, and there is only %s", path, cmd.CommandPath())
		}
	}
}

// readPages returns the pages that people read now: not the changes and decisions of the past.
func readPages(t *testing.T) (names []string) {
	t.Helper()
	top := filepath.Join("..", "..")
	for _, dir := range []string{"docs", "clients", "scripts"} {
		must.Do(t, filepath.WalkDir(filepath.Join(top, dir), func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "decisions") {
				return fs.SkipDir
			}
			if filepath.Ext(name) == ".md" {
				names = append(names, name)
			}
			return err
		}))
	}
	return append(names, filepath.Join(top, "README.md"), filepath.Join(top, "CONTRIBUTING.md"), filepath.Join(top, "SECURITY.md"))
}

// commandsOf returns the commands of this program in a page's code. A line that ends in a backslash
// goes on in the next one.
func commandsOf(page string) (commands []string) {
	page = strings.ReplaceAll(page, "\\\n", " ")
	for line := range strings.Lines(page) {
		code := []string{line}
		if !strings.HasPrefix(line, "    ") {
			code = nil
			for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
				code = append(code, span[1])
			}
		}
		for _, c := range code {
			if m := spoken.FindStringSubmatch(strings.TrimSpace(c)); m != nil {
				command := m[1]
				if at := ends.FindStringIndex(command); at != nil {
					command = command[:at[0]]
				}
				commands = append(commands, strings.TrimSpace(command))
			}
		}
	}
	return commands
}

// lacks returns what of a command the program does not have, or nothing.
func lacks(root *cobra.Command, shown string) string {
	words := strings.Fields(shown)
	at, path := root, ""
	for at.HasSubCommands() && len(words) > 0 && regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(words[0]) {
		path = strings.TrimSpace(path + " " + words[0])
		var next *cobra.Command
		for _, c := range at.Commands() {
			if c.Name() == words[0] || c.HasAlias(words[0]) {
				next = c
			}
		}
		if next == nil {
			return "command " + path
		}
		at, words = next, words[1:]
	}
	for _, m := range flag.FindAllStringSubmatch(strings.Join(words, " "), -1) {
		name := strings.TrimLeft(m[1], "-")
		known := at.Flags().Lookup(name) != nil || at.InheritedFlags().Lookup(name) != nil || name == "help" || name == "h"
		if len(name) == 1 && !known {
			known = at.Flags().ShorthandLookup(name) != nil || at.InheritedFlags().ShorthandLookup(name) != nil
		}
		if !known {
			return m[1] + " of " + path
		}
	}
	return ""
}
