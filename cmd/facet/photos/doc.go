// Package photos reads a folder with a folder of photographs for each person, and
// extracts their faces on all cores, for the commands that measure the face
// engine. It holds a photograph's bytes only while it processes them.
package photos
