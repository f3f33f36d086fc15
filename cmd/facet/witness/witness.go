package witness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"facet/cmd/facet/auditing"
	"facet/cmd/facet/process"
	"facet/internal/tiles"
	"facet/node/datadir"
)

const (
	// A node that is behind may show an older checkpoint, so the witness looks again before it says that
	// the log was rolled back.
	rollbackLooks = 3
	rollbackPause = 2 * time.Second

	keyFile, lockFile = "key", "lock"
	// refusedFile is the last checkpoint of a log that the witness did not cosign, beside the one that it
	// contradicts: both are signed by the log.
	refusedFile = "refused"
)

// ErrAlarm is returned for a log that was rolled back, forked or rewritten.
var ErrAlarm = errors.New("ALARM")

// Log is a log to follow.
type Log struct {
	Key  string // the log's verifier key
	From auditing.Source
}

// Config describes a witness.
type Config struct {
	Logs []Log
	// State is the folder of the cosigned checkpoints. It is made when missing.
	State string
	Key   Key
	// Interval is the pause between two looks at a log.
	Interval time.Duration
	Out      *slog.Logger
}

// Witness follows logs.
type Witness struct {
	cfg  Config
	lock *process.PIDFile
}

// Open returns the witness with a state. It returns a *process.RunningError while another process
// has the state.
func Open(cfg Config) (*Witness, error) {
	if err := os.MkdirAll(cfg.State, 0o755); err != nil {
		return nil, fmt.Errorf("make the witness's folder: %w", err)
	}
	lock, err := process.Lock(filepath.Join(cfg.State, lockFile))
	if err != nil {
		return nil, fmt.Errorf("open the witness's folder: %w", err)
	}
	w := &Witness{cfg, lock}
	if err := w.save(keyFile, []byte(cfg.Key.Public+"\n")); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return w, nil
}

// Close releases the state.
func (w *Witness) Close() error { return w.lock.Close() }

