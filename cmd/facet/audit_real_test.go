package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"facet/cmd/facet/auditing"
	"facet/cmd/facet/auditing/audittest"
	"facet/cmd/facet/cli"
	"facet/internal/must"
	"facet/node/audit/entry"
)

// served returns a log with n entries, the folder of its files, and its server.
func served(t *testing.T, n int) (*audittest.Log, string, *audittest.Server) {
	t.Helper()
	l, dir := audittest.New(t, 1), t.TempDir()
	l.Fill(t, n, "entry")
	l.Write(t, dir)
	return l, dir, audittest.Serve(t, dir)
}

// An auditor joins the log of a restored tenant with the one before.
func TestVerifyShowsWhichLogIsFollowed(t *testing.T) {
	t.Parallel()
	former, was, _ := served(t, 300)
	signed := former.First(t, 200).Signed(t)
	r := entry.New(entry.Act, time.Now())
	r.Operation, r.Former = entry.OperationRestored, string(signed)
	l, own := audittest.New(t, 2), t.TempDir()
	in := func(name string) string { return filepath.Join(own, name) }
	l.Append(t, r.Encode())
	l.Fill(t, 400, "entry")
	l.Write(t, in("log"))
	want := "VALID: 400 entries of " + l.Origin
	exits(t, 0, want, "audit", "verify", in("log"), "--key", l.Key, "--former", in("former"))
	exits(t, 0, "it follows "+former.Origin+", of which a restored backup knew 200 entries, root ", "audit", "verify", in("log"), "--key", l.Key)
	exits(t, 0, "proof: ", "audit", "prove", "0", "--from", in("log"), "--key", l.Key, "--to", in("first"))
	exits(t, 0, `"kind":"act","operation":"`+entry.OperationRestored+`"`, "audit", "verify", in("first"), "--key", l.Key)
	exits(t, 0, "proof: ", "audit", "prove", "--older", in("former"), "--from", was, "--key", former.Key, "--to", in("proof"))
	exits(t, 0, "VALID: the 300 entries of "+former.Origin+" contain the older 200", "audit", "verify", in("proof"), "--older", in("former"), "--key", former.Key)
	r.Operation = entry.OperationRestore
	l = audittest.New(t, 3)
	l.Fill(t, 300, "entry")
	l.Append(t, r.Encode())
	l.Fill(t, 400, "entry")
	l.Write(t, in("cluster"))
	exits(t, 0, "it follows "+former.Origin, "audit", "verify", in("cluster"), "--key", l.Key, "--former", in("former"))
	exits(t, cli.ExitFailed, "the log follows no other one", "audit", "verify", was, "--key", former.Key, "--former", in("none"))
}

func TestAuditCommandsWorkTogether(t *testing.T) {
	t.Parallel()
	l, dir, server := served(t, 1000)
	own := t.TempDir()
	in := func(name string) string { return filepath.Join(own, name) }
	web := []string{"--from", server.URL, "--ca", server.CA}
	if got := facet(t, "audit", "key", "--profile", server.Profile); got != l.Key+"\n" {
		t.Errorf("the key is %q, want %q", got, l.Key)
	}
	exits(t, 0, "has 1000 entries of "+l.Origin+", 1000 of them new", "audit", "export", "--to", in("a"), "--profile", server.Profile)
	exits(t, 0, "VALID: 1000 entries of "+l.Origin, "audit", "verify", in("a"), "--key", l.Key)
	exits(t, 0, "the key is the folder's own", "audit", "verify", in("a"))
	exits(t, 0, "proof: ", append([]string{"audit", "prove", "77", "--to", in("77.tlog-proof")}, web...)...)
	exits(t, 0, fmt.Sprintf("VALID: entry 77 of %s, which has 1000 entries, root %s\n%x\n", l.Origin, l.Tree(t).Hash, l.Entries()[77]),
		"audit", "verify", in("77.tlog-proof"), "--key", l.Key)
	exits(t, cli.ExitFailed, "not a valid proof", "audit", "verify", in("77.tlog-proof"), "--key", audittest.New(t, 2).Key)
	exits(t, cli.ExitUsage, "a proof needs --key", "audit", "verify", in("77.tlog-proof"))
	exits(t, cli.ExitFailed, "no entry 1000", append([]string{"audit", "prove", "1000", "--to", in("x")}, web...)...)
	exits(t, cli.ExitUsage, "is no number", append([]string{"audit", "prove", "x", "--to", in("x")}, web...)...)

	witnessing := []string{"audit", "witness", "--state", in("w"), "--signer", in("witness.key"), "--name", "example.com/w1", "--once", "--ca", server.CA, "--log"}
	exits(t, 0, "cosigned", append(witnessing, l.Key+"@"+server.URL)...)
	exits(t, 0, "", append(witnessing, l.Key+"@"+server.Profile)...)
	public, err := os.ReadFile(in("w/key"))
	must.Do(t, err)
	check := []string{"audit", "verify", in("a"), "--key", l.Key, "--witness", in("w"), "--witness-key", string(public)}
	exits(t, 0, "it contains the 1000 entries that example.com/w1 has seen", check...)

	older := in("older")
	must.Do(t, os.WriteFile(older, l.Signed(t), 0o600))
	l.Fill(t, 1500, "later")
	l.Write(t, dir)
	exits(t, 0, "", append(witnessing, l.Key+"@"+server.URL)...)
	exits(t, cli.ExitFailed, "has seen 1500 entries", check...)
	exits(t, 0, "500 of them new", "audit", "export", "--to", in("a"), "--profile", server.Profile)
	exits(t, 0, "it contains the 1500 entries", check...)
	exits(t, 0, "", append([]string{"audit", "prove", "--older", older, "--to", in("older.proof")}, web...)...)
	exits(t, 0, "VALID: the 1500 entries of "+l.Origin+" contain the older 1000", "audit", "verify", in("older.proof"), "--older", older, "--key", l.Key)

	bundle := in("a/tile/entries/001")
	b, err := os.ReadFile(bundle)
	must.Do(t, err)
	b[5] ^= 1
	must.Do(t, os.WriteFile(bundle, b, 0o600))
	exits(t, cli.ExitFailed, "entry 256: tile/0/001 has another hash of it\nNOT VALID: 1 faults", check[:5]...)
}

