package main

import (
	"github.com/spf13/cobra"

	"facet/cmd/facet/cli"
	"facet/cmd/facet/tenant"
)

func newBench() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "bench", Short: "measure how often the service is wrong"}, tenant.NewBench())
}