// Run looks at each log at each interval until ctx ends. The error wraps ErrAlarm if the last look
// at a log found it rolled back, forked or rewritten.
func (w *Witness) Run(ctx context.Context) error {
	last := make([]error, len(w.cfg.Logs))
	var wg sync.WaitGroup
	for i, l := range w.cfg.Logs {
		wg.Go(func() {
			for said := ""; ; {
				err := w.look(ctx, l)
				if ctx.Err() != nil {
					return
				}
				text := ""
				if last[i] = err; err != nil {
					text = err.Error()
				}
				if text != said && err != nil { // the same every ten seconds would hide the rest
					w.cfg.Out.ErrorContext(ctx, "not cosigned", "err", err)
				}
				said = text
				select {
				case <-time.After(w.cfg.Interval):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	wg.Wait()
	var alarms []error
	for _, err := range last {
		if errors.Is(err, ErrAlarm) {
			alarms = append(alarms, err)
		}
	}
	return errors.Join(alarms...)
}

// Once looks at each log once and returns what keeps it from being cosigned.
func (w *Witness) Once(ctx context.Context) error {
	var failed []error
	for _, l := range w.cfg.Logs {
		failed = append(failed, w.look(ctx, l))
	}
	return errors.Join(failed...)
}

// look fetches a log's checkpoint and cosigns it if it is new and continues the last one.
func (w *Witness) look(ctx context.Context, l Log) error {
	origin, err := tiles.KeyOrigin(l.Key)
	if err != nil {
		return err
	}
	before, err := auditing.ReadWitnessed(w.cfg.State, l.Key, w.cfg.Key.Public)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the log %s: the witness's own checkpoint can't be read, and without it the log can't be followed: %w", origin, err)
	}
	first := err != nil
	signed, now, n, err := fetch(ctx, l, before.N)
	if err == nil && !first && now == before.Checkpoint {
		return nil
	}
	if err == nil {
		err = continues(ctx, l, now, before)
	}
	if errors.Is(err, ErrAlarm) {
		err = errors.Join(err, w.save(logPath(origin, refusedFile), signed))
	}
	if err != nil {
		return fmt.Errorf("the log %s: %w", origin, err)
	}
	cosigned, err := note.Sign(&note.Note{Text: n.Text, Sigs: n.Sigs}, w.cfg.Key.Signer)
	if err == nil {
		err = w.save(auditing.WitnessedPath(origin), cosigned)
	}
	if err != nil {
		return fmt.Errorf("the log %s: cosign: %w", origin, err)
	}
	w.cfg.Out.InfoContext(ctx, "cosigned", "log", origin, "entries", now.N, "root", now.Hash.String())
	return nil
}

// fetch returns the log's checkpoint. One with fewer entries than before it fetches again.
func fetch(ctx context.Context, l Log, before int64) (signed []byte, now tiles.Checkpoint, n *note.Note, err error) {
	for look := 1; ; look++ {
		if signed, err = l.From.Read(ctx, tiles.CheckpointPath, tiles.CheckpointBytesMax); err == nil {
			now, n, err = tiles.Open(signed, l.Key)
		}
		if err != nil || now.N >= before || look == rollbackLooks {
			return signed, now, n, err
		}
		select {
		case <-time.After(rollbackPause):
		case <-ctx.Done():
			return nil, now, nil, ctx.Err()
		}
	}
}

// continues returns an error unless the log's tree contains that of before. It wraps ErrAlarm if the
// log was changed.
func continues(ctx context.Context, l Log, now tiles.Checkpoint, before auditing.Witnessed) error {
	switch {
	case before.N == 0:
		return nil
	case now.N < before.N:
		return fmt.Errorf("%w: the log was rolled back: it shows %d entries, and %d were cosigned on %s", ErrAlarm, now.N, before.N, before.At.UTC().Format(time.RFC3339))
	case now.N == before.N && now.Hash != before.Hash:
		return fmt.Errorf("%w: the log was forked: its %d entries have another root hash than those cosigned on %s", ErrAlarm, now.N, before.At.UTC().Format(time.RFC3339))
	}
	err := auditing.Contains(ctx, l.From, now.Tree, before.Tree)
	if errors.Is(err, auditing.ErrFork) {
		return fmt.Errorf("%w: %d entries were cosigned on %s, and now there are %d: %w", ErrAlarm, before.N, before.At.UTC().Format(time.RFC3339), now.N, err)
	}
	return err
}

// logPath returns the path of a log's file in the state.
func logPath(origin, file string) string {
	return filepath.Join(filepath.Dir(auditing.WitnessedPath(origin)), file)
}

// save writes a file of the state, whole and synced. A web server may read it.
func (w *Witness) save(name string, b []byte) error {
	name = filepath.Join(w.cfg.State, name)
	if _, err := os.Stat(filepath.Dir(name)); errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(os.Mkdir(filepath.Dir(name), 0o755), datadir.Sync(w.cfg.State)); err != nil {
			return fmt.Errorf("make a folder of the witness: %w", err)
		}
	}
	left, _ := filepath.Glob(name + ".*") // of a process that died while it wrote
	for _, f := range left {
		_ = os.Remove(f)
	}
	if err := datadir.WriteSynced(name, b); err != nil {
		return err
	}
	return os.Chmod(name, 0o644)
}

// ParseLog returns the log that a text KEY@SOURCE names. ca is as for auditing.OpenSource.
func ParseLog(ctx context.Context, text, ca string) (l Log, err error) {
	key, where, ok := strings.Cut(text, "@")
	if _, bad := tiles.KeyOrigin(key); bad != nil || !ok {
		return l, fmt.Errorf("%q is not of the form KEY@SOURCE, with the log's key as \"facet audit key\" prints it", text)
	}
	l.Key = key
	l.From, err = auditing.OpenSource(ctx, where, ca)
	return l, err
}
