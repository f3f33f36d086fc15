package segment

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

const (
	// deadShare: a file is rewritten if at least one in deadShare of its records is dead.
	deadShare = 4
	// mergeFiles is how many of the newest files are merged when none has a larger level than the
	// newest. Each record is written about once for each of mergeLevels levels, and each level has
	// at most mergeFiles − 1 files.
	mergeFiles  = 4
	mergeLevels = 4
)

// Change is the difference between a set and the present state.
type Change struct {
	// Dead are the sequences of records that died, in any order. Sequences in no file of the set
	// are ignored.
	Dead []uint64
	// Fresh are the records after the set's last, in ascending order.
	Fresh iter.Seq[Record]
	// Clean says which dead records must go.
	Clean Clean
}

// Clean says which files Build rewrites because of dead records.
type Clean uint8

const (
	// Share rewrites a file when at least one in deadShare of its records is dead.
	Share Clean = iota
	// Erase leaves no sealed part of a dead record in any file of the new set, and no dead record
	// at all in Batches.
	Erase
	// Leave keeps a file of Batches as long as any of its records lives. It suits states whose
	// oldest records die first.
	Leave
)

// Built counts the files and bytes that Build wrote.
type Built struct {
	Files int
	Bytes int64
}

func (b *Built) count(f *File) {
	b.Files++
	b.Bytes += f.ref.Bytes
}

// builder makes one set from another.
type builder struct {
	store *Store
	parts []Part // of the new set; the builder holds a reference on each file
	built Built
}

// Build makes the set that follows old, which may be nil. When it returns, the new files survive a
// loss of power. An error changes nothing, except for files that Collect removes.
func (s *Store) Build(old *Set, c Change) (*Set, Built, error) {
	b := &builder{store: s}
	err := b.addDead(old, c.Dead)
	if err == nil && c.Fresh != nil {
		err = b.output().addAll(c.Fresh)
	}
	if err == nil {
		err = b.rewrite(c.Clean)
	}
	if err == nil {
		err = s.Sync()
	}
	if err != nil {
		b.release(b.parts)
		return nil, Built{}, fmt.Errorf("build segments: %w", err)
	}
	set, err := NewSet(b.parts)
	return set, b.built, err
}

func (b *builder) release(parts []Part) {
	for _, p := range parts {
		p.File.Release()
	}
}

// addDead takes over the parts of old and adds the dead records to them.
func (b *builder) addDead(old *Set, dead []uint64) error {
	dead = slices.Clone(dead)
	slices.Sort(dead)
	for _, p := range old.Parts() {
		p.File.Retain()
		b.parts = append(b.parts, p)
		_, last := p.File.Range()
		end, found := slices.BinarySearch(dead, last)
		if found {
			end++
		}
		if err := b.parts[len(b.parts)-1].addDead(dead[:end]); err != nil {
			return err
		}
		dead = dead[end:]
	}
	return nil
}

// addDead adds to p.Dead the sequences that the part's file has. dead is in ascending order.
func (p *Part) addDead(dead []uint64) error {
	first, _ := p.File.Range()
	start, _ := slices.BinarySearch(dead, first)
	if dead = dead[start:]; len(dead) == 0 {
		return nil
	}
	more, moreSealed, err := p.File.among(dead)
	if err != nil || len(more) == 0 {
		return err
	}
	all := slices.Concat(p.Dead, more)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != len(p.Dead)+len(more) {
		return fmt.Errorf("bug: a record of segment %s died twice", p.File.ref.Hash)
	}
	p.Dead, p.DeadSealed = all, p.DeadSealed+moreSealed
	return nil
}

// among returns the sequences that the file has, and how many of these records have a sealed part.
// sequences is in ascending order. among reads only the blocks that may have one of them.
func (f *File) among(sequences []uint64) (found []uint64, sealed int, err error) {
	var buf []byte
	for _, k := range f.clear {
		end, last := slices.BinarySearch(sequences, k.last)
		if last {
			end++
		}
		if end == 0 {
			continue
		}
		if buf, err = f.read(k, buf); err != nil {
			return nil, 0, err
		}
		for b := buf; len(b) > 0; {
			var sequence uint64
			var part []byte
			if sequence, part, b, err = cutRecord(b); err != nil {
				return nil, 0, f.damage(err)
			}
			if _, ok := slices.BinarySearch(sequences[:end], sequence); ok {
				found = append(found, sequence)
				if slices.ContainsFunc(part[:min(len(part), sealedLenBytes)], func(c byte) bool { return c != 0 }) {
					sealed++
				}
			}
		}
		sequences = sequences[end:]
	}
	return found, sealed, nil
}

