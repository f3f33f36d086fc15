// Package bench is `facet bench`. It measures how often the face engine is wrong on
// a folder of photographs, one folder for each person. It writes the result as
// tables, JSON, plots and the page docs/benchmarks/accuracy.md. The statistics come
// from engine/accuracy.
//
// Of the photographs, only counts and scores are written.
package bench
