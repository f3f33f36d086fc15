package shard

import (
	"fmt"

	"facet/internal/codec"
	"facet/shard/segment"
)

func (l *Loader) storedShard(m codec.Message) error {
	var r storedRecord
	if err := m.Decode(headStored, &r); err != nil {
		return err
	}
	l.stored, l.segments = true, r.Segments
	return l.begin(shardRecord{r.Sequence, r.Slices, r.Fences, r.Pending})
}

func (l *Loader) segment(m codec.Message) error {
	var r segmentRecord
	if err := m.Decode(headSegment, &r); err != nil {
		return err
	}
	if !l.stored || uint64(len(l.parts)) >= l.segments || l.state.pending.Len() > 0 ||
		uint64(len(l.state.slices)) != l.head.Slices || uint64(len(l.state.fences.of)) != l.head.Fences {
		return fmt.Errorf("%w: segment %s is out of place", ErrSnapshot, r.Hash)
	}
	dead, ok := decodeSequences(r.Dead)
	if !ok {
		return fmt.Errorf("%w: dead entries of segment %s", ErrSnapshot, r.Hash)
	}
	if l.store == nil {
		return fmt.Errorf("%w: no store for segment %s", ErrSnapshot, r.Hash)
	}
	f, err := l.store.File(r.Hash)
	if err != nil {
		return err
	}
	l.parts = append(l.parts, segment.Part{File: f, Dead: dead})
	l.companion(r.Hash)
	return l.entries(&l.parts[len(l.parts)-1])
}

func (l *Loader) entries(p *segment.Part) error {
	dead := p.Dead
	var sl *slice // of the row before, most often of the next one, too
	err := p.File.Clear(func(sequence uint64, row []byte, sealed int) error {
		if len(dead) > 0 && dead[0] == sequence {
			dead = dead[1:]
			if sealed > 0 {
				p.DeadSealed++
			}
			return nil
		}
		from, d, head, err := decodeRow(row, sequence)
		if err != nil {
			return err
		}
		face := sealed - int(d.NoteLen)
		if face < 0 || face > SealedMax {
			return fmt.Errorf("%w: face or note of entry %d", ErrSnapshot, sequence)
		}
		d.SealedLen = uint16(face)
		if sl == nil || sl.gallery != from.gallery {
			sl = l.state.slices[from.gallery]
		}
		if sl != nil && sl.generation == from.generation {
			sl.models.add(head)
			return l.add(sl, nil, &d)
		}
		if f := l.state.fences.of[from.gallery]; f != nil && from.generation < f.generation {
			return l.add(nil, f.remains, &d)
		}
		return fmt.Errorf("%w: entry %d belongs nowhere", ErrSnapshot, sequence)
	})
	if err != nil {
		return fmt.Errorf("entries of segment %s: %w", p.File.Ref().Hash, err)
	}
	if len(dead) > 0 {
		return fmt.Errorf("%w: segment %s has no entry %d", ErrSnapshot, p.File.Ref().Hash, dead[0])
	}
	return nil
}
