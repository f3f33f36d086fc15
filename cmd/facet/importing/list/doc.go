// Package list reads what an import brings in: a list of photos (CSV or JSON lines), a
// folder for each person, or plain photos. It reads one row at a time and holds no list
// in memory. A row that can't be used has an error of its own and never ends the list.
//
//	source.go   what the arguments name
//	row.go      one photo to bring in, and its bytes
//	lines.go    lines of bounded length
//	csv.go      lists with columns
//	json.go     lists with one JSON object a line
//	folder.go   folders and files of photos
package list
