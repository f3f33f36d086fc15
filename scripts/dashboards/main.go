package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", "deploy", "folder of what people deploy with")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

// run writes all files.
func run(dir string) error {
	all, err := files()
	if err != nil {
		return err
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files returns the content of each file, by its path below deploy.
func files() (map[string][]byte, error) {
	all := map[string][]byte{}
	boards := []board{operators, officers}
	for _, b := range boards {
		text, err := b.json()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.title, err)
		}
		all["grafana/"+b.name+".json"] = text
	}
	text, err := tests(boards)
	all["prometheus/panels_test.yml"] = text
	return all, err
}
