package onnx

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"facet/internal/pinned"
)

// loaded is the library of this process. ONNX Runtime keeps global state and can't be replaced by
// another copy, so it stays until the process ends.
var loaded struct {
	mu   sync.Mutex
	path string
	// files stay open, also after a failure: see pinned.LoadName.
	files []*os.File
}

// noTelemetry is the variable that keeps ONNX Runtime from reporting to its maker. Since version
// 1.31 the library for Linux writes an id of the device and a database to ~/.cache, and looks up
// mobile.events.data.microsoft.com. It reads the variable when it is initialised; its API could
// switch reports off only after that.
const noTelemetry = "ORT_DISABLE_TELEMETRY"

// Load loads ONNX Runtime's shared library at path for the whole process, if it has the
// SHA-256 in hexadecimal digits. An empty sha256 means the library that set-up installs.
// The error wraps a *pinned.ChangedError if it is another one. Later calls with the same
// path do nothing; another path is an error.
func Load(path, sha256 string) (err error) {
	loaded.mu.Lock()
	defer loaded.mu.Unlock()
	if loaded.path == path && path != "" {
		return nil
	}
	if loaded.path != "" {
		return fmt.Errorf("load ONNX Runtime: another copy is loaded already")
	}
	if path == "" {
		return fmt.Errorf("load ONNX Runtime: no path given")
	}
	own := sha256 != ""
	if !own {
		if sha256 = pinned.Hash(installed()); sha256 == "" {
			return fmt.Errorf("load ONNX Runtime: no library is known for %s/%s: its SHA-256 is needed", runtime.GOOS, runtime.GOARCH)
		}
	}
	file, err := pinned.Open(path, sha256)
	if err != nil {
		return fmt.Errorf("load ONNX Runtime: %w", err)
	}
	loaded.files = append(loaded.files, file)
	name := pinned.LoadName(file)
	if own { // it may bring libraries that it finds beside itself ($ORIGIN)
		if name, err = filepath.Abs(path); err != nil {
			return fmt.Errorf("load ONNX Runtime: %w", err)
		}
	}
	defer recovered(&err, "load ONNX Runtime")
	if err := os.Setenv(noTelemetry, "1"); err != nil {
		return fmt.Errorf("load ONNX Runtime: %w", err)
	}
	ort.SetSharedLibraryPath(name)
	if err := ort.InitializeEnvironment(ort.WithLogLevelError()); err != nil {
		return fmt.Errorf("load ONNX Runtime: %w", err)
	}
	loaded.path = path
	return nil
}

// installed returns the name under which set-up installs the library.
func installed() string {
	if runtime.GOOS == "darwin" {
		return "libonnxruntime.dylib"
	}
	return "libonnxruntime.so"
}

// Version returns the loaded runtime's version, empty before Load.
func Version() string {
	loaded.mu.Lock()
	defer loaded.mu.Unlock()
	if loaded.path == "" {
		return ""
	}
	return ort.GetVersion()
}

// recovered turns a panic of the binding into *err.
func recovered(err *error, doing string) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s: the binding panicked: %v", doing, r)
	}
}
