package calltest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goblin/registry/query"
	"goblin/registry/savedcall"
)

// FilterError is a mistake in a filter, or an empty result.
type FilterError struct{ Text string }

func (e *FilterError) Error() string { return e.Text }

// Filter is a filter of calls, in the language of package query.
type Filter struct{ text string }

// ParseFilter returns a *[FilterError] for a mistake.
func ParseFilter(text string) (Filter, error) {
	if problem := query.Parse(text, filterFields(nil, nil)).Problem(); problem != "" {
		return Filter{}, &FilterError{problem}
	}
	return Filter{text}, nil
}

// NeedsServers reports whether the filter names servers, which only the catalog knows.
func (f Filter) NeedsServers() bool { return query.Parse(f.text, filterFields(nil, nil)).IsCostly() }

func filterFields(calls []*savedcall.Call, server func(*savedcall.Call) string) []query.Field {
	return []query.Field{
		{Name: "folder", Text: func(row int) string { return filepath.ToSlash(filepath.Dir(calls[row].Path)) }},
		{Name: "name", Aliases: []string{"file"}, Text: func(row int) string { return filepath.Base(calls[row].Path) }},
		{Name: "tool", Aliases: []string{"call"}, Text: func(row int) string { return calls[row].Name }},
		{Name: "server", Costly: true, Text: func(row int) string { return server(calls[row]) }},
	}
}

// Select returns the calls that match and keeps their order. catalog may be nil if the filter
// does not need servers.
func (f Filter) Select(ctx context.Context, catalog *Catalog, calls []*savedcall.Call) (selected []*savedcall.Call, err error) {
	index := query.NewIndex(len(calls), func(row int) string {
		return filepath.ToSlash(calls[row].Path) + " " + calls[row].Name + " " + calls[row].Description
	})
	fields := filterFields(calls, func(c *savedcall.Call) string { return catalog.server(ctx, c) })
	rows, err := query.Parse(f.text, fields).Match(ctx, index, time.Now())
	slices.Sort(rows) // a fuzzy word sorts them otherwise
	for _, row := range rows {
		selected = append(selected, calls[row])
	}
	if err == nil && len(selected) == 0 {
		err = &FilterError{fmt.Sprintf("no saved call matches %q", f.text)}
	}
	return selected, err
}

// server returns the server of a call, or "" if it is unknown.
func (c *Catalog) server(ctx context.Context, call *savedcall.Call) string {
	target, err := c.Find(ctx, call.Kind, call.Name)
	if err != nil {
		return ""
	}
	return target.Server
}

// Knows reports whether the catalog has a server for each call, or the reason why there is
// none. It skips names with variables.
func (c *Catalog) Knows(ctx context.Context, calls []*savedcall.Call) bool {
	for _, call := range calls {
		if strings.Contains(call.Name, "${") {
			continue
		}
		if target, err := c.Find(ctx, call.Kind, call.Name); err == nil && target.Server == "" {
			return false
		}
	}
	return true
}
