package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"facet/cmd/facet/cli"
	"facet/internal/must"
	"facet/node/cert"
)

// foreign are words of Go, its libraries and protocols that no user has to know.
var foreign = regexp.MustCompile(`arg\(s\)|strconv|dial tcp|x509:|invalid argument|invalid syntax|invalid character|no such file|unmarshal|%!`)

// mistakes are wrong commands, each with what the answer says. They reach no cluster.
var mistakes = []struct{ want, command string }{
	{"NAME is missing", "gallery create"},
	{`"b" is one argument too many`, "gallery create a b"},
	{`--size: "x" is not a number`, "gallery create staff --size x"},
	{"--size: 99999999999999999999 is too large or too small", "gallery create staff --size 99999999999999999999"},
	{"--size", "gallery create staff --size"},
	{"there is no profile none.json", "gallery list --profile none.json"},
	{"it is not JSON", "gallery list --profile text.json"},
	{"an operator's", "gallery list --profile operator.yaml"},
	{"ca has no certificate", "gallery list --profile ca.json"},
	{"127.0.0.1:1 refuses connections", "gallery list --profile dead.json"},
	{"there is no host nowhere.invalid", "gallery list --profile lost.json"},
	{"--profile and --dir each name a cluster", "gallery list --profile dead.json --dir ."},
	{"no cluster is named", "gallery list"},
	{`do you mean "facet gallery list"?`, "gallery lst"},
	{"NAME|ID is missing", "gallery delete"},
	{"NAME|ID is missing", "gallery grow"},
	{"SIZE is missing", "gallery grow staff"},
	{"PHOTO is missing", "search"},
	{"no cluster is named", "search nofile.jpg"},
	{`--threshold: "abc" is not a number`, "search a.jpg --threshold abc"},
	{`--all: "maybe" is neither true nor false`, "search a.jpg --all=maybe"},
	{`--output "xml": it is table or json`, "search a.jpg -o xml"},
	{"PHOTO is missing", "verify"},
	{"PHOTO|ID is missing", "verify a.jpg"},
	{`"c" is one argument too many`, "verify a b c"},
	{"PHOTO is missing", "enrol"},
	{`--expires "yesterday"`, "enrol a.jpg --expires yesterday"},
	{"LIST | FOLDER… is missing", "import"},
	{"--known is skip, replace or add", "import --known maybe list.csv"},
	{"SUBJECT is missing", "subject show"},
	{"PHOTO is missing", "subject update 5b0b9b32-8392-8002-b506-6b5b46edb7fa"},
	{"NEW-NAME is missing", "tag rename berlin"},
	{"JOB is missing", "job show"},
	{`--threshold: "x" is not a number`, "dedupe --threshold x"},
	{"there is no nowhere", "audit verify nowhere --key k"},
	{"--to is needed", "audit export"},
	{`not "yesterday"`, "audit search --since yesterday"},
	{"name the person in one way", "erase"},
	{"there is no nofile", "erase verify nofile --key x"},
	{"RECEIPT is missing", "erase verify --key x"},
	{`"b" is one argument too many`, "erase verify a b --key x"},
	{`"x" is one argument too many`, "audit export x --to y"},
	{`"b" is one argument too many`, "audit prove a b --to y"},
	{`"x" is one argument too many`, "restore x --from y"},
	{"there is no nofile", "explain-signature nofile"},
	{"NAME is missing", "tenant create"},
	{`not "b=c"`, "tenant set a b=c --profile operator.yaml"},
	{"--tenant is needed", "key create"},
	{"--role is needed", "key create --tenant a"},
	{`not "king"`, "key create --tenant a --role king"},
	{`"tomorrow" is neither a date`, "key create --tenant a --role admin --until tomorrow"},
	{"KEY is missing", "key revoke"},
	{"no cluster is named", "status"},
	{`"extra" is one argument too many`, "status extra"},
	{"there is no profile none.yaml", "status --profile none.yaml"},
	{"needs admin (addresses) and certificates", "status --profile half.yaml"},
	{"holds no administrator's certificate", "status --profile operator.yaml"},
	{"--admin and --certificates belong together", "status --admin 127.0.0.1:1"},
	{"127.0.0.1:1 refuses connections", "status --admin 127.0.0.1:1 --certificates certificates/admin"},
	{"there is no host nowhere.invalid", "status --admin nowhere.invalid:1 --certificates certificates/admin"},
	{"127.0.0.1:1 refuses connections", "backup --to file:///x --admin 127.0.0.1:1 --certificates certificates/admin"},
	{"NODE is missing", "node drain"},
	{"NEW-NODE is missing", "node replace n1"},
	{`"x" is not the number of a shard`, "shard move x"},
	{"--from and --to are needed", "shard move 3"},
	{`"four" is not a number of replicas`, "cluster replicas four"},
	{"a token is needed", "cluster join"},
	{"this is not the whole token", "cluster join nonsense"},
	{"--port must be 1 to", "cluster init --port 99999"},
	{`--for: "x" is not a time`, "cluster invite --for x"},
	{"there is no configuration file", "cluster invite --dir nowhere"},
	{"there is no authority in nowhere", "cluster passphrase --authority nowhere"},
	{"must name the folder of a node", "cluster admin --dir nowhere"},
	{"NAME is missing", "certs issue"},
	{"--data and --host are needed", "certs issue n1"},
	{"there is no configuration file nowhere.yaml", "serve --config nowhere.yaml"},
	{`not "nonsense"`, "serve --public-address nonsense"},
	{`--shards: "x" is not a number`, "serve --shards x"},
	{"is not debug, info, warn or error", "serve --log-level loud"},
	{"there is no configuration file nowhere.yaml", "doctor --config nowhere.yaml"},
	{"--to is needed", "backup"},
	{"URL is missing", "backup verify"},
	{"--from is needed", "restore"},
	{"--dir is needed", "recover"},
	{"nowhere is no data directory", "recover --dir nowhere"},
	{"is not the folder of a shard", "recover writes nowhere"},
	{"PACK is missing", "models info"},
	{"there is no model pack", "models info nothing"},
	{"--nodes must be 1 or more", "dev --nodes 0"},
	{`--nodes: "x" is not a number`, "dev --nodes x"},
	{"make the cluster's folder", "dev --dir /proc/x"},
	{"there is no profile none.json", "console --profile none.json"},
	{`do you mean "facet completion fish"?`, "completion fishy"},
	{"unknown flag: --verbose", "version --verbose"},
}

