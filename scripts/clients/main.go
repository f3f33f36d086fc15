// Command clients packs the clients for other projects. The Go module goes into
// DIR/go, a folder that GOPROXY=file://DIR/go reads; the Python client and facet-lab
// into DIR as wheels, and the JavaScript client as an archive that npm installs. All
// have the version of clients/python/pyproject.toml.
//
//	go run ./scripts/clients -to dist
//
// It runs in the repository's root. It imports the standard library only.
package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	goFolder     = "clients/go"
	pythonFolder = "clients/python"
	labFolder    = "clients/lab"
	jsFolder     = "clients/js"
)

// options are the flags.
type options struct{ to, python, npm string }

func main() {
	var o options
	flag.StringVar(&o.to, "to", "dist", "folder to write to")
	flag.StringVar(&o.python, "python", "assets/venv/bin/python", "Python with pip and setuptools, as \"make venv\" installs it; empty: no wheel")
	flag.StringVar(&o.npm, "npm", "npm", "npm; empty: no JavaScript package")
	flag.Parse()
	if err := pack(o); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func pack(o options) error {
	version, err := versionOf(pythonFolder)
	if err != nil {
		return fmt.Errorf("%w: run this in the repository's root", err)
	}
	if lab, err := versionOf(labFolder); err != nil || lab != version {
		return fmt.Errorf("%s has version %q, want %s: %w", labFolder, lab, version, err)
	}
	if err := packGo(filepath.Join(o.to, "go"), "v"+version); err != nil {
		return fmt.Errorf("pack the Go client: %w", err)
	}
	if o.npm != "" {
		if err := packJS(o, version); err != nil {
			return fmt.Errorf("pack the JavaScript client: %w", err)
		}
	}
	if o.python == "" {
		return nil
	}
	return errors.Join(packPython(o, pythonFolder), packPython(o, labFolder))
}

// versionOf returns the version in a folder's pyproject.toml.
func versionOf(folder string) (string, error) {
	project, err := os.ReadFile(filepath.Join(folder, "pyproject.toml"))
	if err != nil {
		return "", err
	}
	version := regexp.MustCompile(`(?m)^version = "(\d+\.\d+\.\d+)"$`).FindSubmatch(project)
	if version == nil {
		return "", fmt.Errorf("%s/pyproject.toml states no version", folder)
	}
	return string(version[1]), nil
}

// packGo writes the files of a module proxy: list, and VERSION.info, .mod and .zip.
func packGo(to, version string) error {
	mod, err := os.ReadFile(filepath.Join(goFolder, "go.mod"))
	if err != nil {
		return err
	}
	name := regexp.MustCompile(`(?m)^module ([a-z0-9./-]+)$`).FindSubmatch(mod)
	if name == nil {
		return errors.New("go.mod names no module, or one with other characters than a-z, 0-9, . / and -")
	}
	path := string(name[1])
	dir := filepath.Join(to, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info := fmt.Sprintf("{\"Version\":%q,\"Time\":%q}\n", version, time.Now().UTC().Format(time.RFC3339))
	for suffix, text := range map[string]string{".info": info, ".mod": string(mod)} {
		if err := os.WriteFile(filepath.Join(dir, version+suffix), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := zipModule(filepath.Join(dir, version+".zip"), path+"@"+version+"/"); err != nil {
		return err
	}
	return listVersions(dir)
}

// listVersions writes the file list: the versions that were packed into dir so far.
func listVersions(dir string) error {
	packed, err := filepath.Glob(filepath.Join(dir, "*.info"))
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, file := range packed {
		list.WriteString(strings.TrimSuffix(filepath.Base(file), ".info") + "\n")
	}
	return os.WriteFile(filepath.Join(dir, "list"), []byte(list.String()), 0o644)
}

// zipModule writes the module's files, but for its tests, below prefix, and the
// licence.
func zipModule(file, prefix string) error {
	entries, err := os.ReadDir(goFolder)
	if err != nil {
		return err
	}
	members := map[string]string{"LICENSE": "LICENSE"}
	for _, e := range entries {
		if n := e.Name(); e.Type().IsRegular() && !strings.HasSuffix(n, "_test.go") {
			members[n] = filepath.Join(goFolder, n)
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	archive := zip.NewWriter(out)
	for name, from := range members {
		data, err := os.ReadFile(from)
		if err == nil {
			err = write(archive, prefix+name, data)
		}
		if err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return errors.Join(archive.Close(), out.Close())
}

func write(archive *zip.Writer, name string, data []byte) error {
	w, err := archive.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// packPython builds the wheel of a folder from a copy, since setuptools leaves files beside the
// source.
func packPython(o options, folder string) error {
	dir, err := os.MkdirTemp("", "facet-wheel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		return err
	}
	cmd := exec.Command(o.python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
		"--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", o.to, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the wheel of %s: %w (\"make venv\" installs what it needs)\n%s", folder, err, out)
	}
	return nil
}

// packJS packs a copy of what the package consists of, and the licence.
func packJS(o options, version string) error {
	project, err := os.ReadFile(filepath.Join(jsFolder, "package.json"))
	if err != nil {
		return err
	}
	var stated struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(project, &stated); err != nil {
		return fmt.Errorf("read package.json: %w", err)
	}
	if stated.Version != version {
		return fmt.Errorf("package.json has version %q, want that of pyproject.toml, %s", stated.Version, version)
	}
	dir, err := os.MkdirTemp("", "facet-npm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	err = os.CopyFS(filepath.Join(dir, "src"), os.DirFS(filepath.Join(jsFolder, "src")))
	for name, from := range map[string]string{"package.json": jsFolder, "README.md": jsFolder, "LICENSE": "."} {
		data, failed := os.ReadFile(filepath.Join(from, name))
		err = errors.Join(err, failed, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	if err != nil {
		return err
	}
	to, err := filepath.Abs(o.to)
	if err != nil {
		return err
	}
	cmd := exec.Command(o.npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", to)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack: %w\n%s", err, out)
	}
	return nil
}
