package node_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/raftfsm/fsmtest"
	"facet/router"
	"facet/shard"
	"facet/shard/segment"
)

// eraseBound is the time in which what is erased leaves the disks.
const eraseBound = 8 * time.Second

// trace finds the files of all nodes that have something, in clear or sealed with a gallery's key.
type trace struct {
	what  string
	files func(keys ...[]byte) []string
}

// traces is a cluster whose disks are scanned.
type traces struct {
	*review
	keys [][]byte // of all galleries
}

func (s *traces) trace(t *testing.T, what string, scanner func(keys ...[]byte) fsmtest.Scanner) trace {
	return trace{what, func(keys ...[]byte) (found []string) {
		for _, n := range s.cluster.Nodes {
			found = append(found, scanner(keys...).Files(t, n.Config.Dir)...)
		}
		return found
	}}
}

func (s *traces) face(t *testing.T, person string) trace {
	t.Helper()
	faces, err := nodetest.HashExtractor{}.Extract(t.Context(), []byte(person))
	must.Do(t, err)
	return s.trace(t, "the face of "+person, func(keys ...[]byte) fsmtest.Scanner { return fsmtest.NewScanner(faces[0].Template, keys...) })
}

func (s *traces) note(t *testing.T, externalID string) trace {
	return s.trace(t, "the note of "+externalID, func(keys ...[]byte) fsmtest.Scanner { return fsmtest.NewTextScanner(externalID, keys...) })
}

// salt traces the salt of the only subject without an external id that an API key lists with this id.
func (s *traces) salt(t *testing.T, tenant id.Tenant, apiKey string, subject id.Subject) trace {
	t.Helper()
	r := s.cluster.Nodes[0].Node.Router()
	access, err := r.Access(t.Context(), tenant, apiKey)
	must.Do(t, err)
	list, err := r.Subjects(t.Context(), access, router.Page{Length: router.ListLengthMax})
	must.Do(t, err)
	for _, e := range list.Entries {
		if e.Subject != subject {
			continue
		}
		if e.Note == nil || e.Note.Salt == [shard.SaltBytes]byte{} || e.Note.ExternalID != "" {
			t.Fatalf("the note is %+v, want a salt only", e.Note)
		}
		plain := append([]byte{1, 1, 0xa1, 3, 0x50}, e.Note.Salt[:]...) // shard.SealNote
		return s.trace(t, "the salt of "+subject.String(), func(keys ...[]byte) fsmtest.Scanner {
			return fsmtest.NewSealedScanner(plain, string(e.Note.Salt[:]), keys...)
		})
	}
	t.Fatalf("%s is not listed", subject)
	return trace{}
}

const visit = "a visit to the office"

// The numbers of members of a case (job.Case).
const openCase, closedCase, erasedCase = 10, 12, 5

func (s *traces) caseOf(t *testing.T, caseID string, members byte) trace {
	t.Helper()
	is := parsed(t, caseID)
	begin := append([]byte{0xa0 | members, 1, 0x50}, is[:]...) // a map of so many members; the first one is the id
	return s.trace(t, fmt.Sprintf("case %s of %d members", caseID, members), func(keys ...[]byte) fsmtest.Scanner {
		return fsmtest.NewSealedScanner(begin, visit, keys...)
	})
}

