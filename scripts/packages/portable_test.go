package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/mod/semver"

	"facet/internal/must"
)

// firstFaceMax is how long the first recognised face may take, counted from the end of pip.
const firstFaceMax = 60 * time.Second

// newcomer is somebody without rights, compiler and Go: a home, and no programs but those installed
// there.
type newcomer struct{ home, bin string }

func newNewcomer(t testing.TB, bin string) newcomer {
	t.Helper()
	home := t.TempDir()
	return newcomer{home, filepath.Join(home, bin)}
}

// command returns a program of this machine or of the newcomer, who finds only his own by name.
func (n newcomer) command(name string, args ...string) *exec.Cmd {
	if os.Getuid() == 0 {
		name, args = "setpriv", append([]string{"--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--", name}, args...)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = n.home, []string{"HOME=" + n.home, "PATH=" + n.bin}
	return cmd
}

func (n newcomer) run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := n.command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// install runs a command that finds the machine's programs, too.
func (n newcomer) install(t testing.TB, name string, args ...string) {
	t.Helper()
	cmd := n.command(name, args...)
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// dev runs facet dev in the newcomer's home until the test ends. It returns when all nodes are ready.
func (n newcomer) dev(t testing.TB) {
	t.Helper()
	for _, photo := range []string{"obama.jpg", "obama2.jpg"} { // photos that he has taken
		data, err := os.ReadFile(filepath.Join(rootDir, "assets", "photos", "face_recognition", photo))
		must.Do(t, err)
		must.Do(t, os.WriteFile(filepath.Join(n.home, photo), data, 0o644))
	}
	dev := n.command(n.facet(), "dev")
	said, err := dev.StdoutPipe()
	must.Do(t, err)
	dev.Stderr = dev.Stdout
	must.Do(t, dev.Start())
	late := time.AfterFunc(2*firstFaceMax, func() { _ = dev.Process.Kill() })
	defer late.Stop()
	t.Cleanup(func() {
		must.Do(t, dev.Process.Signal(syscall.SIGTERM))
		must.Do(t, dev.Wait())
	})
	lines, log := bufio.NewScanner(said), ""
	for !strings.Contains(lines.Text(), "all nodes are ready") {
		if !lines.Scan() {
			t.Fatalf("facet dev ended, and said:\n%s", log)
		}
		log += lines.Text() + "\n"
	}
}

func (n newcomer) facet() string { return filepath.Join(n.bin, "facet") }

// firstFace does what README says, and returns how long it took.
func (n newcomer) firstFace(t testing.TB) time.Duration {
	t.Helper()
	began := time.Now()
	n.dev(t)
	n.run(t, n.facet(), "gallery", "create", "staff", "--size", "5000")
	n.run(t, n.facet(), "enrol", "obama.jpg")
	if out := n.run(t, n.facet(), "search", "obama2.jpg"); !strings.Contains(out, "9002") {
		t.Errorf("README says that the search prints the score 9002, and it printed:\n%s", out)
	}
	return time.Since(began)
}

// pip installs the wheel of this processor.
func (n newcomer) pip(t testing.TB, dir string) {
	t.Helper()
	wheels, err := filepath.Glob(filepath.Join(dir, "facet-*"+targetHere(t).tag()+".whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("%s has the wheels %v, %v; want one", dir, wheels, err)
	}
	n.install(t, "python3", "-m", "venv", filepath.Dir(n.bin))
	n.install(t, filepath.Join(n.bin, "pip"), "install", "--quiet", "--disable-pip-version-check", "--no-index", wheels[0])
}

// targetHere returns this processor.
func targetHere(t testing.TB) target {
	t.Helper()
	i := slices.IndexFunc(targets, func(to target) bool { return to.arch == runtime.GOARCH })
	if i < 0 {
		t.Skipf("there are no packages for %s", runtime.GOARCH)
	}
	return targets[i]
}

func TestWheelRecognisesFace(t *testing.T) {
	t.Parallel()
	dir := dist(t)
	n := newNewcomer(t, "venv/bin")
	n.pip(t, dir)
	t.Logf("the first face was recognised after %s", n.firstFace(t))
	n.install(t, filepath.Join(n.bin, "pip"), "uninstall", "--quiet", "--yes", "facet")
	if left, err := filepath.Glob(filepath.Join(n.home, "venv", "lib", "python*", "site-packages", "facet*")); err != nil || len(left) > 0 {
		t.Errorf("pip left %v, %v", left, err)
	}
}

func TestNPMPackageRecognisesFace(t *testing.T) {
	t.Parallel()
	dir := dist(t)
	n := newNewcomer(t, "node_modules/.bin")
	packed, err := filepath.Abs(filepath.Join(dir, "facet-"+versionOf(t)+"-npm-"+runtime.GOARCH+".tgz"))
	must.Do(t, err)
	n.install(t, "npm", "install", "--offline", "--no-audit", "--no-fund", packed)
	t.Logf("the first face was recognised after %s", n.firstFace(t))
}

// BenchmarkFirstFaceOfWheel counts from the end of pip to the first recognised face.
func BenchmarkFirstFaceOfWheel(b *testing.B) {
	dir := os.Getenv(longVariable)
	if dir == "" {
		b.Skip("\"make bench-wheel\" builds the wheel and runs this")
	}
	var sum time.Duration
	for range b.N {
		n := newNewcomer(b, "venv/bin")
		n.pip(b, dir)
		sum += n.firstFace(b)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(sum.Seconds()/float64(b.N), "s/face")
	b.ReportMetric(sum.Seconds()/float64(b.N)/firstFaceMax.Seconds(), "of-60s")
}

// A wheel's RECORD has the sums of all its files; its libraries and program need no newer C and C++
// library than its name says; and it is not too large for an index of packages.
func TestWheelIsWhatItsNameSays(t *testing.T) {
	t.Parallel()
	wheels, err := filepath.Glob(filepath.Join(dist(t), "*.whl"))
	if err != nil || len(wheels) == 0 {
		t.Fatalf("there is no wheel: %v", err)
	}
	for _, name := range wheels {
		if info, err := os.Stat(name); err != nil || info.Size() > 150<<20 {
			t.Errorf("%s: %v, %v; want at most 150 MiB", filepath.Base(name), info.Size(), err)
		}
		files := unzip(t, name)
		binaries := 0
		for file, content := range files {
			if bytes.HasPrefix(content, []byte(elf.ELFMAG)) {
				binaries++
				old(t, file, content)
			}
		}
		if binaries != 3 {
			t.Errorf("%s has %d binaries, want program, ONNX Runtime and libjpeg-turbo", filepath.Base(name), binaries)
		}
	}
}

// old checks that a binary needs no newer symbols than those of manylinux_2_28 (PEP 600).
func old(t *testing.T, name string, content []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(content))
	must.Do(t, err)
	symbols, err := f.ImportedSymbols()
	must.Do(t, err)
	newest := map[string]string{"GLIBC": "2.28", "GLIBCXX": "3.4.25", "CXXABI": "1.3.11", "GCC": "8.0.0"}
	for _, s := range symbols {
		library, version, ok := strings.Cut(s.Version, "_")
		most, known := newest[library]
		if ok && known && semver.Compare("v"+version, "v"+most) > 0 {
			t.Errorf("%s needs %s %s of %s, newer than %s", name, s.Name, s.Version, s.Library, most)
		}
	}
}

// unzip returns the files of a wheel, and checks them against its RECORD.
func unzip(t *testing.T, name string) map[string][]byte {
	t.Helper()
	r, err := zip.OpenReader(name)
	must.Do(t, err)
	defer r.Close()
	files, record := map[string][]byte{}, ""
	for _, f := range r.File {
		from, err := f.Open()
		must.Do(t, err)
		content, err := io.ReadAll(from)
		must.Do(t, err)
		files[f.Name] = content
		if strings.HasSuffix(f.Name, "/RECORD") {
			record = string(content)
		}
	}
	if lines := strings.Count(record, "\n"); lines != len(files) {
		t.Errorf("RECORD has %d lines for %d files", lines, len(files))
	}
	for file, content := range files {
		sum := sha256.Sum256(content)
		want := fmt.Sprintf("%s,sha256=%s,%d\n", file, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
		if strings.HasSuffix(file, "/RECORD") {
			want = file + ",,\n"
		}
		if !strings.Contains("\n"+record, "\n"+want) {
			t.Errorf("RECORD lacks %s", want)
		}
	}
	return files
}

// Packages for pip and npm are equal when they are made twice, and have the program, the default
// pack and no other one.
func TestPortablePackagesAreEqualTwice(t *testing.T) {
	t.Parallel()
	b := newTestBuilder(t)
	for _, to := range targets {
		for _, file := range []string{"LICENSE", "THIRD-PARTY.txt", "docs/a.md", "assets/packs/sface/manifest.json", "assets/packs/accurate/manifest.json"} {
			full := filepath.Join(b.work(to, "root", prefix), file)
			must.Do(t, os.MkdirAll(filepath.Dir(full), 0o755))
			must.Do(t, os.WriteFile(full, []byte(file), 0o644))
		}
		var sums [2][]string
		for i := range sums {
			names, err := b.portable(to)
			must.Do(t, err)
			for _, name := range names {
				sum, err := sumOf(name)
				must.Do(t, err)
				sums[i] = append(sums[i], sum)
			}
			if i == 1 {
				files := unzip(t, names[0])
				if string(files["facet/bin/facet"]) != to.arch || files["facet/assets/packs/sface/manifest.json"] == nil {
					t.Errorf("%s lacks the program or its pack", names[0])
				}
				for name := range files {
					if strings.Contains(name, "docs") || strings.Contains(name, "accurate") {
						t.Errorf("%s has %s", names[0], name)
					}
				}
			}
		}
		if !slices.Equal(sums[0], sums[1]) {
			t.Errorf("%s: two builds differ", to.arch)
		}
	}
}