// output returns an output that adds its files to the parts.
func (b *builder) output() *output {
	return &output{
		store: b.store,
		full:  func(w *Writer) bool { return w.Bytes() >= b.store.bytes },
		done: func(f *File) {
			b.parts = append(b.parts, Part{File: f})
			b.built.count(f)
		},
	}
}

// output writes records into as many files as they need.
type output struct {
	store *Store
	w     *Writer
	full  func(*Writer) bool
	done  func(*File)
}

// addAll writes records and finishes the last file.
func (o *output) addAll(records iter.Seq[Record]) (err error) {
	defer func() { err = errors.Join(err, o.cancel()) }()
	for r := range records {
		if err := o.add(r); err != nil {
			return err
		}
	}
	return o.end()
}

func (o *output) add(r Record) (err error) {
	if o.w == nil {
		if o.w, err = o.store.Create(); err != nil {
			return err
		}
	}
	if o.w.Add(r); !o.full(o.w) {
		return nil
	}
	return o.end()
}

func (o *output) end() error {
	if o.w == nil {
		return nil
	}
	f, err := o.w.Close()
	if o.w = nil; err != nil {
		return err
	}
	o.done(f)
	return nil
}

func (o *output) cancel() error {
	if o.w == nil {
		return nil
	}
	return o.w.Cancel()
}

// run is a sequence of neighbours that become one file.
type run struct {
	parts []Part
	bytes int64
}

// rewrite merges small files and drops dead records.
func (b *builder) rewrite(clean Clean) (err error) {
	parts := b.parts
	runs := merge(parts, b.store.bytes)
	b.parts = nil
	out := b.output()
	defer func() {
		if err != nil { // parts that no new file has replaced
			for _, r := range runs {
				b.release(r.parts)
			}
		}
		err = errors.Join(err, out.cancel())
	}()
	for len(runs) > 0 {
		r := runs[0]
		if len(r.parts) == 1 && !r.parts[0].needsRewrite(clean) {
			if err := out.end(); err != nil {
				return err
			}
			b.parts = append(b.parts, r.parts[0])
			runs = runs[1:]
			continue
		}
		if err := out.copy(r.parts); err != nil {
			return err
		}
		if len(r.parts) > 1 { // a merged run; neighbouring parts that need a rewrite share a file instead
			if err := out.end(); err != nil {
				return err
			}
		}
		b.release(r.parts)
		runs = runs[1:]
	}
	return out.end()
}

// needsRewrite reports whether the dead records make a rewrite of the part necessary.
func (p *Part) needsRewrite(clean Clean) bool {
	all, _ := p.File.Records()
	return clean == Erase && p.DeadSealed > 0 || len(p.Dead) > 0 && uint64(len(p.Dead)) >= all/deadShare
}

// copy writes the live records of parts.
func (o *output) copy(parts []Part) error {
	for _, p := range parts {
		dead := p.Dead
		err := p.File.Scan(func(r Record) error {
			if len(dead) > 0 && dead[0] == r.Sequence {
				dead = dead[1:]
				return nil
			}
			return o.add(r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// merge groups the parts; each run becomes one file.
func merge(parts []Part, bytesMax int64) []run {
	runs := make([]run, 0, len(parts))
	for _, p := range parts {
		runs = append(runs, run{[]Part{p}, p.File.ref.Bytes})
		for joined := true; joined; {
			runs, joined = mergeLast(runs, bytesMax)
		}
	}
	return runs
}

// mergeLast joins the last mergeFiles runs if none of them has a larger level than the last one and
// the result has at most bytesMax bytes.
func mergeLast(runs []run, bytesMax int64) ([]run, bool) {
	n := len(runs) - mergeFiles
	if n < 0 {
		return runs, false
	}
	last := runs[n:]
	joined := run{}
	for _, r := range last {
		if level(r.bytes, bytesMax) > level(last[mergeFiles-1].bytes, bytesMax) {
			return runs, false
		}
		joined.parts = append(joined.parts, r.parts...)
		joined.bytes += r.bytes
	}
	if joined.bytes > bytesMax {
		return runs, false
	}
	return append(runs[:n], joined), true
}

// level returns 0 for the smallest files and mergeLevels − 1 for files of at least one
// mergeFiles-th of bytesMax.
func level(bytes, bytesMax int64) int {
	for l := mergeLevels - 1; l > 0; l-- {
		if bytesMax /= mergeFiles; bytes >= bytesMax {
			return l
		}
	}
	return 0
}
