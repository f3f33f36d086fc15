package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"facet/engine/enginetest"
	"facet/internal/must"
	"facet/node/wire"
)

// shell runs commands as a person or a program of a tenant does, in a folder of its own.
type shell struct {
	t       *testing.T
	dir     string
	profile string
	in      []byte // what the next command reads
	wide    bool   // lines may have more than 100 columns
}

// run runs a command, checks its exit status and a part of what it says, and returns its
// standard output.
func (s *shell) run(status int, want string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(program(), args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "FACET_PROFILE="+s.profile)
	cmd.Stdin = bytes.NewReader(s.in)
	s.in = nil
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit status tells
	if got := cmd.ProcessState.ExitCode(); got != status || !strings.Contains(out.String()+errs.String(), want) {
		s.t.Errorf("facet %v ends with %d, want %d and %q in\n%s%s", args, got, status, want, &out, &errs)
	}
	for line := range strings.Lines(out.String()) {
		path := strings.Contains(line, "Faces: ") // of a photo that failed, as long as it is
		if line = strings.TrimSuffix(line, "\n"); !path && !s.wide && !json.Valid(out.Bytes()) && utf8.RuneCountInString(line) > 100 {
			s.t.Errorf("facet %v prints more than 100 columns: %s", args, line)
		}
	}
	return out.String()
}

// soon runs a command until it ends as run wants: nodes take changes of keys and settings over within seconds.
func (s *shell) soon(status int, want string, args ...string) {
	s.t.Helper()
	within(s.t, fmt.Sprintf("facet %v ends with %d and %q", args, status, want), func() error {
		out, got := s.result(args...)
		if got != status || !strings.Contains(out, want) {
			return fmt.Errorf("it ends with %d and %s", got, out)
		}
		return nil
	})
}

// result runs a command and returns all it says, and its exit status.
func (s *shell) result(args ...string) (out string, status int) {
	cmd := exec.Command(program(), args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "FACET_PROFILE="+s.profile)
	text, _ := cmd.CombinedOutput() // the exit status tells
	return string(text), cmd.ProcessState.ExitCode()
}

// decode runs a command that must succeed with -o json, and decodes its output.
func (s *shell) decode(v any, args ...string) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.run(0, "", append(args, "-o", "json")...)), v); err != nil {
		s.t.Fatalf("facet %v: %v", args, err)
	}
}

// newTenant creates a tenant whose profile is all that the shell has.
func newTenant(t *testing.T, c *cluster, name string) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir()}
	out := s.run(0, "profile     bank.json", "tenant", "create", name, "--save", "bank.json", "--dir", c.dir)
	file := filepath.Join(s.dir, "bank.json")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the profile: %v, %v", info, err)
	}
	if strings.Contains(out, "secret key") {
		t.Errorf("the secret is shown:\n%s", out)
	}
	s.profile = file
	return s
}

