package membership

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"facet/internal/id"
)

// Bounds of the address book.
const (
	bookMax      = 256
	bookBytesMax = bookMax * (addressBytesMax + 128)
)

// addressBook records where members were last seen: the latest bookMax of them, in
// a file that is replaced by rename. An error of the file is logged and otherwise
// ignored, because the book only helps to find the others sooner.
type addressBook struct {
	file string
	log  *slog.Logger

	mu      sync.Mutex  // guards entries; never held during I/O
	entries []bookEntry // oldest first

	saving sync.Mutex // guards saved and the file; taken before mu
	saved  []bookEntry
}

type bookEntry struct {
	Member  id.Member `json:"member"`
	Address string    `json:"address"`
}

// openBook reads the file, if there is one.
func openBook(file string, log *slog.Logger) *addressBook {
	b := &addressBook{file: file, log: log}
	if file == "" {
		return b
	}
	entries, err := readBook(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("last known addresses not read", "err", err)
	}
	b.entries, b.saved = entries, slices.Clone(entries)
	return b
}

func readBook(file string) ([]bookEntry, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, bookBytesMax+1))
	if err != nil {
		return nil, err
	}
	return parseBook(raw)
}

// parseBook parses the file's bytes. Malformed entries are an error.
func parseBook(raw []byte) ([]bookEntry, error) {
	if len(raw) > bookBytesMax {
		return nil, errors.New("the file is too large")
	}
	var entries []bookEntry
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, err
	}
	if len(entries) > bookMax {
		return nil, fmt.Errorf("%d entries", len(entries))
	}
	for _, e := range entries {
		if _, err := e.Member.Node(); err != nil || !isAddress(e.Address) {
			return nil, fmt.Errorf("entry of %.48q at %.48q is not in order", string(e.Member), e.Address)
		}
	}
	return entries, nil
}

// remember records the address of member. When the book is full, the oldest entry
// is dropped.
func (b *addressBook) remember(member id.Member, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = slices.DeleteFunc(b.entries, func(e bookEntry) bool { return e.Member == member })
	b.entries = append(b.entries, bookEntry{member, address})
	if over := len(b.entries) - bookMax; over > 0 {
		b.entries = slices.Delete(b.entries, 0, over)
	}
}

// forget removes member.
func (b *addressBook) forget(member id.Member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = slices.DeleteFunc(b.entries, func(e bookEntry) bool { return e.Member == member })
}

// address returns where member was last seen.
func (b *addressBook) address(member id.Member) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.Member == member {
			return e.Address, true
		}
	}
	return "", false
}

// addresses returns all addresses, the latest first.
func (b *addressBook) addresses() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]string, 0, len(b.entries))
	for _, e := range slices.Backward(b.entries) {
		out = append(out, e.Address)
	}
	return out
}

// save refreshes the entries of the present members and writes the file if it
// changed.
func (b *addressBook) save(there map[id.Member]string) {
	for _, member := range slices.Sorted(maps.Keys(there)) {
		if address, ok := b.address(member); !ok || address != there[member] {
			b.remember(member, there[member])
		}
	}
	b.saving.Lock()
	defer b.saving.Unlock()
	b.mu.Lock()
	entries := slices.Clone(b.entries)
	b.mu.Unlock()
	if b.file == "" || slices.Equal(entries, b.saved) {
		return
	}
	if err := writeBook(b.file, entries); err != nil {
		b.log.Warn("last known addresses not saved", "err", err)
		return
	}
	b.saved = entries
}

// writeBook writes a new file and renames it to file. It does not sync: after a
// crash the book may be old or empty, which only costs time.
func writeBook(file string, entries []bookEntry) (err error) {
	raw, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".addresses-*")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
