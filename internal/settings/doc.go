// Package settings describes what a tenant sets of its galleries and applications. Each field is
// described once: its key in records, its name in JSON, its bounds and its text. The state machine
// stores Gallery and Application and merges a Change into them, package httpapi reads them by Fields,
// and the description of the interface, the clients' types and the program's flags are made from Fields.
package settings
