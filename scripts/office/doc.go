// Command office is `make demo-office`: a week of an office that works with facet, told as a
// story on a real cluster of three nodes.
//
//	office [-people N] [-dir FOLDER] [-facet FILE] [-photos FOLDER]
//
// It types the commands that a person would type, shows what they say, and compares each
// number with what was put in. The first one that differs ends it with exit status 1.
//
// The sample photos show no 2,000 persons. The list has that many rows, and each has a photo
// of its own, but most show one of 14 persons: another crop, size, angle, light and JPEG
// quality, half of them mirrored. So each row is a member with an id of her own, a search
// finds many members of one face, and how many it must find is known. Blends of two faces
// are no way out: of 600 with smooth warps, 1.1 % of the pairs had 7000 or more, a thousand
// times as many as of different persons.
//
// It may import client, and the packages config, dev and process of cmd/facet.
package main
