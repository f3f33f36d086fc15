package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"

	"facet/engine/models"
)

// converter is the program that converts, for a Python that has the packages of converterNeeds.
//
//go:embed convert.py
var converter []byte

//go:embed requirements.txt
var converterNeeds []byte

// conversion says how an embedder is made of a fetched file (convert.py).
type conversion struct {
	// Kind is mobileFaceNet or sface.
	Kind  string `json:"kind"`
	From  string `json:"from"`
	Model result `json:"model"`
}

const (
	mobileFaceNet = "mobilefacenet"
	sface         = "sface"
)

func (c *conversion) validate() error {
	if c.Kind != mobileFaceNet && c.Kind != sface {
		return fmt.Errorf("kind %q is unknown", c.Kind)
	}
	return c.Model.validate()
}

// python makes a Python environment with what the converter needs, and returns its interpreter.
func python(ctx context.Context, tmp string) (string, error) {
	base, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("python3 is missing: install Python 3.11 or newer with venv and pip (for example: apt install python3-venv), then run this again")
	}
	dir, needs := filepath.Join(tmp, "python"), filepath.Join(tmp, "requirements.txt")
	interpreter := filepath.Join(dir, "bin", "python")
	if err := os.WriteFile(needs, converterNeeds, 0o644); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{base, "-m", "venv", dir},
		{interpreter, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--require-hashes", "--only-binary=:all:", "--requirement", needs},
	} {
		if err := run(ctx, tmp, nil, args); err != nil {
			return "", fmt.Errorf("prepare the conversion of models: %w", err)
		}
	}
	return interpreter, nil
}

// convert makes an embedder.
func (s *setup) convert(ctx context.Context, c *conversion, interpreter, tmp string) error {
	began := time.Now()
	program, out := filepath.Join(tmp, "convert.py"), filepath.Join(tmp, "converted.onnx")
	args := []string{interpreter, program, c.Kind, filepath.Join(s.assets, filepath.FromSlash(c.From))}
	files := map[string][]byte{program: converter}
	if c.Kind == mobileFaceNet {
		basis := filepath.Join(tmp, models.MobileBasis)
		files[basis], args = models.BuiltinFiles(models.FolderMobile)[models.MobileBasis], append(args, basis)
	}
	for name, data := range files {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	if err := run(ctx, tmp, nil, append(args, out)); err != nil {
		return fmt.Errorf("convert %s: %w", c.From, err)
	}
	made, err := os.Open(out)
	if err != nil {
		return err
	}
	defer made.Close()
	if err := place(s.assets, tmp, c.Model, made); err != nil {
		return fmt.Errorf("convert %s: %w (the conversion should give the same bytes everywhere: this is a bug)", c.From, err)
	}
	s.say("  made     %-38s %9s from %s, %.1f s\n", path.Base(c.Model.To), megabytes(c.Model.Size), path.Base(c.From), time.Since(began).Seconds())
	return nil
}
