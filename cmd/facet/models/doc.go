// Package models is `facet models`: it lists, describes and checks model packs, and writes what they
// measure on photographs to a file for facet-lab (clients/lab). The commands that measure open the face
// engine on a pack.
package models
