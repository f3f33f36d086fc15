package models

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ManifestName is the manifest's file name in a pack's folder.
const ManifestName = "manifest.json"

// ErrPack is returned for a folder that differs from its manifest: a file is missing, or has
// another size or SHA-256. The text after it names the file.
var ErrPack = errors.New("model pack is not intact")

//go:embed default.json
var defaultManifest []byte

// Default returns a copy of default.json, the manifest of the pack that clusters got before there
// was FoundingPack. scripts/setup writes it as manifest.json.
//
// To change a number (a threshold, the quality's coefficients, the calibration), edit default.json
// and name the new data in the field "data" beside it. Run the tests of this package and then the
// set-up, which renews manifest.json. Every edit changes the pack's identity, so a cluster founded
// before refuses nodes with the new manifest. After a release, raise "version" as well. Size and
// sha256 of the files change with assets/lock.json only.
func Default() []byte { return bytes.Clone(defaultManifest) }

//go:embed sface.json
var sfaceManifest []byte

//go:embed accurate.json
var accurateManifest []byte

//go:embed accurate.projection
var accurateProjection []byte

//go:embed default.basis
var mobileBasis []byte

// AccuratePack is the name of the pack with two embedders.
const AccuratePack = "accurate"

// FoundingPack is the name of the pack that a new cluster gets unless its founder names another one.
const FoundingPack = "sface"

// The pack that clusters had before FoundingPack has the name FolderMobile in its manifest and its
// folder, which can't change, because the manifest's hash is its identity. People read TitleMobile.
const (
	FolderMobile = "default"
	TitleMobile  = "mobile"
)

// Title returns the pack's name for people.
func (m *Manifest) Title() string {
	if m.Name == FolderMobile {
		return TitleMobile
	}
	return m.Name
}

// Names returns the names of the packs that the set-up installs, that of new clusters first.
func Names() []string { return []string{FoundingPack, FolderMobile, AccuratePack} }

// Builtin returns the manifest of a pack of Names. They are copies of NAME.json in this package,
// which are edited as Default's is.
func Builtin(name string) (manifest []byte, ok bool) {
	switch name {
	case FoundingPack:
		return bytes.Clone(sfaceManifest), true
	case FolderMobile:
		return Default(), true
	case AccuratePack:
		return bytes.Clone(accurateManifest), true
	}
	return nil, false
}

// MobileBasis is the file of the basis into which mobile's embedder projects: the first 191 left
// singular vectors of the published network's last layer, and what they lack of its bias. Its cosines
// are those of the published 512 numbers to about 2e-5.
const MobileBasis = "basis.f32"

// BuiltinFiles returns the files of a pack of Names that this package has beside the manifest, by
// their names in the pack. "facet-lab calibrate --projection" makes the projection.
func BuiltinFiles(name string) map[string][]byte {
	switch name {
	case AccuratePack:
		return map[string][]byte{AccuratePack + ".projection": bytes.Clone(accurateProjection)}
	case FolderMobile:
		return map[string][]byte{MobileBasis: bytes.Clone(mobileBasis)}
	}
	return nil
}

// Pack is a pack with a valid manifest; Open has also checked its files. It holds no open file and
// is safe for concurrent use.
type Pack struct {
	// ID is the SHA-256 of the manifest file in 64 lower-case hex digits. It identifies the pack,
	// and so every template made with it.
	ID string
	// Manifest is the pack's manifest. It must not be changed.
	Manifest *Manifest

	dir string
	// whole is set if the projection is not used.
	whole bool
}

// Read reads the manifest of the pack in dir and no other file. Errors wrap ErrManifest, or come
// from the file system.
func Read(dir string) (*Pack, error) {
	data, err := readManifest(dir)
	if err != nil {
		return nil, fmt.Errorf("open model pack: %w", err)
	}
	m, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("open model pack: %w", err)
	}
	sum := sha256.Sum256(data)
	return &Pack{ID: hex.EncodeToString(sum[:]), Manifest: m, dir: dir}, nil
}

// Open reads the manifest of the pack in dir and checks all its files. Errors wrap ErrManifest or
// ErrPack, or come from the file system.
func Open(dir string) (*Pack, error) {
	return open(dir, nil)
}

// loaded are the roles whose files an engine loads.
var loaded = []Role{RoleDetector, RoleLandmarks, RoleEmbedder, RoleEmbedder2, RoleProjection}

// OpenToLoad is Open for an engine. It leaves the files that the engine loads to Load, which checks
// them: on a processor without instructions for SHA-256 a check of them takes 0.2 s.
func OpenToLoad(dir string) (*Pack, error) {
	return open(dir, loaded)
}

// open is Open, and leaves out the files of some roles.
func open(dir string, except []Role) (*Pack, error) {
	p, err := Read(dir)
	if err != nil {
		return nil, err
	}
	if err := p.checkAll(except); err != nil {
		return nil, err
	}
	return p, nil
}

// checkAll checks the files of the pack, except for those of some roles.
func (p *Pack) checkAll(except []Role) error {
	for _, f := range p.Manifest.Files {
		if f.Role == RoleProjection && p.whole || slices.Contains(except, f.Role) {
			continue
		}
		if err := p.check(f, io.Discard); err != nil {
			return fmt.Errorf("open model pack: %w", err)
		}
	}
	return nil
}

// Dir returns the pack's folder.
func (p *Pack) Dir() string { return p.dir }

// Path returns the path of the file of a role, or "" without one.
func (p *Pack) Path(role Role) string {
	f, ok := p.Manifest.File(role)
	if !ok {
		return ""
	}
	return filepath.Join(p.dir, f.Name)
}

// Load returns the bytes of the file of a role. It checks them again, because the folder may have
// changed since Open. Errors wrap ErrPack, or come from the file system.
func (p *Pack) Load(role Role) ([]byte, error) {
	f, ok := p.Manifest.File(role)
	if !ok {
		return nil, fmt.Errorf("load %s of model pack: %w: no such file", role, ErrPack)
	}
	var buf bytes.Buffer
	buf.Grow(int(f.Size) + bytes.MinRead)
	if err := p.check(f, &buf); err != nil {
		return nil, fmt.Errorf("load %s of model pack: %w", role, err)
	}
	return buf.Bytes(), nil
}

// check copies the file's bytes to w and compares size and SHA-256. It reads at most f.Size+1
// bytes.
func (p *Pack) check(f File, w io.Writer) error {
	file, size, err := openRegular(p.dir, f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", ErrPack, f.Name)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if size != f.Size {
		return fmt.Errorf("%w: %s has %d bytes, the manifest says %d", ErrPack, f.Name, size, f.Size)
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(h, w), io.LimitReader(file, f.Size+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Name, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); n != f.Size || got != f.SHA256 {
		return fmt.Errorf("%w: %s has SHA-256 %s, the manifest says %s", ErrPack, f.Name, got, f.SHA256)
	}
	return nil
}

func readManifest(dir string) ([]byte, error) {
	file, _, err := openRegular(dir, ManifestName)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxManifestBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ManifestName, err)
	}
	return data, nil
}

// openRegular opens a regular file of dir for reading. It refuses links that lead out of dir, and
// pipes and devices, which could block for ever.
func openRegular(dir, name string) (*os.File, int64, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close() //nolint:errcheck // a handle, nothing is written
	info, err := root.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("open %s: not a regular file", name)
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	return file, info.Size(), nil
}
