// Package traces has the test of traces: a cluster of three nodes with the face engine sends its
// spans to the OTLP receiver of the OpenTelemetry Collector.
package traces