// A tenant's profile is enough to do all of a tenant's work.
func TestCommandsDoTenantsWork(t *testing.T) {
	t.Parallel()
	s := newTenant(t, shared(t), "commands-work")
	s.run(0, "there is no gallery yet: facet gallery create NAME", "gallery", "list")
	s.run(1, "there is no gallery yet", "search", photoPath(obama))
	s.run(0, "facet enrol PHOTO --gallery", "gallery", "create", "staff", "--size", "3")
	s.run(1, `there is a gallery "staff" already`, "gallery", "create", "staff")
	s.run(0, "the gallery has no subject yet: facet enrol PHOTO", "subject", "list")
	s.run(0, `the tag "berlin" is there`, "tag", "create", "berlin")
	var made, second struct{ ID, EventID string }
	s.decode(&made, "enrol", photoPath(obama), "--tag", "berlin")
	s.run(0, made.ID, "search", photoPath(anotherObama))
	s.run(0, made.ID, "search", photoPath(anotherObama), "--tag", "berlin", "--gallery", "staff")
	s.run(5, "nobody: no subject has a score of 7000 or more", "search", photoPath(biden))
	s.run(5, `"candidates": []`, "search", photoPath(biden), "-o", "json")
	s.in = photo(t, anotherObama)
	s.run(0, made.ID, "search", "-")
	s.run(0, "the same person: score 8", "verify", photoPath(anotherObama), made.ID)
	s.run(0, "the same person: score 8", "verify", photoPath(obama), photoPath(anotherObama))
	s.run(5, "not the same person: score ", "verify", photoPath(biden), made.ID)
	s.run(5, "not the same person: score ", "verify", photoPath(biden), photoPath(obama))
	s.run(1, "no file here and no subject", "verify", photoPath(biden), "obama.jgp")
	s.run(2, "nobody reviews two photos", "verify", photoPath(biden), photoPath(obama), "--reference", "visit 1")
	var door struct{ APIKey string }
	s.decode(&door, "application", "create", "door", "--gallery", "staff", "--verify-threshold", "9990", "--review-threshold", "6000")
	s.run(5, "people decide on case ", "verify", photoPath(anotherObama), made.ID, "--reference", "visit 1", "--api-key", door.APIKey)
	s.run(5, `"doubtful": true,`, "verify", photoPath(anotherObama), made.ID, "--json", "--api-key", door.APIKey)
	s.run(0, "deleted", "application", "delete", "door")
	s.in = photo(t, anotherObama)
	s.decode(&second, "enrol", "-", "--subject", made.ID)
	if second.ID != made.ID || second.EventID == made.EventID {
		t.Errorf("a second photo: %+v after %+v", second, made)
	}
	s.run(0, second.EventID, "subject", "show", made.ID)
	s.run(0, "updated", "subject", "update", made.ID, photoPath(obama), "--event", second.EventID)
	var list []struct{ ID, EventID, Status string }
	s.decode(&list, "subject", "list", "--all")
	if len(list) != 2 || list[0].ID != made.ID || list[0].Status != "A" {
		t.Errorf("list: %+v", list)
	}
	s.run(0, "there are more", "subject", "list", "--limit", "1")
	s.run(0, "DELETED", "subject", "list", "--deleted")
	s.run(0, `"berlin" is now "Berlin"`, "tag", "rename", "berlin", "Berlin")
	s.run(0, "Berlin", "tag", "list")
	s.run(0, "is deleted", "tag", "delete", "Berlin")
	s.run(1, `no tag "Berlin"`, "tag", "delete", "Berlin")
	s.run(0, "room for 10 faces; it had room for 3", "gallery", "grow", "staff", "10")
	s.run(1, "can only be increased", "gallery", "grow", "staff", "5")
	s.run(0, "purpose       entry of staff", "gallery", "update", "staff", "--purpose", "entry of staff", "--legal-ground", "consent", "--recipients", "the police")
	s.run(0, "entry of staff", "gallery", "list")
	out := s.run(0, "purpose       entry of staff", "tenant", "record", "commands-work", "--dir", shared(t).dir)
	if !strings.Contains(out, "legal ground  consent") || !strings.Contains(out, "recipients    the police") || strings.Contains(out, "TO DO") {
		t.Errorf("the record of processing:\n%s", out)
	}
	s.run(0, "recipients  the police", "gallery", "update", "staff", "--legal-ground", "")
	s.run(0, "purpose     entry of staff", "gallery", "show", "staff")
	var seen struct{ ETag string }
	s.decode(&seen, "gallery", "show", "staff")
	s.run(0, "description  of Berlin", "gallery", "update", "staff", "--description", "of Berlin", "--if-match", strings.Trim(seen.ETag, `"`))
	s.run(1, "the settings were changed", "gallery", "update", "staff", "--description", "of Bonn", "--if-match", seen.ETag)
	s.run(0, `the gallery "staff" has no legal ground`, "tenant", "record", "commands-work", "--dir", shared(t).dir)
	s.run(0, `"legal_ground": ""`, "tenant", "record", "commands-work", "--json", "--dir", shared(t).dir)
	s.run(1, "there is no tenant", "tenant", "record", "nobody", "--dir", shared(t).dir)
	var double struct{ ID string }
	s.decode(&double, "enrol", photoPath(obama), "--external-id", "4711")
	s.run(0, "4711", "search", photoPath(anotherObama))
	s.run(1, "the gallery was not compared with itself yet", "dedupe", "--show")
	s.run(0, "1 in 1 group", "dedupe")
	s.run(0, double.ID, "dedupe", "--show")
	s.run(0, `"externalId": "4711"`, "dedupe", "--show", "-o", "json")
	s.run(2, "exclude each other", "dedupe", "--show", "--threshold", "9500")
	s.run(1, "threshold must be", "dedupe", "--threshold", "10")
	s.run(0, "there is no report", "dedupe", "--drop")
	var all struct {
		Candidates []struct{ ID, ExternalID string }
	}
	if s.decode(&all, "search", photoPath(anotherObama), "--all"); len(all.Candidates) != 2 {
		t.Errorf("--all lists %+v, want %s and %s", all.Candidates, made.ID, double.ID)
	}
	s.run(0, "4711", "search", photoPath(anotherObama), "--all")
	s.run(5, "nobody: no subject has a score of 9999 or more", "search", photoPath(anotherObama), "--all", "--threshold", "9999")
	s.run(2, "--all goes without", "search", photoPath(anotherObama), "--all", "--limit", "3")
	s.run(0, "4711", "subject", "list", "--external-id", "4711")
	s.run(0, "the gallery has no subject with the external id 4712", "subject", "list", "--external-id", "4712")
	s.run(2, "exclude each other", "subject", "list", "--external-id", "4711", "--deleted")
	s.run(0, double.ID, "subject", "show", "externalId:4711")
	s.run(0, "external id  4711\n", "subject", "show", double.ID)
	s.run(0, `"externalId": "4711"`, "subject", "show", double.ID, "-o", "json")
	s.run(1, "externalId:ID stands for your own id", "subject", "show", "4711")
	s.run(1, "the gallery has no subject with the external id 4712", "subject", "merge", made.ID, "externalId:4712")
	s.run(0, "which is removed", "subject", "merge", made.ID, "externalId:4711")
	s.run(1, "the gallery has no subject", "subject", "show", double.ID)
	s.run(0, "is deleted", "subject", "delete", made.ID)
	s.run(1, "the gallery has no subject "+made.ID, "subject", "show", made.ID)
	s.run(2, `--yes "staff"`, "gallery", "delete", "staff")
	s.run(1, "nothing is deleted", "gallery", "delete", "staff", "--yes", "stuff")
	s.run(0, `the gallery "staff" is deleted`, "gallery", "delete", "staff", "--yes", "staff")
}

