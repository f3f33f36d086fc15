package replicas

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"facet/internal/id"
	"facet/node/datadir"
	"facet/raftfsm"
)

const (
	// outRetry is the pause before a replica whose disk was full is opened again.
	outRetry = 5 * time.Second
	// outFileMax is the most bytes of the file that says why a replica is out of service.
	outFileMax = 64 << 10
	// The file of a group's outage is named group-N with outSuffix. A folder that was set aside
	// has asideMark in its name, and then the time in the form asideTime.
	outSuffix = ".out"
	asideMark = ".damaged-"
	asideTime = "20060102T150405.000Z"
	// A folder with rewrittenMark in place of asideMark has committed entries that other
	// members have replaced. Only an operator removes it. rewrittenFile in it is the outage.
	rewrittenMark = ".rewritten-"
	rewrittenFile = "rewritten.json"
)

// ErrDiverged is returned when a replica's state differs from the majority's.
var ErrDiverged = errors.New("node: the replica's state differs from the majority's")

// outage records why and since when a replica on this node is out of service.
type outage struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Rewritten names the entries that other members have replaced; nil: none.
	Rewritten *raftfsm.RewriteError `json:"rewritten,omitempty"`
	// full reports whether the disk was full. The replica's files are then undamaged.
	full bool
	// reopened reports whether the replica was opened again without its damaged files and waits
	// for its state.
	reopened bool
}

// outages records which replicas on this node are out of service. A damaged replica has a
// file beside its folder until it has new state from its peers. While that file exists, the
// node does not open the replica on its old files, and the replica does not vote.
type outages struct {
	dir string

	mu sync.Mutex // guards of
	of map[id.Shard]outage
}

// openOutages reads the files that earlier runs have left in dir.
func openOutages(dir string) (*outages, error) {
	o := &outages{dir: dir, of: map[id.Shard]outage{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for replicas out of service: %w", err)
	}
	for _, e := range entries {
		var number id.Shard
		if n, _ := fmt.Sscanf(e.Name(), "group-%d"+outSuffix, &number); n != 1 || e.Name() != filepath.Base(o.file(number)) {
			continue
		}
		info, err := e.Info()
		if err != nil || info.Size() > outFileMax {
			return nil, errors.Join(fmt.Errorf("%s can't be read", e.Name()), err)
		}
		b, err := os.ReadFile(o.file(number))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", e.Name(), err)
		}
		var why outage
		if err := json.Unmarshal(b, &why); err != nil {
			why = outage{Reason: "its file " + e.Name() + " can't be read", At: info.ModTime()}
		}
		o.of[number] = why
	}
	return o, nil
}

func (o *outages) file(number id.Shard) string {
	return filepath.Join(o.dir, fmt.Sprintf("group-%d%s", number, outSuffix))
}

// note takes a replica out of service because of err. It returns an error when the process
// must end: after a failed write or fsync nobody knows what a file contains.
func (o *outages) note(number id.Shard, err error) error {
	why := outage{Reason: err.Error(), At: time.Now().UTC()}
	why.Rewritten, _ = errors.AsType[*raftfsm.RewriteError](err)
	switch {
	case number == id.Meta:
		return unlessRebuilt(err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		why.full = true
	case errors.Is(err, raftfsm.ErrCorrupt), errors.Is(err, raftfsm.ErrGone), errors.Is(err, ErrDiverged), errors.Is(err, ErrStateLost), why.Rewritten != nil:
		b, failed := json.Marshal(why)
		if failed == nil {
			failed = datadir.WriteSynced(o.file(number), b)
		}
		if failed != nil {
			return errors.Join(err, failed)
		}
	default:
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of[number] = why
	return nil
}

func (o *outages) get(number id.Shard) (outage, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	why, out := o.of[number]
	return why, out
}

func (o *outages) all() map[id.Shard]outage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.of)
}

// reopened records that a replica runs again and waits for its state.
func (o *outages) reopened(number id.Shard) {
	o.mu.Lock()
	defer o.mu.Unlock()
	why := o.of[number]
	why.reopened = true
	o.of[number] = why
}

// end records that a replica is back in service. It does nothing if a newer outage than was
// is recorded.
func (o *outages) end(number id.Shard, was outage) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[number] != was {
		return nil
	}
	if !was.full {
		if err := os.Remove(o.file(number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("end the outage of group %d: %w", number, err)
		}
	}
	delete(o.of, number)
	return datadir.Sync(o.dir)
}

