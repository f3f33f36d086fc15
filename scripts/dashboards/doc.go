// Command dashboards writes the dashboards of deploy/grafana and the tests of their queries,
// deploy/prometheus/panels_test.yml, from the tables in operators.go and officers.go.
//
//	go run ./scripts/dashboards
//
// Each query of a panel stands beside a test of it: series that Prometheus would have, and what the
// query then answers after 20 minutes. "make alerts" runs these tests.
package main
