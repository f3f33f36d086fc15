package shardfsm

import (
	"encoding/binary"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard"
	"facet/shard/seal"
)

// sizes returns the sizes of the files in a folder.
func sizes(b *testing.B, dir string) map[string]int64 {
	b.Helper()
	list := make(map[string]int64)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			info, statErr := d.Info()
			if err = statErr; err == nil {
				list[path] = info.Size()
			}
		}
		return err
	})
	must.Do(b, err)
	return list
}

// written returns the size of the files of now that before does not have.
func written(before, now map[string]int64) (n int64) {
	for path, size := range now {
		if _, old := before[path]; !old {
			n += size
		}
	}
	return n
}

// fill enrols events with faces of 192 numbers, without the log.
func fill(b *testing.B, s *shard.Shard, key *seal.Key, from, to int) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	for i := from; i < to; i++ {
		var u id.UUID
		binary.BigEndian.PutUint64(u[:], uint64(i)*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(u[8:], uint64(i))
		e := shard.Event{Gallery: testGallery, Generation: 1, Subject: id.Subject{UUID: u}, Event: id.Event{UUID: u}, Time: testTime, Tags: []uint32{1}}
		face := engine.Face{Template: make(engine.Template, 192)}
		var squares float64
		for j := range face.Template {
			face.Template[j] = float32(random.NormFloat64())
			squares += float64(face.Template[j]) * float64(face.Template[j])
		}
		for j := range face.Template { // unit length, without which there are no codes
			face.Template[j] /= float32(math.Sqrt(squares))
		}
		e.Sealed = shard.SealFace(key, shard.FaceRef{Gallery: testGallery, Generation: 1, Subject: e.Subject, Event: e.Event}, face)
		must.Do(b, s.Put(e, shard.OldestDeleted))
	}
}