// What has a time is listed before it goes, and goes.
func TestCommandsExpirePhotos(t *testing.T) {
	t.Parallel()
	s := newTenant(t, shared(t), "commands-expiry")
	s.run(0, "kept     always", "gallery", "create", "visitors")
	s.run(2, "it is no time: give 30d, 12h, 2030-01-31", "enrol", photoPath(obama), "--expires", "tomorrow")
	s.run(1, "must be in the future", "enrol", photoPath(obama), "--expires", "2020-01-31")
	s.run(0, "no photo expires before ", "subject", "list", "--expires-before", "2199-01-31T12:00:00+01:00")
	var soon, later struct{ ID, EventID string }
	s.decode(&later, "enrol", photoPath(obama), "--expires", "30d", "--external-id", "4711")
	made := time.Now().UTC()
	s.decode(&soon, "enrol", photoPath(biden), "--expires", "12s")
	out := s.run(0, "2 of 2 photos that expire before ", "subject", "list", "--expires-before", "31d")
	if first, second := strings.Index(out, soon.ID), strings.Index(out, later.ID); first < 0 || second < first || !strings.HasPrefix(out, "SUBJECT") || !strings.Contains(out, "EXPIRES") {
		t.Errorf("what would go is not listed soonest first:\n%s", out)
	}
	s.run(0, "1 of 2 photos that expire before ", "subject", "list", "--expires-before", "31d", "--limit", "1")
	s.run(0, "1 of 1 photos that expire before ", "subject", "list", "--expires-before", "12h")
	s.run(0, "expires      "+made.AddDate(0, 0, 30).Format(time.DateOnly), "subject", "show", "externalId:4711")
	s.run(2, "exclude each other", "subject", "list", "--expires-before", "31d", "--deleted")
	s.soon(5, "nobody", "search", photoPath(biden))
	s.run(1, "the gallery has no subject", "subject", "show", soon.ID)
	s.run(0, later.ID, "search", photoPath(anotherObama))
	s.run(0, "updated", "subject", "update", later.ID, photoPath(obama), "--expires", "never")
	s.run(0, "no photo expires before ", "subject", "list", "--expires-before", "31d")
	s.run(0, "kept         90 days", "gallery", "update", "visitors", "--retention-days", "90", "--description", "of the day")
	s.run(0, "90 days", "gallery", "list")
	s.run(0, "90 days", "gallery", "show", "visitors")
	var list []struct{ ID, Expires string }
	s.decode(&list, "subject", "list", "--expires-before", "91d")
	if len(list) != 1 || list[0].ID != later.ID || !strings.HasPrefix(list[0].Expires, made.AddDate(0, 0, 90).Format(time.DateOnly)) {
		t.Errorf("by the retention go: %+v", list)
	}
	s.run(2, "name what changes: --name, --description, --retention-days, --subject-templates, --photo-link, --purpose, --legal-ground or --recipients", "gallery", "update", "visitors")
	s.run(0, "photo link   https://hr.example/{externalId}", "gallery", "update", "visitors", "--photo-link", "https://hr.example/{externalId}")
	s.run(1, "must be an https URL", "gallery", "update", "visitors", "--photo-link", "http://hr.example/{externalId}")
	s.run(0, "https://hr.example/{externalId}", "gallery", "show", "visitors")
	s.run(0, "90 days", "gallery", "update", "visitors", "--photo-link", "")
	s.run(1, "from 0 to 36500", "gallery", "update", "visitors", "--retention-days", "-1")
	s.run(0, "always", "gallery", "update", "visitors", "--retention-days", "0")
	within(t, "the list shows that the photo never expires", func() error {
		if out := s.run(0, later.ID, "subject", "list", "--all", "-o", "json"); strings.Contains(out, "expires") {
			return errors.New(out)
		}
		return nil
	})
	text := "external_id,file,expires\n4712," + photoPath(collins) + ",2198-01-31\n"
	put(t, s.dir, "list.csv", []byte(text))
	s.run(0, "1 rows: 1 registered", "import", "list.csv", "--outside")
	s.run(0, "expires      2198-01-31 00:00:00Z", "subject", "show", "externalId:4712")
}