// The test scans the data directories of all nodes, log, segments and snapshots of every group included, with
// the keys of all galleries, and all log lines.
func TestErasedDataLeavesEveryDisk(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		var log logLines
		s := &traces{review: startReviewOn(t, nodetest.Options{
			EraseWithin: eraseBound, SlotsPerShard: 400, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}, 1)}
		url, stay := s.url(0), s.admin
		leave, leaves := s.cluster.ClientOf("leaves")
		gallery(t, leave, url, "leaves", 100)
		var erased, replaced subject
		for i := range 240 { // so many that a segment gets codes
			if enrol(t, stay, url, fmt.Sprint("other ", i)); i == 10 { // in the first block of codes
				erased, replaced = enrol(t, stay, url, "erased"), enrol(t, stay, url, "replaced")
			}
		}
		of := enrol(t, leave, url, "of a gallery")
		named := []string{"removed person", "renamed person", "dropped person", "a deleted list"}
		for i, external := range named {
			client := stay
			if i == 3 {
				client = leave
			}
			enrolled(t, client, url, map[string]string{external: external})
		}
		one, two, other := s.doubt(t, "staff/0", visit), s.doubt(t, "staff/0", visit+" 2"), s.doubt(t, "staff/1", "another visit")
		s.decide(t, "anna", two, "different", http.StatusOK, "different")
		list, key := galleryOf(t, s.cluster, leave)
		_, own := galleryOf(t, s.cluster, stay)
		s.keys = [][]byte{own, key}
		goes := []trace{
			s.face(t, "erased"), s.face(t, "replaced"), s.face(t, "of a gallery"),
			s.note(t, named[0]), s.note(t, named[1]), s.note(t, named[2]), s.note(t, named[3]),
			s.salt(t, s.tenant(t), stay.APIKey, subjectID(t, erased.ID)), s.salt(t, leaves, leave.APIKey, subjectID(t, of.ID)),
			s.caseOf(t, one, openCase), s.caseOf(t, two, closedCase),
		}
		stays := []trace{s.face(t, "other 7"), s.caseOf(t, other, openCase), s.salt(t, s.tenant(t), stay.APIKey, subjectID(t, find(t, stay, url, "other 7")[0]))}
		s.there(t, append(goes, stays...))
		s.waitCodes(t, goes[0], goes[1])

		at := func(external string) string {
			return "/v1.1/subjects/externalId:" + strings.ReplaceAll(external, " ", "%20")
		}
		renamed, dropped := face(named[1]), face(named[2])
		renamed["externalId"], dropped["externalId"] = "somebody else now", ""
		expect(t, stay, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/"+erased.ID, nil)
		expect(t, stay, http.StatusOK, url, http.MethodPut, "/v1.1/subjects/"+replaced.ID, face("another"))
		expect(t, stay, http.StatusNoContent, url, http.MethodDelete, at(named[0]), nil)
		expect(t, stay, http.StatusOK, url, http.MethodPut, at(named[1]), renamed)
		expect(t, stay, http.StatusOK, url, http.MethodPut, at(named[2]), dropped)
		expect(t, stay, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/"+s.ids["staff/0"], nil)
		expect(t, leave, http.StatusNoContent, url, http.MethodDelete, "/api/galleries/"+list, nil)
		s.redact(t)
		late := time.Now().Add(eraseBound)
		for _, g := range append(goes, s.caseOf(t, two, openCase)) {
			s.gone(t, g, late)
		}
		s.there(t, append(stays, s.caseOf(t, one, erasedCase)))
		isFound(t, stay, url, "other 7")
		for _, text := range append(named, "somebody else now", "externalId:") {
			if lines := append(log.with(text), log.with(strings.ReplaceAll(text, " ", "%20"))...); len(lines) > 0 {
				t.Errorf("a line of the log has %q: %s", text, lines[0])
			}
		}
	})
}

// there demands that each node has something sealed, and none in clear.
func (s *traces) there(t *testing.T, list []trace) {
	t.Helper()
	for _, g := range list {
		if found := g.files(s.keys...); len(found) < len(s.cluster.Nodes) {
			t.Fatalf("%s is in %v only", g.what, found)
		}
		if found := g.files(); len(found) > 0 {
			t.Fatalf("%s is in clear in %v", g.what, found)
		}
	}
}

// gone waits until no node has something.
func (s *traces) gone(t *testing.T, g trace, late time.Time) {
	t.Helper()
	for found := g.files(s.keys...); len(found) > 0; found = g.files(s.keys...) {
		if time.Now().After(late) {
			for i, path := range found {
				found[i] = filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
			}
			t.Fatalf("%s after the erasure %s is in %v", eraseBound, g.what, found)
		}
		time.Sleep(eraseBound / 40)
	}
}

// waitCodes waits until the codes of faces are on disk.
func (s *traces) waitCodes(t *testing.T, faces ...trace) {
	t.Helper()
	n := 0
	within(t, 3*eraseBound, "the codes of faces to be erased are on a disk", func() bool {
		if n++; n < 100 {
			enrol(t, s.admin, s.url(0), fmt.Sprint("further ", n)) // small segments are merged when others come
		}
		coded := 0
		for _, f := range faces {
			for _, path := range f.files(s.keys...) {
				if segment.IsCompanion(filepath.Base(path)) {
					coded++
					break
				}
			}
		}
		return coded == len(faces)
	})
}

// A round of erasure does not end while somebody reads a segment that has the erased face.
func TestReadSegmentIsNotSaidToBeErased(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client, m := cluster.Client("bank"), cluster.Nodes[0]
		gallery(t, client, m.URL, "staff", 100)
		erased := enrol(t, client, m.URL, "erased")
		if err := m.Node.CutLog(1); err != nil { // the face is in a segment
			t.Fatal(err)
		}
		files := scanner(t, cluster, client)
		done := m.Node.ReadSegments(1)
		expect(t, client, http.StatusNoContent, m.URL, http.MethodDelete, "/v1.1/subjects/"+erased.ID, nil)
		if err := m.Node.CutLog(1); err == nil || len(files("erased")) == 0 {
			t.Errorf("the round ends with %v while the segment is read; the face is in %v", err, files("erased"))
		}
		done()
		if err := m.Node.CutLog(1); err != nil || len(files("erased")) != 0 {
			t.Errorf("the round ends with %v when nobody reads; the face is in %v", err, files("erased"))
		}
	})
}
