//go:build darwin || linux || freebsd || netbsd

package turbo

import (
	"fmt"
	"path/filepath"

	"github.com/ebitengine/purego"
)

// mPerturb is glibc's M_PERTURB (mallopt(3)): memory is overwritten when it is freed.
const mPerturb = -6

// clearFreed makes the C library overwrite what it frees. libjpeg does not clear its memory, which
// would keep pieces of the photo. C libraries other than glibc do not have this.
func clearFreed() {
	symbol, err := purego.Dlsym(purego.RTLD_DEFAULT, "mallopt")
	if err != nil {
		return
	}
	var mallopt func(parameter, value int32) int32
	purego.RegisterFunc(&mallopt, symbol)
	mallopt(mPerturb, 1)
}

func (l *Library) load(path string) error {
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return fmt.Errorf("%s: not there, or not for this machine", filepath.Base(l.name))
	}
	for name, f := range map[string]any{
		"tjInitDecompress": &l.initDecompress,
		"tjDecompress2":    &l.decompress,
		"tjDestroy":        &l.destroy,
		"tjGetErrorStr2":   &l.errorText,
		"tjGetErrorCode":   &l.errorCode,
	} {
		symbol, err := purego.Dlsym(lib, name)
		if err != nil {
			return fmt.Errorf("%s has no %s: it is older than version 2", filepath.Base(l.name), name)
		}
		purego.RegisterFunc(f, symbol)
	}
	clearFreed()
	return nil
}
