// Package imports compares facet import with what the same three nodes register for the
// load generator. Both register the same photos in turn, and the processor time of both
// clients counts.
package imports
