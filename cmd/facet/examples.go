package main

import "github.com/spf13/cobra"

// examples are the examples of an operator's commands. Those of a tenant's stand with the commands.
var examples = map[string]string{
	"backup": `  facet backup --to s3://backups/facet?region=eu-west-1
  facet backup --to file:///mnt/backups --name monday   # a folder that all nodes share`,
	"backup erasures":          `  facet backup erasures s3://backups/facet?region=eu-west-1 > erasures.json`,
	"backup list":              `  facet backup list s3://backups/facet?region=eu-west-1`,
	"backup verify":            `  facet backup verify s3://backups/facet?region=eu-west-1 --name monday`,
	"certs init":               `  facet certs init --dir certificates`,
	"certs issue":              `  facet certs issue n1 --dir certificates --data n1 --host n1.example.org --host 10.0.0.1`,
	"cluster init":             `  facet cluster init --dir /var/lib/facet --address 10.0.0.1`,
	"cluster invite":           `  facet cluster invite --dir /var/lib/facet --nodes 2`,
	"cluster join":             `  facet cluster join TOKEN --dir /var/lib/facet`,
	"cluster replicas":         `  facet cluster replicas 5 --wait`,
	"cluster renew":            `  facet cluster renew n2 --authority /media/usb/facet-authority`,
	"cluster status":           `  facet cluster status --profile /var/lib/facet/profile.yaml`,
	"cluster rotate authority": `  facet cluster rotate authority   # three times; each step says what to do before the next`,
	"cluster rotate cluster":   `  facet cluster rotate cluster`,
	"cluster rotate gossip":    `  facet cluster rotate gossip`,
	"cluster passphrase":       `  facet cluster passphrase --authority /var/lib/facet-authority`,
	"dev": `  facet dev
  facet dev --nodes 5 --shards 8 --dir five`,
	"erase continue": `  facet erase continue person.receipt`,
	"key create":     `  facet key create --tenant bank --role search-only --holder "door 3" --gallery staff --until 2027-12-31 --save door3.json`,
	"key list":       `  facet key list --tenant bank`,
	"key revoke":     `  facet key revoke AKIDEXAMPLE`,
	"key rotate":     `  facet key rotate --tenant bank --holder "door 3" --save door3-new.json`,
	"models info":    `  facet models info sface`,
	"models list":    `  facet models list`,
	"models verify":  `  facet models verify sface`,
	"node activate":  `  facet node activate n1`,
	"node drain":     `  facet node drain n1 --wait`,
	"node list":      `  facet node list`,
	"node remove": `  facet node drain n3 --wait && facet node remove n3
  facet node remove n3 --wait   # its machine is lost`,
	"node replace": `  facet node replace n1 n4 --wait`,
	"recover":      `  facet recover --dir /var/lib/facet/data   # shows what it would do`,
	"recover writes": `  facet recover writes /var/lib/facet/data/group-2.rewritten-20261130T120000
  facet recover writes /var/lib/facet/data/group-2.rewritten-20261130T120000 --put-back all`,
	"restore":       `  facet restore --from s3://backups/facet?region=eu-west-1`,
	"serve":         `  facet serve --config /var/lib/facet/facet.yaml`,
	"shard balance": `  facet shard balance --plan`,
	"shard list":    `  facet shard list`,
	"shard move":    `  facet shard move 3 --from n1 --to n4`,
	"status": `  facet status
  facet status --profile /var/lib/facet/profile.yaml -o json`,
	"version": `  facet version`,
}

// aliases are further names by which people look for commands.
var aliases = map[string][]string{"list": {"ls"}, "delete": {"rm"}, "remove": {"rm"}, "show": {"get"}, "info": {"get"}, "enrol": {"enroll"}}

// complete gives a command and those below it their aliases and examples. path names it without the
// program.
func complete(cmd *cobra.Command, path string) {
	cmd.Aliases = aliases[cmd.Name()]
	if text, ok := examples[path]; ok {
		cmd.Example = text
	}
	for _, c := range cmd.Commands() {
		name := c.Name()
		if path != "" {
			name = path + " " + name
		}
		complete(c, name)
	}
}
