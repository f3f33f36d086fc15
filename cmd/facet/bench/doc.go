// Package bench is `facet bench`: it measures how often the face engine is wrong
// on a folder of photographs, one folder a person, and writes it as tables, JSON,
// plots and the page docs/benchmarks/accuracy.md. The statistics are engine/accuracy's.
//
// Nothing of a photograph leaves it but counts and scores.
package bench
