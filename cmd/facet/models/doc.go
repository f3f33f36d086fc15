// Package models is `facet models`: it lists model packs, tells about one, checks
// one, and fits the calibration of its scores to photographs. It opens the face
// engine on a pack for those commands that measure.
package models