// A witness is killed at any moment while the log grows. It never goes back, and its state is
// always a cosigned checkpoint; afterwards it still sees a fork.
func TestKilledWitnessKeepsItsPromise(t *testing.T) {
	t.Parallel()
	l, dir, server := served(t, 1)
	own := t.TempDir()
	state := filepath.Join(own, "w")
	args := []string{"audit", "witness", "--state", state, "--signer", filepath.Join(own, "witness.key"), "--name", "example.com/w1", "--ca", server.CA, "--log", l.Key + "@" + server.URL}
	facet(t, append(args, "--once")...)
	public, err := os.ReadFile(filepath.Join(state, "key"))
	must.Do(t, err)
	roots := map[int64]string{}
	seed := rand.Uint64()
	random, last := rand.New(rand.NewPCG(seed, 0)), int64(1)
	for round := range 15 {
		cmd := command(t, append(args, "--interval", "1ms")...)
		must.Do(t, cmd.Start())
		grow := func() {
			l.Fill(t, len(l.Entries())+1+random.IntN(40), "entry")
			roots[int64(len(l.Entries()))] = l.Tree(t).Hash.String()
			l.Write(t, dir)
		}
		until(t, func() (string, bool) { // it runs
			grow()
			w, err := auditing.ReadWitnessed(state, l.Key, string(public))
			return fmt.Sprintf("the witness has seen %d entries, %v", w.N, err), err == nil && w.N > last
		})
		for range random.IntN(20) {
			grow()
		}
		must.Do(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		w, err := auditing.ReadWitnessed(state, l.Key, string(public))
		if err != nil || w.N <= last || w.Hash.String() != roots[w.N] {
			t.Fatalf("seed %d, round %d: %+v, %v; before: %d entries", seed, round, w, err, last)
		}
		last = w.N
	}
	fork := l.First(t, int(last)-1)
	fork.Fill(t, len(l.Entries())+500, "fork")
	fork.Write(t, dir)
	exits(t, cli.ExitFailed, "ALARM: "+strconv.FormatInt(last, 10)+" entries were cosigned", append(args, "--once")...)
	if w, err := auditing.ReadWitnessed(state, l.Key, string(public)); err != nil || w.N != last {
		t.Errorf("%+v, %v", w, err)
	}
}

// Two witnesses with one state could cosign two histories.
func TestStateHasOneWitness(t *testing.T) {
	t.Parallel()
	l, _, server := served(t, 1)
	own := t.TempDir()
	args := []string{"audit", "witness", "--state", filepath.Join(own, "w"), "--signer", filepath.Join(own, "k"), "--name", "w", "--ca", server.CA, "--log", l.Key + "@" + server.URL}
	first := command(t, args...)
	must.Do(t, first.Start())
	defer func() {
		_ = first.Process.Kill()
		_ = first.Wait()
	}()
	until(t, func() (string, bool) {
		_, err := os.Stat(filepath.Join(own, "w", "key"))
		return fmt.Sprint(err), err == nil
	})
	if out := exits(t, cli.ExitFailed, "runs on it already", args...); strings.Contains(out, "cosigned") {
		t.Error(out)
	}
}
