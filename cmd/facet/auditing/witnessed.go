package auditing

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	cosignature "github.com/transparency-dev/formats/note"

	"facet/internal/tiles"
)

// Witnessed is a checkpoint that a witness has cosigned.
type Witnessed struct {
	tiles.Checkpoint
	Witness string
	At      time.Time // by the witness's clock
}

func (w Witnessed) at() string { return w.At.UTC().Format(time.DateTime + "Z") }

// OpenWitnessed returns a checkpoint that the log and a witness have signed. The error wraps
// tiles.ErrCheckpoint unless the witness's key can't be read.
func OpenWitnessed(signed []byte, key, witnessKey string) (w Witnessed, err error) {
	v, err := cosignature.NewVerifierForCosignatureV1(strings.TrimSpace(witnessKey))
	if err != nil {
		return w, fmt.Errorf("the witness's key can't be read: %w; it is the file key in the witness's folder", err)
	}
	c, n, err := tiles.Open(signed, key, v)
	if err != nil {
		return w, err
	}
	for _, s := range n.Sigs {
		if s.Name != v.Name() || s.Hash != v.KeyHash() {
			continue
		}
		at, err := cosignature.CoSigV1Timestamp(s)
		if err != nil {
			return w, fmt.Errorf("%w: %w", tiles.ErrCheckpoint, err)
		}
		return Witnessed{c, v.Name(), at}, nil
	}
	return w, fmt.Errorf("%w: the witness %s has not signed it", tiles.ErrCheckpoint, v.Name())
}

// WitnessedPath is the path of a log's checkpoint in the folder of a witness.
func WitnessedPath(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return hex.EncodeToString(sum[:]) + "/" + tiles.CheckpointPath
}

// ReadWitnessed reads a cosigned checkpoint from a file, or from the folder of a witness.
func ReadWitnessed(name, key, witnessKey string) (Witnessed, error) {
	origin, err := tiles.KeyOrigin(key)
	if err != nil {
		return Witnessed{}, err
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, WitnessedPath(origin))
	}
	text, err := ReadFile(name, tiles.CheckpointBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return Witnessed{}, fmt.Errorf("the witness has no checkpoint of the log %s: %w", origin, err)
	}
	if err != nil {
		return Witnessed{}, fmt.Errorf("read the witness's checkpoint: %w", err)
	}
	w, err := OpenWitnessed(text, key, witnessKey)
	if err != nil {
		return Witnessed{}, fmt.Errorf("%s: %w", name, err)
	}
	return w, nil
}
