package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"facet/internal/must"
)

// What docs/install.md tells people to give.
func verify(dir, allowed string) error {
	sums, err := os.Open(filepath.Join(dir, sumsFile))
	if err != nil {
		return err
	}
	defer sums.Close()
	cmd := exec.Command("ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "facet", "-n", signatureSpace, "-s", filepath.Join(dir, sumsFile+".sig"))
	cmd.Stdin = sums
	if err := cmd.Run(); err != nil {
		return err
	}
	check := exec.Command("sha256sum", "--check", "--strict", sumsFile)
	check.Dir = dir
	return check.Run()
}

func TestSignedSumsGuardFiles(t *testing.T) {
	t.Parallel()
	dir, keys := t.TempDir(), t.TempDir()
	key, allowed := filepath.Join(keys, "release"), filepath.Join(keys, "allowed_signers")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "facet", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err == nil {
		err = os.WriteFile(allowed, append([]byte("facet "), public...), 0o644)
	}
	file := filepath.Join(dir, "facet.deb")
	if err == nil {
		err = os.WriteFile(file, []byte("package"), 0o644)
	}
	must.Do(t, err)
	b := &builder{root: rootDir, dist: dir, key: key, out: io.Discard}
	must.Do(t, b.sums(t.Context(), []string{file}))
	if err := verify(dir, allowed); err != nil {
		t.Errorf("what was signed: %v", err)
	}
	must.Do(t, os.WriteFile(file, []byte("backdoor"), 0o644))
	if verify(dir, allowed) == nil {
		t.Error("a changed file passes")
	}
	b.key = "" // somebody makes new checksums, and keeps the signature
	old, err := os.ReadFile(filepath.Join(dir, sumsFile+".sig"))
	if err == nil {
		err = b.sums(t.Context(), []string{file})
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, sumsFile+".sig"), old, 0o644)
	}
	must.Do(t, err)
	if verify(dir, allowed) == nil {
		t.Error("changed checksums pass")
	}
}

func TestSignedReleaseNeedsContact(t *testing.T) {
	t.Parallel()
	b := &builder{root: t.TempDir()}
	for text, ok := range map[string]bool{
		"":                                       false,
		"security: nobody yet\nsupport: a@b.c\n": false,
		"security: a@b.c\nsupport:\n":            false,
		"security: a@b.c\n":                      false,
		"Whom\n\nsecurity: a@b.c\nsupport: https://b.c": true,
	} {
		must.Do(t, os.WriteFile(filepath.Join(b.root, "CONTACT"), []byte(text), 0o600))
		if err := b.named(); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestUnpermittedLicenceStopsRelease(t *testing.T) {
	t.Parallel()
	component := func(name, licence string) cdx.Component {
		return cdx.Component{Name: name, Version: "1", Licenses: &cdx.Licenses{{Expression: licence}}}
	}
	good := []cdx.Component{component("a", "MIT"), component("b", "Apache-2.0 AND Zlib"), component("github.com/gen2brain/heic", "MIT AND LGPL-3.0-only")}
	if err := checkLicences(good); err != nil {
		t.Error(err)
	}
	for _, bad := range []cdx.Component{component("c", "GPL-3.0-only"), component("d", "MIT AND LGPL-3.0-only"), component("e", "unknown")} {
		if err := checkLicences(append(good, bad)); err == nil || !strings.Contains(err.Error(), bad.Name+" 1") {
			t.Errorf("%s: error is %v", bad.Name, err)
		}
	}
}

// Every licence text in the tree that names itself is recognised.
func TestLicencesAreRecognised(t *testing.T) {
	t.Parallel()
	f := func(file, want string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(rootDir, file))
		if got := recognise(string(text)); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", file, got, err, want)
		}
	}
	f("LICENSE", "Apache-2.0")
	f("node/console/web/vendor/licences/preact.txt", "MIT")
	f("node/console/web/vendor/licences/htm.txt", "Apache-2.0")
	f("README.md", "unknown")
}

// Two builds of one commit, in another folder with other rights and at another time, are equal.
func TestReleaseIsReproducible(t *testing.T) {
	t.Parallel()
	first, err := filepath.Abs(dist(t))
	must.Do(t, err)
	parent := filepath.Join(t.TempDir(), "elsewhere")
	copyTree(t, parent)
	again := filepath.Join(t.TempDir(), "again")
	cmd := exec.Command("bash", "-c", "umask 077; exec go run ./scripts/packages build -arch "+archesIn(t, first)+" -to "+again)
	cmd.Dir = parent
	cmd.Env = append(os.Environ(), "TZ=Asia/Kathmandu", "LC_ALL=C", "HOME="+t.TempDir(), "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sums := func(dir string) string {
		data, err := os.ReadFile(filepath.Join(dir, sumsFile))
		must.Do(t, err)
		return string(data)
	}
	if a, b := sums(first), sums(again); a != b {
		t.Errorf("the first build:\n%s\nthe second one at %s:\n%s", a, time.Now(), b)
	}
}

// archesIn returns the processors of the packages in a folder.
func archesIn(t *testing.T, dir string) string {
	t.Helper()
	var list []string
	for _, to := range targets {
		if found, err := filepath.Glob(filepath.Join(dir, "*-"+to.arch+".deb")); err == nil && len(found) > 0 {
			list = append(list, to.arch)
		}
	}
	return strings.Join(list, ",")
}

// copyTree makes a clone with the source's files as they are now, and what "make setup" has fetched.
func copyTree(t *testing.T, to string) {
	t.Helper()
	cmd := exec.Command("bash", "-ec", `umask 077; git clone -q --shared . "$0"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp -P --no-preserve=mode --remove-destination --parents -t "$0"
cp -al assets/lib assets/packs assets/tools "$0/assets"`, to)
	cmd.Dir = rootDir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	must.Do(t, err)
	return strings.TrimSpace(string(out))
}
