package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := settings{out: os.Stdout}
	flag.IntVar(&cfg.people, "people", 2000, fmt.Sprintf("rows of the list, %d to %d", peopleMin, peopleMax))
	flag.StringVar(&cfg.dir, "dir", "office-data", "folder of the cluster, the list and the photos; an earlier one is removed")
	flag.StringVar(&cfg.facet, "facet", "bin/facet", "the program")
	flag.StringVar(&cfg.photos, "photos", "assets/photos", "folder with the sample photos of make setup")
	flag.Parse()
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "office:", err)
		os.Exit(1) //nolint:gocritic // the cluster has stopped
	}
}