// A mistake gets an answer in the user's words, which says what is wrong.
func TestMistakesGetAnswersInUsersWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, err := cert.NewCA("facet")
	must.Do(t, err)
	profile := func(url, authority string) string {
		text, err := json.Marshal(map[string]any{"base_urls": []string{url}, "access_key": "AK", "secret_key": "S", "ca": authority})
		must.Do(t, err)
		return string(text)
	}
	for name, text := range map[string]string{
		"text.json": "not JSON", "ca.json": profile("https://127.0.0.1:1", "x"), "half.yaml": "admin: [127.0.0.1:1]\n",
		"dead.json": profile("https://127.0.0.1:1", string(ca.CertPEM())), "lost.json": profile("https://nowhere.invalid:1", string(ca.CertPEM())),
		"operator.yaml": "admin: [127.0.0.1:1]\ncertificates: nowhere\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	facet(t, "certs", "init", "--dir", filepath.Join(dir, "certificates"))
	for _, m := range mistakes {
		cmd := command(t, strings.Fields(m.command)...)
		cmd.Dir = dir
		text, _ := cmd.CombinedOutput() // the exit status tells
		out := strings.Join(strings.Fields(string(text)), " ")
		if status := cmd.ProcessState.ExitCode(); status < cli.ExitFailed || status > cli.ExitBroken || !strings.Contains(out, m.want) {
			t.Errorf("facet %s ends with %d, want %q in\n%s", m.command, status, m.want, text)
		}
		if word := foreign.FindString(string(text)); word != "" {
			t.Errorf("facet %s says %q, which is Go's, in\n%s", m.command, word, text)
		}
	}
}
