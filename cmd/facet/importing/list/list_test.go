package list

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/go-json-experiment/json/jsontext"

	"facet/internal/must"
)

// write creates a file below dir and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// rows opens what args name and returns its rows. The source stays open for the test.
func rows(t *testing.T, o Options, args ...string) (*Source, []Row, error) {
	t.Helper()
	s, err := Open(args, o)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var list []Row
	for r, err := range s.Rows() {
		if err != nil {
			return s, list, err
		}
		list = append(list, r)
	}
	return s, list, nil
}

// line is a row as the tests compare it.
func line(r Row) string {
	text := strings.Join(append([]string{r.ExternalID, r.File, string(r.UserData)}, r.Tags...), "|")
	if r.Err != nil {
		text += " !" + r.Err.Error()
	}
	return text
}

func TestListsOfAllKindsAreRead(t *testing.T) {
	t.Parallel()
	want := []Row{
		{Number: 2, ExternalID: "E-1", File: "a b.jpg", Tags: []string{"staff", "night shift"}, UserData: jsontext.Value(`{"a":1}`), Expires: time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC)},
		{Number: 3, ExternalID: "E-2", File: "ü.jpg"},
	}
	f := func(name, text string) {
		t.Helper()
		_, got, err := rows(t, Options{}, write(t, t.TempDir(), name, text))
		diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Row{}))
		if err != nil || diff != "" {
			t.Errorf("%v, −want +got\n%s", err, diff)
		}
	}
	f("comma.csv", "external_id,file,tags,user_data,expires\nE-1,a b.jpg,staff;night shift,\"{\"\"a\"\":1}\",2030-01-31\nE-2,ü.jpg,,,\n")
	f("excel.csv", "\ufeffExternal ID;File;Tags;User Data;Expires\r\nE-1;a b.jpg;\"staff; night shift\";\"{\"\"a\"\":1}\"; 2030-01-31T00:00:00Z\r\nE-2;ü.jpg;;;\r\n;;;\r\n")
	f("tab.tsv", "externalId\tfilename\ttags\tuserData\texpires\nE-1\ta b.jpg\tstaff;night shift\t\"{\"\"a\"\":1}\"\t2030-01-31T01:00:00+01:00\nE-2\tü.jpg\t\t\t\n\n")
	f("order.CSV", "tags,file,externalID,expires,userdata\nstaff;night shift,a b.jpg,E-1,2030-01-31,\"{\"\"a\"\":1}\"\n,ü.jpg,E-2,,")
	f("lines.jsonl", "\n"+`{"external_id":"E-1","file":"a b.jpg","tags":["staff","night shift"],"user_data":{"a":1},"expires":"2030-01-31"}`+"\r\n"+
		`{"externalId":"E-2","file":"ü.jpg","tags":null,"expires":null}`)
	want[0].Number, want[1].Number = 3, 4
	f("sep.csv", "sep=;\r\nexternal_id;file;tags;user_data;expires\r\nE-1;a b.jpg;\"staff;night shift\";\"{\"\"a\"\":1}\";2030-01-31\r\nE-2;ü.jpg;;;\r\n")
}

func TestBadRowsDoNotEndTheList(t *testing.T) {
	t.Parallel()
	f := func(name, text string, want ...string) {
		t.Helper()
		_, got, err := rows(t, Options{}, write(t, t.TempDir(), name, text))
		var lines []string
		for _, r := range got {
			lines = append(lines, line(r))
		}
		if diff := cmp.Diff(want, lines); err != nil || diff != "" {
			t.Errorf("%v, −want +got\n%s", err, diff)
		}
	}
	long := strings.Repeat("x", lineBytesMax)
	f("a.csv", "file,external_id\n"+
		"\"open,1\n"+
		"a\"b,2\n"+
		"c.jpg\n"+
		"c.jpg,3,4\n"+
		","+"5\n"+
		long+",6\n"+
		"\xe4.jpg,7\n"+
		"good.jpg,8\n",
		`|| !a quoted field does not end on its line, or has text behind it: write "" for a quotation mark, and each row on one line`,
		`|| !there is a quotation mark in a field that is not quoted: quote the field, and write "" for the mark`,
		"|c.jpg| !the row has 1 fields, the first line 2: quote a field that contains ','",
		"3|c.jpg| !the row has 3 fields, the first line 2: quote a field that contains ','",
		"5|| !the row names no file",
		"|| !the line has more than 64 KiB",
		`|| !the line is not in UTF-8: save the list as "CSV UTF-8"`,
		"8|good.jpg|")
	f("a.jsonl", `{"file":"a.jpg"`+"\n"+
		`{"file":"a.jpg","file":"b.jpg"}`+"\n"+
		`{"file":1}`+"\n"+
		`["a.jpg"]`+"\n"+
		`{"externalId":"1","external_id":"2","file":"a.jpg"}`+"\n"+
		`{"file":"a.jpg","tags":[1]}`+"\n"+
		`{"file":"a.jpg"} {}`+"\n"+
		`{"file":"a.jpg","userData":"x"}`+"\n"+
		`{"file":"a.jpg","expires":"30d"}`+"\n"+
		`{"file":"good.jpg"}`+"\n",
		"|| !the line is not one JSON object: each row is one object on one line",
		"|| !a member of the line's object occurs twice",
		"|| !file is not a text",
		"|| !the line is not a JSON object",
		"|a.jpg| !the row has external_id in two spellings",
		"|a.jpg| !tags has something that is not a text",
		"|| !the line is not one JSON object: each row is one object on one line",
		`|a.jpg|"x" !user_data is no JSON object such as {"department":"sales"}`,
		"|a.jpg| !expires is no time such as 2030-01-31 or 2030-01-31T12:00:00Z",
		"|good.jpg|")
	f("expires.csv", "file,expires\na.jpg,2030-02-30\nb.jpg,2030-02-28\n",
		"|a.jpg| !expires is no time such as 2030-01-31 or 2030-01-31T12:00:00Z", "|b.jpg|")
}