// Of one man's photos two show somebody else, too: half as large behind him, and alike.
func TestBenchMeasuresTheService(t *testing.T) {
	t.Parallel()
	s := newTenant(t, shared(t), "commands-bench")
	for name, of := range map[string][]byte{
		"Barack_Obama/1.jpg": photo(t, obama), "Barack_Obama/2.jpg": enginetest.Behind(t), "Barack_Obama/3.jpg": enginetest.Alike(t),
		"Eileen_Collins/1.png": photo(t, collins), "Pair/1.jpg": enginetest.Alike(t), "None/1.jpg": []byte("no photo"),
	} {
		put(t, s.dir, "persons/"+name, of)
	}
	f := func(faces, refused, first string) {
		t.Helper()
		out := s.run(0, "2 of 4, MultipleFaces 1, UnreadableImage 1", "bench", "service", "--images", "persons", "--multiple-faces", faces)
		for _, want := range []string{refused, first} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: there is no %q in\n%s", faces, want, out)
			}
		}
	}
	f("refuse", "2 of 2, MultipleFaces 2\n", "0 of 2\n")
	f("dominant", "1 of 2, MultipleFaces 1\n", "1 of 2\n")
	s.run(1, "multipleFaces must be refuse or dominant", "bench", "service", "--images", "persons", "--multiple-faces", "largest")
	s.run(2, "--images is needed", "bench", "service")
	s.run(0, "there is no gallery yet", "gallery", "list")
}

// Jobs are listed and shown, with what failed.
func TestCommandsShowJobs(t *testing.T) {
	t.Parallel()
	c := shared(t)
	s := &shell{t: t, dir: t.TempDir()}
	s.run(0, "commands-jobs", "gallery", "create", "commands-jobs", "--dir", c.dir)
	in := []string{"--dir", c.dir, "-g", "commands-jobs"}
	s.run(0, "the gallery has no job: facet import --bucket begins one", append([]string{"job", "list"}, in...)...)
	photos := filepath.Join(s.dir, "photos")
	must.Do(t, os.Mkdir(photos, 0o700))
	for name, of := range map[string]string{"a.jpg": obama, "b.jpg": threePeople} {
		must.Do(t, os.WriteFile(filepath.Join(photos, name), photo(t, of), 0o600))
	}
	address, _ := c.bucket()
	s.run(1, "2 rows: 1 registered, 0 added to persons, 0 replaced, 0 skipped, 1 failed", append([]string{"import", photos, "--bucket", address}, in...)...)
	s.run(0, "JOB", append([]string{"job", "list"}, in...)...)
	var list []struct {
		BatchID     string
		Total, Done int
	}
	s.decode(&list, append([]string{"job", "list"}, in...)...)
	if len(list) != 1 || list[0].Total != 2 || list[0].Done != 2 {
		t.Fatalf("jobs: %+v", list)
	}
	s.run(0, "2: 1 registered, 1 failed, 0 to do", append([]string{"job", "show", list[0].BatchID}, in...)...)
	s.run(0, "MultipleFaces: ", append([]string{"job", "show", list[0].BatchID}, in...)...)
	s.run(1, "facet job list shows them", append([]string{"job", "show", "00000000-0000-4000-8000-000000000000"}, in...)...)
}

