package auditing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/transparency-dev/formats/proof"
	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/tiles"
)

const (
	// ProofBytesMax is the most bytes of a proof.
	ProofBytesMax = 256 << 10
	// entryInProof is the most bytes of an entry that a proof has: a line of one has 64 KiB.
	entryInProof = 48_000
	proofHashes  = 63 // the most of a proof
	olderLine    = "old "
)

// ErrProof is returned for a text that is no valid proof.
var ErrProof = errors.New("not a valid proof")

// Proven has the entry or the older state that a proof shows.
type Proven struct {
	Checkpoint tiles.Checkpoint
	Entry      []byte
	Index      int64
}

// current returns the log's checkpoint, as it is signed and opened.
func current(ctx context.Context, from Source, key string) ([]byte, tiles.Checkpoint, error) {
	signed, err := from.Read(ctx, tiles.CheckpointPath, tiles.CheckpointBytesMax)
	if err != nil {
		return nil, tiles.Checkpoint{}, fmt.Errorf("read the checkpoint: %w", err)
	}
	c, _, err := tiles.Open(signed, key)
	return signed, c, err
}

// Prove returns a proof that the log has an entry, in the form tlog-proof. Its extra data is the
// entry, unless that is past its retention or longer than a line may be.
func Prove(ctx context.Context, from Source, key string, index int64) ([]byte, error) {
	signed, c, err := current(ctx, from, key)
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= c.N {
		return nil, fmt.Errorf("the log has the entries 0 to %d, and no entry %d", c.N-1, index)
	}
	hashes, err := tlog.ProveRecord(c.N, index, hashesOf(ctx, c.Tree, from))
	if err != nil {
		return nil, err
	}
	p := proof.TLogProof{Index: uint64(index), Checkpoint: signed}
	for _, h := range hashes {
		p.Hashes = append(p.Hashes, h)
	}
	list, err := readBundle(ctx, from, tiles.In(tiles.EntryLevel, index/tiles.Width, c.N))
	gone := errors.Is(err, ErrGone) || errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone {
		return nil, err
	}
	if !gone && len(list[index%tiles.Width]) <= entryInProof {
		p.ExtraData = list[index%tiles.Width]
		if err := tlog.CheckRecord(hashes, c.N, c.Hash, index, tlog.RecordHash(p.ExtraData)); err != nil {
			return nil, fmt.Errorf("entry %d is not that of the checkpoint", index)
		}
	}
	return p.Marshal(), nil
}

// CheckProof checks a proof of one entry with the log's key. entry is the entry if the proof does
// not have it, else nil. The error wraps ErrProof.
func CheckProof(text []byte, key string, entry []byte) (Proven, error) {
	var p proof.TLogProof
	if err := p.Unmarshal(text); err != nil {
		return Proven{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	if !bytes.Equal(p.Marshal(), text) || len(p.Hashes) > proofHashes {
		return Proven{}, fmt.Errorf("%w: it has another form than tlog-proof", ErrProof)
	}
	c, _, err := tiles.Open(p.Checkpoint, key)
	if err != nil {
		return Proven{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	if p.ExtraData == nil && entry == nil {
		return Proven{}, fmt.Errorf("%w without the entry %d, which the proof does not have: name its file with --entry", ErrProof, p.Index)
	}
	if entry == nil {
		entry = p.ExtraData
	}
	var hashes tlog.RecordProof
	for _, h := range p.Hashes {
		hashes = append(hashes, h)
	}
	if p.Index >= uint64(c.N) {
		return Proven{}, fmt.Errorf("%w: entry %d is not in a log of %d entries", ErrProof, p.Index, c.N)
	}
	if err := tlog.CheckRecord(hashes, c.N, c.Hash, int64(p.Index), tlog.RecordHash(entry)); err != nil {
		return Proven{}, fmt.Errorf("%w: the log of the checkpoint has another entry %d", ErrProof, p.Index)
	}
	return Proven{c, entry, int64(p.Index)}, nil
}

// ProveOlder returns a proof that the log contains the tree of an older checkpoint, in the form of
// a request of tlog-witness.
func ProveOlder(ctx context.Context, from Source, key string, older []byte) ([]byte, error) {
	before, _, err := tiles.Open(older, key)
	if err != nil {
		return nil, fmt.Errorf("read the older checkpoint: %w", err)
	}
	signed, c, err := current(ctx, from, key)
	if err != nil {
		return nil, err
	}
	if before.N > c.N {
		return nil, fmt.Errorf("the log has %d entries, and the older checkpoint %d: the log was rolled back", c.N, before.N)
	}
	reader := hashesOf(ctx, c.Tree, from)
	if err := contains(reader, before.Tree); err != nil {
		return nil, err
	}
	var hashes tlog.TreeProof
	if before.N > 0 {
		if hashes, err = tlog.ProveTree(c.N, before.N, reader); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%d\n", olderLine, before.N)
	for _, h := range hashes {
		fmt.Fprintln(&b, h)
	}
	fmt.Fprintf(&b, "\n%s", signed)
	return b.Bytes(), nil
}

// CheckOlder checks a proof of ProveOlder, and returns both checkpoints. The error wraps ErrProof.
func CheckOlder(text, older []byte, key string) (before, now tiles.Checkpoint, err error) {
	if before, _, err = tiles.Open(older, key); err != nil {
		return before, now, fmt.Errorf("%w: the older checkpoint: %w", ErrProof, err)
	}
	head, signed, _ := bytes.Cut(text, []byte("\n\n"))
	if now, _, err = tiles.Open(signed, key); err != nil {
		return before, now, fmt.Errorf("%w: %w", ErrProof, err)
	}
	lines := strings.Split(string(head), "\n")
	if lines[0] != olderLine+strconv.FormatInt(before.N, 10) || len(lines) > proofHashes+1 {
		return before, now, fmt.Errorf("%w: it is not about the older checkpoint's %d entries", ErrProof, before.N)
	}
	var hashes tlog.TreeProof
	for _, l := range lines[1:] {
		h, err := tlog.ParseHash(l)
		if err != nil || h.String() != l {
			return before, now, fmt.Errorf("%w: a hash of it can't be read", ErrProof)
		}
		hashes = append(hashes, h)
	}
	if before.N == 0 && len(hashes) == 0 {
		return before, now, nil
	}
	if err := tlog.CheckTree(hashes, now.N, now.Hash, before.N, before.Hash); err != nil {
		return before, now, fmt.Errorf("%w: the log of %d entries does not contain the older one of %d", ErrProof, now.N, before.N)
	}
	return before, now, nil
}

// IsOlder reports whether a text has the form of a proof of ProveOlder.
func IsOlder(text []byte) bool { return bytes.HasPrefix(text, []byte(olderLine)) }