func TestListWithoutColumnsIsRefused(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		_, _, err := rows(t, Options{}, write(t, t.TempDir(), "a.csv", text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
	f("", "the list is empty")
	f("E-1,a.jpg\n", `one of them "file"`)
	f("file,file\n", `two columns of the list are called "file"`)
	f("\xff\xfef\x00i\x00l\x00e\x00", `save it as "CSV UTF-8"`)
	s, _, err := rows(t, Options{}, write(t, t.TempDir(), "a.csv", "name,file,tag\nAnn,a.jpg,x\n"))
	if err != nil || !slices.Equal(s.Ignored(), []string{"name", "tag"}) {
		t.Errorf("%v, ignored %q", err, s.Ignored())
	}
}

func TestListNamesNothingOutsideItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := write(t, dir, "secret.jpg", "secret")
	write(t, dir, "in/photos/a.jpg", "photo")
	must.Do(t, os.Symlink(secret, filepath.Join(dir, "in", "link.jpg")))
	list := write(t, dir, "in/list.csv", "file\n../secret.jpg\n"+secret+"\nlink.jpg\nphotos/a.jpg\nphotos\nmissing.jpg\n/dev/zero\n")
	for _, outside := range []bool{false, true} {
		_, got, err := rows(t, Options{Outside: outside}, list)
		if err != nil || len(got) != 7 {
			t.Fatalf("%d rows, %v", len(got), err)
		}
		for i, r := range got {
			var b strings.Builder
			err := r.CopyTo(&b)
			good := i == 3 || outside && i < 3
			if good != (err == nil) || good && b.Len() == 0 {
				t.Errorf("outside %v, %s: %v", outside, r.File, err)
			}
			if !outside && i < 3 && !strings.Contains(err.Error(), "--outside") {
				t.Errorf("%s: %v", r.File, err)
			}
		}
	}
}

func TestFoldersAreReadByPersonOrPlain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"Bo/2.HEIC", "Bo/1.jpg", "Ann/x/1.webp", "Ann/notes.txt", ".cache/x.jpg", "@eaDir/x.jpg", "Bo/@eaDir/1.jpg/SYNOPHOTO_THUMB_M.jpg", "Bo/.hidden.jpg", "stray.tif"} {
		write(t, dir, name, "x")
	}
	f := func(o Options, want ...string) {
		t.Helper()
		_, got, err := rows(t, o, dir)
		var lines []string
		for _, r := range got {
			lines = append(lines, strings.ReplaceAll(line(r), dir+"/", ""))
		}
		if diff := cmp.Diff(want, lines); err != nil || diff != "" {
			t.Errorf("%v, −want +got\n%s", err, diff)
		}
	}
	f(Options{PerPerson: true}, "Ann|Ann/x/1.webp|", "Bo|Bo/1.jpg|", "Bo|Bo/2.HEIC|", "|stray.tif| !the photo is in no person's folder")
	f(Options{}, "|Ann/x/1.webp|", "|Bo/1.jpg|", "|Bo/2.HEIC|", "|stray.tif|")
}

// A Mac writes "é" in a folder's name as "e" and an accent.
func TestNamesOfMacsAreComposed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "Rene\u0301/1.jpg", "photo")
	list := write(t, dir, "list.csv", "external_id,file,tags\nRene\u0301,Rene\u0301/1.jpg,Zu\u0308rich\n")
	for _, o := range []Options{{}, {PerPerson: true}} {
		arg := list
		if o.PerPerson {
			arg = dir
		}
		_, got, err := rows(t, o, arg)
		must.Do(t, err)
		var photo strings.Builder
		if err := got[0].CopyTo(&photo); err != nil || got[0].ExternalID != "Ren\u00e9" || len(got[0].Tags) > 0 && got[0].Tags[0] != "Z\u00fcrich" {
			t.Errorf("%+v: %+q, %+q, %v", o, got[0].ExternalID, got[0].Tags, err)
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte("external_id,file,tags\nE-1,a.jpg,x;y\n"), false)
	f.Add([]byte("\ufeffsep=;\r\nfile;tags\r\n\"a;b\";\"\"\r\n"), false)
	f.Add([]byte("file\n\"\n"), false)
	f.Add([]byte(`{"external_id":"E","file":"a","tags":["x"],"more":{}}`), true)
	f.Fuzz(func(t *testing.T, text []byte, isJSON bool) {
		last := 0
		s := &Source{list: "list"}
		err := s.read(strings.NewReader(string(text)), isJSON, func(r Row) bool {
			if r.Number <= last || r.Err == nil && (r.File == "" || len(r.Tags) > tagsMax) {
				t.Fatalf("row %d after %d: %+v", r.Number, last, r)
			}
			if len(r.ExternalID)+len(r.File)+len(r.UserData) > lineBytesMax {
				t.Fatalf("row %d is longer than a line may be", r.Number)
			}
			last = r.Number
			return true
		})
		if lines := strings.Count(string(text), "\n") + 1; last > lines || err != nil && err.Error() == "" {
			t.Fatalf("row %d of %d lines, %v", last, lines, err)
		}
	})
}
