package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bill writes the bill of materials of a target (CycloneDX) and returns its name: the Go modules that
// the program was built of, models and libraries beside it, the console's libraries, and what the
// image's base has. It fails where a component has no permitted licence.
func (b *builder) bill(ctx context.Context, t target) (string, error) {
	var components []cdx.Component
	for _, part := range []func() ([]cdx.Component, error){
		func() ([]cdx.Component, error) { return b.modules(ctx, t) },
		func() ([]cdx.Component, error) { return b.assets(t) },
		b.console,
	} {
		list, err := part()
		if err != nil {
			return "", err
		}
		components = append(components, list...)
	}
	if err := checkLicences(components); err != nil {
		return "", err
	}
	if b.wants(kindImage) && b.base == "" {
		base, err := b.baseComponents(ctx, t)
		if err != nil {
			return "", err
		}
		components = append(components, base...)
	}
	for i, c := range components {
		components[i].BOMRef = c.PackageURL
	}
	slices.SortFunc(components, func(a, c cdx.Component) int { return strings.Compare(a.BOMRef, c.BOMRef) })
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: b.epoch.Format(time.RFC3339),
		Component: &cdx.Component{
			Type: cdx.ComponentTypeApplication, BOMRef: "facet", Name: "facet", Version: b.version,
			Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		},
	}
	bom.Components = &components
	return b.writeBill(t, bom)
}

func (b *builder) writeBill(t target, bom *cdx.BOM) (name string, err error) {
	name = filepath.Join(b.dist, "facet-"+b.version+"-"+t.arch+".cdx.json")
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return name, cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// baseComponents returns the distribution's packages in the image.
func (b *builder) baseComponents(ctx context.Context, t target) ([]cdx.Component, error) {
	debs, err := b.debs(ctx, t)
	if err != nil {
		return nil, err
	}
	var list []cdx.Component
	for _, deb := range debs {
		out, err := b.command(ctx, nil, "dpkg-deb", "--showformat=${Package} ${Version} ${Architecture}", "--show", deb)
		if err != nil {
			return nil, err
		}
		field := strings.Fields(string(out))
		if len(field) != 3 {
			return nil, fmt.Errorf("%s: its fields are %q", filepath.Base(deb), out)
		}
		url := "pkg:deb/debian/" + field[0] + "@" + field[1] + "?arch=" + field[2]
		list = append(list, cdx.Component{Type: cdx.ComponentTypeLibrary, Name: field[0], Version: field[1], PackageURL: url})
	}
	return list, nil
}