// setAside renames a group's folder because of an outage and returns its new name. A
// missing folder is no error.
func (o *outages) setAside(folder string, why outage) (aside string, err error) {
	aside = folder + asideMark + time.Now().UTC().Format(asideTime)
	if why.Rewritten != nil {
		aside, err = asideRewritten(folder, aside, why)
	}
	if err == nil {
		err = os.Rename(folder, aside)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("set a damaged group aside: %w", err)
	}
	return aside, datadir.Sync(o.dir)
}

// asideRewritten writes the outage into a folder with replaced entries and returns the name
// for it. If that folder was set aside before a crash, the present one is the start of a
// new replica: asideRewritten then returns the name aside.
func asideRewritten(folder, aside string, why outage) (string, error) {
	kept := folder + rewrittenMark + why.At.Format(asideTime)
	if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) {
		return aside, err
	}
	b, err := json.Marshal(why)
	if err == nil {
		err = datadir.WriteSynced(filepath.Join(folder, rewrittenFile), b)
	}
	return kept, err
}

// aside returns the folders that were set aside, by name, and when each was.
func (o *outages) aside() map[string]time.Time { return o.marked(asideMark) }

func (o *outages) marked(mark string) map[string]time.Time {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return nil // the next write there reports it
	}
	found := map[string]time.Time{}
	for _, e := range entries {
		_, when, marked := strings.Cut(e.Name(), mark)
		if at, err := time.Parse(asideTime, when); marked && err == nil && e.IsDir() {
			found[e.Name()] = at
		}
	}
	return found
}

// rewritten returns how many groups have committed entries that other members have
// replaced, until an operator has removed the folders.
func (o *outages) rewritten() int {
	count := len(o.marked(rewrittenMark))
	for number, why := range o.all() {
		if _, err := os.Stat(Folder(o.dir, number) + rewrittenMark + why.At.Format(asideTime)); why.Rewritten != nil && err != nil {
			count++ // not set aside yet
		}
	}
	return count
}

// Rewritten reads which entries of a folder that was set aside were replaced.
func Rewritten(folder string) (*raftfsm.RewriteError, error) {
	b, err := os.ReadFile(filepath.Join(folder, rewrittenFile))
	if err != nil {
		return nil, err
	}
	var why outage
	if err := json.Unmarshal(b, &why); err != nil || why.Rewritten == nil {
		return nil, errors.Join(fmt.Errorf("%s does not say which entries were replaced", rewrittenFile), err)
	}
	return why.Rewritten, nil
}

// clear removes the folders that were set aside more than keep ago, because they contain
// data that has since been erased.
func (o *outages) clear(keep time.Duration) error {
	var err error
	for name, at := range o.aside() {
		if time.Since(at) > keep {
			err = errors.Join(err, os.RemoveAll(filepath.Join(o.dir, name)))
		}
	}
	return err
}

// alarms describes, for operators, the replicas out of service and the folders set aside. only
// reports whether a shard has no other replica.
func (o *outages) alarms(only func(id.Shard) bool) []string {
	var list []string
	all := o.all()
	for _, number := range slices.Sorted(maps.Keys(all)) {
		why := all[number]
		advice := ""
		if only(number) && !why.full {
			advice = ": it is the only replica, and nothing can rebuild it: put its files back, or restore a backup into a new cluster"
		}
		list = append(list, fmt.Sprintf("%s is out of service on this node since %s: %s%s", Name(number), why.At.Format(time.RFC3339), why.Reason, advice))
	}
	for _, name := range slices.Sorted(maps.Keys(o.aside())) {
		list = append(list, fmt.Sprintf("a damaged replica was set aside and rebuilt from its peers: its files are in %s", name))
	}
	for _, name := range slices.Sorted(maps.Keys(o.marked(rewrittenMark))) {
		entries := "entries"
		if why, err := Rewritten(filepath.Join(o.dir, name)); err == nil {
			entries = fmt.Sprintf("entries %d to %d", why.From, why.Commit)
		}
		list = append(list, fmt.Sprintf("HISTORY REWRITTEN: other members have replaced committed %s: see facet recover writes %s", entries, name))
	}
	return list
}

// Name returns the name of a group for messages.
func Name(number id.Shard) string {
	if number == id.Meta {
		return "meta"
	}
	return fmt.Sprintf("shard %d", number)
}
