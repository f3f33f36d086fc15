package node

import (
	"os"
	"path/filepath"
	"testing"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

func TestACensusCountsWhatIsMissingAndWhatIsAtRisk(t *testing.T) {
	t.Parallel()
	f := func(voters, alive string, moving bool, want census) {
		t.Helper()
		var members []id.Member
		for _, v := range voters {
			members = append(members, id.Member(v))
		}
		lives := map[id.Member]bool{}
		for _, a := range alive {
			lives[id.Member(a)] = true
		}
		if got := censusOf([]metafsm.ShardVoters{{Shard: 1, Voters: members, Moving: moving}}, 3, lives); got != want {
			t.Errorf("%s with %s alive: got %+v, want %+v", voters, alive, got, want)
		}
	}
	f("abc", "abc", false, census{})
	f("abc", "abcd", true, census{moving: 1})
	f("abc", "ab", false, census{missing: 1, under: 1, atRisk: 1})
	f("abc", "a", false, census{missing: 2, under: 1, atRisk: 1})
	f("abcde", "abcd", false, census{})
	f("abcde", "abc", false, census{atRisk: 1})
	f("ab", "ab", false, census{missing: 1, under: 1, atRisk: 1})
	f("a", "a", false, census{missing: 2, under: 1, atRisk: 1})
}

func TestTheSizesOfAGroupsFilesAreToldApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, size := range map[string]int{
		"raft.db": 100, "snapshots/2-5-7/state.bin": 30, "snapshots/2-5-7/meta.json": 3, "segments/a": 500, "segments/b": 50,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := filesOf(dir)
	if err != nil || got.log != 100 || got.snapshots != 33 || got.segments != 550 || got.snapshotAt.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := filesOf(filepath.Join(dir, "none")); err != nil || got != (groupFiles{}) {
		t.Errorf("a folder that went away: %+v, %v", got, err)
	}
}
