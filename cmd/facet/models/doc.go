// Package models is `facet models`: it lists, describes and checks model packs, and
// fits the calibration of their scores to photographs. The commands that measure
// open the face engine on a pack.
package models
