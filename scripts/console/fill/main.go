// Command fill puts templates into a gallery of a cluster of facet dev that has stopped. The
// console's tests list galleries of sizes that would take hours to enrol.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	"facet/cmd/facet/dev"
	"facet/internal/id"
	"facet/scripts/bench/fill"
)

func main() {
	info := flag.String("info", "", "copy of the dev.json of the cluster while it ran")
	g := fill.Gallery{}
	flag.StringVar(&g.ClusterKey, "key", "", "file of the cluster key")
	flag.StringVar(&g.Name, "gallery", "", "name of the gallery")
	subject := flag.String("subject", "", "id of the only subject")
	event := flag.String("event", "", "id of its event")
	events := flag.Int("events", 100_000, "how many there are in the end")
	flag.Parse()
	if err := run(*info, *subject, *event, g, *events); err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1)
	}
}

func run(info, subject, event string, g fill.Gallery, events int) error {
	text, err := os.ReadFile(info)
	if err != nil {
		return err
	}
	var i dev.Info
	if err := json.Unmarshal(text, &i); err != nil {
		return err
	}
	for _, n := range i.Nodes {
		g.Nodes = append(g.Nodes, fill.Node{ID: n.ID, Dir: n.Dir})
	}
	var errSubject, errEvent error
	g.Subject.UUID, errSubject = id.Parse(subject)
	g.Event.UUID, errEvent = id.Parse(event)
	if err := errors.Join(errSubject, errEvent); err != nil {
		return err
	}
	_, err = fill.Fill(context.Background(), g, events)
	return err
}