func TestCommandsManageApplications(t *testing.T) {
	t.Parallel()
	c := shared(t)
	s := newTenant(t, c, "commands-applications")
	s.run(1, "there is no gallery yet", "application", "create", "door")
	s.run(0, "staff", "gallery", "create", "staff")
	s.run(0, "visitors", "gallery", "create", "visitors")
	s.run(0, `guests\u202e`, "gallery", "create", "guests\u202e") // a mark that turns the text after it
	s.run(0, "is deleted", "gallery", "delete", "guests\u202e", "--yes", "guests\u202e")
	s.run(1, `name a gallery with --gallery: "staff", "visitors"`, "enrol", photoPath(obama))
	var door struct{ ID, APIKey string }
	s.decode(&door, "application", "create", "door", "--gallery", "staff", "--guard")
	s.run(0, "refuses to enrol", "application", "show", "door")
	s.run(0, door.APIKey, "application", "list", "--gallery", "staff")
	s.run(0, "verifies from score  9999", "application", "update", "door", "--verify-threshold", "9999")
	s.run(2, "name what changes", "application", "update", "door")
	s.run(0, "enrolled", "enrol", photoPath(obama), "--api-key", door.APIKey)
	s.run(1, "", "enrol", photoPath(anotherObama), "--api-key", door.APIKey)
	behind := put(t, s.dir, "behind.jpg", enginetest.Behind(t))
	s.run(1, "several faces", "enrol", behind, "--api-key", door.APIKey)
	s.run(1, "refuse or dominant", "application", "update", "door", "--multiple-faces", "largest")
	s.run(0, "several faces        dominant", "application", "update", "door", "--multiple-faces", "dominant", "--guard=false")
	s.soon(0, "1, ignored", "enrol", behind, "--api-key", door.APIKey)
	s.run(0, "several faces        refuse", "application", "update", "door", "--multiple-faces", "refuse", "--guard")
	// A read-only key finds no gallery, and has its own profile.
	reader := &shell{t: t, dir: s.dir}
	reader.run(0, "profile", "key", "create", "--tenant", "commands-applications", "--role", "read-only", "--save", "reader.json", "--dir", c.dir)
	reader.profile = filepath.Join(s.dir, "reader.json")
	reader.run(1, "name the gallery with --api-key or FACET_API_KEY", "search", photoPath(obama))
	reader.run(0, "SCORE", "search", photoPath(obama), "--api-key", door.APIKey)
	reader.run(1, "refused (403", "enrol", photoPath(obama), "--api-key", door.APIKey)
	s.run(0, "is deleted", "application", "delete", "door")
	s.soon(1, "refused (403", "search", photoPath(obama), "--api-key", door.APIKey)
	s.run(1, `no application "door"`, "application", "show", "door")
}

// Where facet dev runs in ./dev, no command needs a flag.
func TestCommandsNeedNoFlagBesideDev(t *testing.T) {
	t.Parallel()
	c := shared(t)
	s := &shell{t: t, dir: t.TempDir()}
	s.run(1, "facet dev", "gallery", "list")
	must.Do(t, os.Symlink(c.dir, filepath.Join(s.dir, "dev")))
	s.run(0, "commands-dev", "gallery", "create", "commands-dev")
	s.run(0, "commands-dev", "gallery", "list")
	s.run(0, "active", "tenant", "list")
	s.run(0, "enrolled", "enrol", photoPath(obama), "-g", "commands-dev")
	s.profile = "operator.yaml"
	put(t, s.dir, "operator.yaml", []byte("admin: [\"localhost:1\"]\ncertificates: none\n"))
	s.run(1, "this needs a tenant's profile", "gallery", "list")
	s.run(0, "commands-dev", "gallery", "list", "--dir", "dev")
}

