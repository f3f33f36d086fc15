package node

import (
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

func TestScheduleRefusesUnknownStore(t *testing.T) {
	t.Parallel()
	f := func(to string, want string) {
		t.Helper()
		err := Config{BackupTo: to, BackupEvery: time.Hour, BackupKeep: 1}.checkBackup()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", to, err, want)
		}
	}
	f("file:///copies", "")
	f("ftp://copies", "no object store of the kind ftp://")
}

func TestCensusCountsMissingAndAtRisk(t *testing.T) {
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

	all := map[id.Member]bool{"a": true, "b": true, "c": true}
	for wanted, want := range map[int]census{1: {}, 3: {}, 5: {missing: 2, under: 1}} {
		if got := censusOf([]metafsm.ShardVoters{{Shard: 1, Voters: []id.Member{"a", "b", "c"}}}, wanted, all); got != want {
			t.Errorf("%d replicas are wanted of three: got %+v, want %+v", wanted, got, want)
		}
	}
}
