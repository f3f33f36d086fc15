package serve

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"facet/cmd/facet/config"
	"facet/engine/imaging"
	"facet/internal/must"
)

// settings returns the settings of a node that lacks nothing. Each case removes
// something.
func settings(t *testing.T) config.Settings {
	t.Helper()
	dir := t.TempDir()
	return config.Settings{
		Dir: filepath.Join(dir, "data"), Models: filepath.Join(dir, "models"),
		ONNXRuntime: filepath.Join(dir, "libonnxruntime.so"), LogFormat: config.LogText, LogLevel: slog.LevelError,
	}
}

func refused(t *testing.T, s config.Settings, want string) {
	t.Helper()
	err := Run(t.Context(), s, Reload{}, os.Stderr)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, pidFile)); err == nil {
		t.Error("the pid file is left")
	}
}

func TestMissingModelsErrorNamesTheCure(t *testing.T) {
	t.Parallel()
	refused(t, settings(t), `run "make setup"`)
}

func TestBrokenPackIsExplained(t *testing.T) {
	t.Parallel()
	s := settings(t)
	must.Do(t, os.MkdirAll(s.Models, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(s.Models, "manifest.json"), []byte(`{"format":1}`), 0o600))
	refused(t, s, "the model pack in "+s.Models+" can't be used")
}

func TestMissingRuntimeErrorNamesTheCure(t *testing.T) {
	t.Parallel()
	s := settings(t)
	root, err := filepath.Abs("../../..")
	must.Do(t, err)
	s.Models = filepath.Join(root, "assets", "packs", "default") // the test binary lies elsewhere
	refused(t, s, "ONNX Runtime is not at "+s.ONNXRuntime)
}

func TestLogIsTextOnATerminalElseJSON(t *testing.T) {
	t.Parallel()
	f := func(format config.LogFormat, terminal bool, want string) {
		t.Helper()
		var b bytes.Buffer
		slog.New(newHandler(&b, config.Settings{LogFormat: format}, new(slog.LevelVar), terminal)).Info("hello")
		if !strings.HasPrefix(b.String(), want) {
			t.Errorf("%s, terminal %t: got %q", format, terminal, b.String())
		}
	}
	f(config.LogAuto, true, "time=")
	f(config.LogAuto, false, "{")
	f(config.LogText, false, "time=")
	f(config.LogJSON, true, "{")
}

func TestDecoderIsCompiledAfterStart(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	compiled := func() int {
		files, err := filepath.Glob(filepath.Join(dir, "facet-heic-decoder-*", "*", "*"))
		must.Do(t, err)
		return len(files)
	}
	cool, err := imaging.Keep()
	must.Do(t, err)
	defer func() { must.Do(t, cool()) }()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			warm(ctx, slog.New(slog.NewTextHandler(&out, nil)))
			close(ended)
		}()
		stop()
		<-ended
		if compiled() != 0 {
			t.Error("a node that was stopped has compiled the decoder")
		}
		began := time.Now()
		warm(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
		if took := time.Since(began); compiled() != 1 || took < warmAfter {
			t.Errorf("after %v %d files are compiled", took, compiled())
		}
	})
	if out.Len() > 0 {
		t.Error(out.String())
	}
}
