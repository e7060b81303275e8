// Package search is a stub.
package search

import (
	"context"
	"strings"

	"goblin/registry"
)

// Query q.
type Query struct {
	Text          string
	Kinds         []registry.Kind
	Server, MIME  string
	Limit, Offset int
}

// Hit h.
type Hit struct {
	Entry *registry.Entry
	Score float64
}

// Index i.
type Index struct{ r *registry.Registry }

// New n.
func New(r *registry.Registry) *Index { return &Index{r} }

// Run r.
func (x *Index) Run(ctx context.Context) { <-ctx.Done() }

// Search s.
func (x *Index) Search(_ context.Context, q Query) (hits []Hit, total int, err error) {
	for _, k := range q.Kinds {
		for e := range x.r.Load().All(k) {
			if strings.Contains(strings.ToLower(string(e.JSON)), strings.ToLower(q.Text)) && (q.Server == "" || q.Server == e.Server) {
				total++
				if total > q.Offset && len(hits) < q.Limit {
					hits = append(hits, Hit{e, 1})
				}
			}
		}
	}
	return hits, total, nil
}
