package meta

import (
	"context"
	"slices"
	"strconv"

	"goblin/meta/search"
	"goblin/registry"
)

func find(kind registry.Kind, member string) func(*Tools, context.Context, arguments) ([]byte, error) {
	return func(t *Tools, ctx context.Context, a arguments) ([]byte, error) {
		q := search.Query{
			Text: a.text(query), Kinds: []registry.Kind{kind}, Server: a.text(serverID), MIME: a.text(mimeType),
			Limit: a.numbers["limit"], Offset: a.number(offset), View: t.o.Registry.ViewFor(ctx),
		}
		found, err := t.searcher.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		l := cardList{member: member, first: q.Offset, total: found.Total}
		if found.PoorMatch && kind == registry.Tool {
			l.addAdvice(found.Hits, q.Server == "")
		}
		for _, h := range found.Hits {
			l.cards = append(l.cards, t.hitCard(h, q.Text != ""))
		}
		return structuredResult(l.end(t.starting(ctx))), nil
	}
}

const maxLikelyServers = 3

// addAdvice suggests the next step if no hit fits well. The hits may still show relevant
// servers.
func (l *cardList) addAdvice(hits []search.Hit, servers bool) {
	l.advice = "No good match. Try other keywords"
	if !servers || len(hits) == 0 {
		l.advice += "."
		return
	}
	l.advice += ", or list the tools of one of these servers with catalog_tools."
	for _, h := range hits {
		if server := h.Entry.Server; len(l.servers) < maxLikelyServers && !slices.Contains(l.servers, server) {
			l.servers = append(l.servers, server)
		}
	}
}

func (t *Tools) hitCard(h search.Hit, ranked bool) []byte {
	o := t.card(h.Entry)
	if ranked {
		o.score(h.Score)
	}
	return o.end()
}

func (o *objectWriter) score(score float64) {
	o.value("score", strconv.AppendFloat(nil, score, 'g', 4, 64))
}

// Query is a search from the shell.
type Query struct {
	Text         string
	Kind         string // tools, prompts, resources or templates; "" for all
	Server, MIME string // "" for all; * matches any text
	Limit        int
}

// Search returns the entries that match a query, best first.
func (t *Tools) Search(ctx context.Context, q Query) (search.Result, error) {
	kinds, err := kindsOf(q.Kind)
	if err != nil {
		return search.Result{}, err
	}
	return t.searcher.Search(ctx, search.Query{Text: q.Text, Kinds: kinds, Server: q.Server, MIME: q.MIME, Limit: min(q.Limit, maxLimit), View: t.o.Registry.ViewFor(ctx)})
}
