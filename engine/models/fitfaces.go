package models

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
)

// putFaces writes the evidence and the least norm of the fit into a valid manifest. The evidence
// replaces the present one or becomes the last member.
func putFaces(manifest []byte, fit Fit) ([]byte, error) {
	if fit.MinNorm != nil {
		if math.IsNaN(*fit.MinNorm) || math.IsInf(*fit.MinNorm, 0) {
			return nil, errors.New("minNorm is no number")
		}
		from, to, err := valueOf(manifest, "detector")
		if err != nil {
			return nil, err
		}
		at, end, err := valueOf(manifest[from:to], "minNorm")
		if err != nil {
			return nil, err
		}
		manifest = slices.Concat(manifest[:from+at], strconv.AppendFloat(nil, *fit.MinNorm, 'f', -1, 64), manifest[from+end:])
	}
	if fit.Evidence == nil {
		return manifest, nil
	}
	text, err := manifestText(fit.Evidence)
	if err != nil {
		return nil, err
	}
	if from, to, err := valueOf(manifest, "evidence"); err == nil {
		return slices.Concat(manifest[:from], text, manifest[to:]), nil
	}
	end := bytes.LastIndexByte(manifest, '}')
	head := bytes.TrimRight(manifest[:end], " \t\r\n")
	return slices.Concat(head, []byte(",\n  \"evidence\": "), text, []byte("\n"), manifest[end:]), nil
}
