// Package photos reads a folder with a folder of photographs for each person, and
// extracts their faces on all cores, for the commands that measure the face
// engine. A photograph's bytes are held only while it is worked on.
package photos
