package shardfsm

import (
	"math/rand/v2"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm"
	"facet/raftfsm/fsmtest"
	"facet/shard/auditlog"
	"facet/shard/segment"
)

func auditTenant(n byte) id.Tenant { return id.Tenant{UUID: id.UUID{7, n}} }

// auditEntry is an entry whose content is c.
func auditEntry(c byte) auditlog.New {
	return auditlog.New{Entry: auditlog.Entry{Leaf: auditlog.LeafHash([]byte{c}), Sealed: []byte{c}}}
}

// auditCommands returns all commands on an audit log, in order.
func auditCommands(of id.Tenant) []any {
	intent, outcome := auditEntry(1), auditEntry(2)
	intent.Opens, outcome.Closes = auditlog.Request{5}, auditlog.Request{5}
	open := auditEntry(3)
	open.Opens = auditlog.Request{6}
	w := auditlog.Writer{4}
	return []any{
		BeginLog{Tenant: of, Former: []byte("former")},
		AppendLog{of, w, 1, []auditlog.New{intent}},
		AppendLog{of, w, 2, []auditlog.New{outcome, open}},
		AppendLog{of, w, 2, []auditlog.New{outcome, open}},
		AppendLog{of, w, 5, []auditlog.New{open}},
		ExpireLog{of, 1},
		DropLog{auditTenant(9)},
		BeginLog{auditTenant(2), []byte("former"), []auditlog.Entry{auditEntry(4).Entry}},
	}
}

func TestAuditBytesMatchFormat(t *testing.T) {
	t.Parallel()
	m := New(newTable(t), testArena)
	again := keepsBytes(t, m, "audit.txt", once, auditCommands(auditTenant(1)))
	if list, err := again.Audit().Read(auditTenant(1), 0, 9); err != nil || len(list) != 3 || list[0].Sealed != nil || string(list[2].Sealed) != "\x03" {
		t.Errorf("the restored entries are %v, %v", list, err)
	}
	if list, err := again.Audit().Read(auditTenant(2), 0, 9); err != nil || len(list) != 1 || string(list[0].Sealed) != "\x04" {
		t.Errorf("the log that began with an entry has %v, %v", list, err)
	}
	if open := again.Audit().Intents(auditTenant(1), 9); len(open) != 1 || open[0] != (auditlog.Intent{Request: auditlog.Request{6}, Index: 2}) {
		t.Errorf("the restored intents are %v", open)
	}
}

func TestReplicasAgreeOnAuditLogs(t *testing.T) {
	t.Parallel()
	replicasAgree(t, 20, func(random *rand.Rand) (commands [][]byte) {
		numbers := make(map[[2]byte]uint64)
		for range 100 {
			of, w := auditTenant(byte(random.IntN(3))), byte(random.IntN(3))
			switch random.IntN(10) {
			case 0:
				commands = append(commands, BeginLogOp.Encode(BeginLog{Tenant: of}))
			case 1:
				commands = append(commands, ExpireLogOp.Encode(ExpireLog{of, uint64(random.IntN(900))}))
			case 2:
				if random.IntN(5) == 0 {
					commands = append(commands, DropLogOp.Encode(DropLog{of}))
					for w := range byte(3) {
						delete(numbers, [2]byte{of.UUID[1], w})
					}
				}
			default:
				name := [2]byte{of.UUID[1], w}
				number := numbers[name] + 1
				if random.IntN(8) == 0 { // entries come again
					number -= random.Uint64N(number)
				}
				c := AppendLog{Tenant: of, Writer: auditlog.Writer{w}, Number: number}
				for range 1 + random.IntN(90) {
					e := auditEntry(byte(random.IntN(256)))
					if random.IntN(4) == 0 {
						e.Opens = auditlog.Request{byte(random.IntN(9))}
					} else if random.IntN(4) == 0 {
						e.Closes = auditlog.Request{byte(random.IntN(9))}
					}
					c.Entries = append(c.Entries, e)
				}
				numbers[name] = max(numbers[name], number+uint64(len(c.Entries))-1)
				commands = append(commands, AppendLogOp.Encode(c))
			}
		}
		return commands
	})
}

// replicasAgree lets replicas apply commands of so many seeds. Half of the runs keep entries and
// items in files.
func replicasAgree(t *testing.T, seeds uint64, commands func(random *rand.Rand) [][]byte) {
	t.Helper()
	table := newTable(t)
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		list := commands(random)
		machine := func() raftfsm.Machine { return New(table, testArena) }
		if seed%2 == 0 {
			store, err := segment.Open(t.TempDir(), segment.Options{Bytes: 2000})
			must.Do(t, err)
			machine = func() raftfsm.Machine { return newFiling(t, store) }
		}
		fsmtest.Run(t, fsmtest.Case{Rand: random, New: machine, Commands: list})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
