// Command describe writes what follows from the settings of galleries and applications (package settings) and from the
// bodies of answers (package answers): their schemas in the description of the interface, and their types in the
// clients. "make describe" runs it.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "describe:", err)
		os.Exit(1)
	}
}

// run writes the files of the repository in a folder.
func run(root string) error {
	files, err := generated(os.DirFS(root))
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(root+"/"+name, []byte(text), 0o644); err != nil { //nolint:gosec // source code
			return err
		}
	}
	return nil
}