// Refusals tell a person what to do.
func TestCommandsExplainRefusals(t *testing.T) {
	t.Parallel()
	s := newTenant(t, shared(t), "commands-refusals")
	s.run(0, "small", "gallery", "create", "small", "--size", "1", "--min-quality", "0.99")
	s.run(1, "cut the photo so that one person is left", "enrol", photoPath(threePeople))
	s.run(1, "shows the face from the front", "enrol", photoPath(rocket))
	s.run(1, "or lower the application's --min-quality", "enrol", photoPath(collins))
	s.in = []byte("no image")
	s.run(1, "it must be a JPEG, PNG", "enrol", "-")
	s.run(1, "the photo is empty", "enrol", "-")
	s.in = make([]byte, 15_000_001)
	s.run(1, "more than 15 MB", "search", "-")
	s.run(1, "is a folder: facet import", "enrol", s.dir)
	s.run(1, "there is no nobody.jpg", "enrol", "nobody.jpg")
	s.run(1, "facet tag create NAME", "enrol", photoPath(obama), "--tag", "nowhere")
	s.run(2, "only one photo can come from the standard input", "verify", "-", "-")
	s.run(2, "usage: facet enrol PHOTO", "enrol")
	s.run(0, `"faceMinimumQualityScore": 0.45`, "application", "update", "small", "--min-quality", "0.45", "-o", "json")
	s.soon(0, "enrolled", "enrol", photoPath(obama))
	s.run(1, "facet gallery grow NAME SIZE", "enrol", photoPath(biden))
}

// Every node refuses a disabled tenant. A deleted one leaves nothing.
func TestTenantIsDisabledAndDeleted(t *testing.T) {
	t.Parallel()
	c := shared(t)
	s := newTenant(t, c, "commands-gone")
	operator := &shell{t: t, dir: s.dir}
	var keys wire.KeyPair
	text, err := os.ReadFile(s.profile)
	if err != nil || json.Unmarshal(text, &keys) != nil {
		t.Fatalf("the profile: %v\n%s", err, text)
	}
	k := c.keyless(t).with(keys)
	for _, name := range []string{"one", "two"} {
		s.run(0, name, "gallery", "create", name)
		s.run(0, "enrolled", "enrol", photoPath(obama), "--gallery", name)
	}
	each := func(status int, part string) {
		t.Helper()
		within(t, fmt.Sprintf("each node answers %d and %s", status, part), func() error {
			for node := range c.info.BaseURLs {
				if a := k.get(t, node, "/api/galleries"); a.Status != status || !strings.Contains(string(a.Body), part) {
					return fmt.Errorf("node %d answers %d: %s", node, a.Status, a.Body)
				}
			}
			return nil
		})
	}
	each(200, `"two"`)
	operator.run(0, "is disabled", "tenant", "disable", "commands-gone", "--dir", c.dir)
	each(403, "TenantDisabled")
	s.run(1, "the tenant is disabled", "search", photoPath(obama), "--gallery", "one")
	operator.run(0, "disabled", "tenant", "list", "--dir", c.dir)
	operator.run(0, "is active", "tenant", "enable", "commands-gone", "--dir", c.dir)
	each(200, `"two"`)
	s.run(0, "SCORE", "search", photoPath(obama), "--gallery", "one")
	operator.run(2, `with 2 galleries for 2000 faces and 1 access keys for good: confirm it with --yes "commands-gone"`, "tenant", "delete", "commands-gone", "--dir", c.dir)
	operator.run(0, "is deleted", "tenant", "delete", "commands-gone", "--yes", "commands-gone", "--dir", c.dir)
	each(403, "signature")
	operator.run(1, `there is no tenant "commands-gone"`, "tenant", "delete", "commands-gone", "--yes", "commands-gone", "--dir", c.dir)
	var list []struct{ Name string }
	operator.decode(&list, "tenant", "list", "--dir", c.dir)
	for _, tenant := range list {
		if tenant.Name == "commands-gone" {
			t.Error("the tenant is listed")
		}
	}
	again := newTenant(t, c, "commands-gone")
	again.run(0, "there is no gallery yet", "gallery", "list")
}
