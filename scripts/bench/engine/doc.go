// Package engine measures what the face engine costs beside what it can't do without:
// the bare models and the bare JPEG decoder; and what a node costs beside the engine.
// Everything that is compared is measured in turn, round after round, and told as a
// median, so that a busy machine hurts both sides alike.
package engine
