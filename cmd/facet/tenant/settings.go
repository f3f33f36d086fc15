package tenant

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/internal/settings"
)

// given are the flags of the settings of T, Gallery or Application.
type given[T any] struct {
	cmd *cobra.Command
	// change is for a change, which needs one of the flags, and may have --if-match.
	change bool
	flags  []settingFlag
	match  *string
}

// settingFlag is the flag of a setting.
type settingFlag struct {
	settings.Field
	name  string
	value reflect.Value // of a pointer
}

// settingFlags adds the flags of the settings of T to cmd, except for those named in others.
func settingFlags[T any](cmd *cobra.Command, change bool, others ...string) *given[T] {
	g := &given[T]{cmd: cmd, change: change}
	f := cmd.Flags()
	for i, s := range settings.Fields[T]() {
		if slices.Contains(others, s.Name) {
			continue
		}
		name, help := cmp.Or(s.Flag, strings.Join(s.Words(), "-")), s.Help
		var value any
		switch kind := reflect.TypeFor[T]().Field(i).Type.Kind(); {
		case s.Choices != nil:
			value = f.String(name, s.Choices[0], help)
		case kind == reflect.String:
			if change && !s.Core {
				help += `; "": none`
			}
			value = f.String(name, "", help)
		case kind == reflect.Bool:
			value = f.Bool(name, false, help)
		case kind == reflect.Float64:
			value = f.Float64(name, s.Min, help)
		default:
			value = f.Int(name, int(s.Default), help)
		}
		g.flags = append(g.flags, settingFlag{s, name, reflect.ValueOf(value)})
	}
	if change {
		g.match = f.String("if-match", "", "the ETag that show has printed: change nothing if somebody has changed the settings since")
		cmd.PreRunE = func(*cobra.Command, []string) error { return g.some() }
	}
	return g
}

// some returns an error unless a flag is given.
func (g *given[T]) some() error {
	var names []string
	for _, s := range g.flags {
		if g.cmd.Flags().Changed(s.name) {
			return nil
		}
		names = append(names, "--"+s.name)
	}
	last := len(names) - 1
	return cli.Misuse(errors.New("name what changes: " + strings.Join(names[:last], ", ") + " or " + names[last]))
}

// set sets those fields of a request of the client that have a flag which is given, or must be there.
func (g *given[T]) set(request any) {
	to := reflect.ValueOf(request).Elem()
	for _, s := range g.flags {
		switch field := member(to, s.Name); {
		case !g.cmd.Flags().Changed(s.name) && (g.change || !s.Required):
		case field.Kind() == reflect.Pointer:
			field.Set(s.value)
		default:
			field.Set(s.value.Elem())
		}
	}
	if g.change {
		to.FieldByName("IfMatch").SetString(quoted(*g.match))
	}
}

// member returns the field of a struct with a name in JSON.
func member(of reflect.Value, name string) reflect.Value {
	for field, value := range of.Fields() {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name {
			return value
		}
	}
	panic("bug: no member " + name)
}

// galleryPairs returns the settings of a gallery for people, but its name and size.
func galleryPairs(g client.Gallery) []string {
	var pairs []string
	for _, s := range settings.Fields[settings.Gallery]() {
		label, value := strings.Join(s.Words(), " "), ""
		switch v := member(reflect.ValueOf(g), s.Name); {
		case s.Name == "name" || s.Name == "size":
		case s.Name == "retentionDays":
			label, value = "kept", kept(g.RetentionDays)
		case v.IsZero():
		case v.Kind() == reflect.Bool:
			value = "on"
		default:
			value = fmt.Sprint(v)
		}
		pairs = append(pairs, label, value) // an empty value is not printed
	}
	return pairs
}

// quoted returns an ETag in the quotation marks that a shell has removed.
func quoted(tag string) string {
	if tag == "" {
		return ""
	}
	return `"` + strings.Trim(tag, `"`) + `"`
}
