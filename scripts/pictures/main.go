package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"

	"facet/engine"
	"facet/engine/models"
)

const (
	jpegQuality     = 82
	pictureBytesMax = 150 << 10
)

func main() {
	assets := flag.String("assets", "assets", "folder that make setup fills")
	out := flag.String("out", filepath.Join("docs", "pictures"), "folder of the pictures")
	flag.Parse()
	if err := run(context.Background(), *assets, *out); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// studio is the engine and where its photos are.
type studio struct {
	engine *engine.Engine
	photos string
}

func run(ctx context.Context, assets, out string) error {
	pack, err := models.Open(filepath.Join(assets, "packs", "default"))
	if err != nil {
		return err
	}
	libraries, err := filepath.Glob(filepath.Join(assets, "lib", "*onnxruntime.*"))
	if err != nil || len(libraries) == 0 {
		return errors.New("ONNX Runtime is missing: run make setup first")
	}
	e, err := engine.New(pack, engine.Config{Library: libraries[0], Workers: 1})
	if err != nil {
		return err
	}
	defer e.Close()
	s := &studio{engine: e, photos: filepath.Join(assets, "photos")}
	for _, sheet := range []struct {
		name string
		draw func(*studio, context.Context) (*image.RGBA, error)
	}{
		{"portraits.jpg", (*studio).portraits},
		{"group.jpg", (*studio).group},
		{"turned.jpg", (*studio).turned},
		{"quality.jpg", (*studio).quality},
		{"doubt.jpg", (*studio).doubt},
	} {
		picture, err := sheet.draw(s, ctx)
		if err != nil {
			return fmt.Errorf("draw %s: %w", sheet.name, err)
		}
		if err := save(filepath.Join(out, sheet.name), picture); err != nil {
			return err
		}
	}
	return nil
}

func save(path string, picture image.Image) error {
	var out bytes.Buffer
	if err := jpeg.Encode(&out, picture, &jpeg.Options{Quality: jpegQuality}); err != nil {
		return err
	}
	if out.Len() > pictureBytesMax {
		return fmt.Errorf("%s has %d bytes, more than %d", path, out.Len(), pictureBytesMax)
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}
