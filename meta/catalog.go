package meta

import (
	"cmp"
	"context"
	"strings"

	"goblin/meta/search"
	"goblin/registry"
	"goblin/registry/rawjson"
)

func (t *Tools) catalogServers(ctx context.Context, a arguments) ([]byte, error) {
	states := t.o.Registry.StatesIn(t.o.Registry.ViewFor(ctx))
	l := cardList{member: "servers", first: a.number(offset), total: len(states)}
	for i := l.first; i < len(states) && len(l.cards) < a.numbers["limit"]; i++ {
		l.cards = append(l.cards, serverCard(&states[i]))
	}
	return structuredResult(l.end(nil)), nil
}

func serverCard(s *registry.ServerState) []byte {
	o := newObjectWriter()
	o.text("serverId", s.Name)
	o.text("state", string(s.State))
	o.text("title", cmp.Or(s.ServerTitle, s.ServerName))
	o.text("version", s.ServerVersion)
	o.text("description", excerpt(s.Instructions))
	o.number("tools", int64(s.Counts[registry.Tool]))
	o.number("prompts", int64(s.Counts[registry.Prompt]))
	o.number("resources", int64(s.Counts[registry.Resource]))
	o.number("resourceTemplates", int64(s.Counts[registry.Template]))
	if n := s.Counts[registry.Skill]; n > 0 {
		o.number("skills", int64(n))
	}
	if s.Stale {
		o.value("stale", []byte("true"))
	}
	o.text("error", s.LastError)
	return o.end()
}

func catalog(kind registry.Kind, member string) func(*Tools, context.Context, arguments) ([]byte, error) {
	return func(t *Tools, ctx context.Context, a arguments) ([]byte, error) {
		if a.text(mimeType) != "" {
			return find(kind, member)(t, ctx, a)
		}
		s, l := t.o.Registry.ViewFor(ctx), cardList{member: member, first: a.number(offset)}
		entries, most := s.AllFrom(kind, l.first), a.numbers["limit"]
		l.total = s.Count(kind)
		if server := a.text(serverID); server != "" {
			entries, l.total = s.ServerFrom(server, kind, l.first), s.ServerCount(server, kind)
		}
		for e := range entries {
			if len(l.cards) == most {
				break
			}
			o := t.card(e)
			l.cards = append(l.cards, o.end())
		}
		return structuredResult(l.end(t.starting(ctx))), nil
	}
}

func describe(resolve func(*registry.Snapshot, string) (registry.Target, error)) func(*Tools, context.Context, arguments) ([]byte, error) {
	return func(t *Tools, ctx context.Context, a arguments) ([]byte, error) {
		found, err := resolve(t.o.Registry.ViewFor(ctx), a.text(name))
		if err != nil {
			return nil, err
		}
		out := found.Entry.JSON()
		if schema := t.outputs[found.Name]; schema != "" && found.Server == registry.Local {
			out = rawjson.SetMember(out, "outputSchema", []byte(schema))
		}
		out = rawjson.SetMember(out, "serverId", rawjson.Quote(found.Server))
		if why := t.approvalReason(found.Server, found.Name); why != "" && found.Entry.Kind == registry.Tool {
			out = rawjson.SetMember(out, "awaitsApproval", rawjson.Quote(why))
		}
		return structuredResult(rawjson.SetMember(out, "originalName", rawjson.Quote(found.Name))), nil
	}
}

func (t *Tools) describeResource(ctx context.Context, a arguments) ([]byte, error) {
	seen, asked := t.o.Registry.ViewFor(ctx), a.text(uri)
	found, err := seen.ResolveTemplate(asked) // or a resource
	if err != nil {
		return nil, err
	}
	if found.Entry == nil && (!t.o.Permits(found) || t.inHiddenSkill(seen, found)) {
		return nil, seen.UnknownResource(asked)
	}
	out := []byte("{}")
	switch {
	case found.Entry != nil:
		out = found.Entry.JSON()
	case found.Template != nil:
		out = rawjson.SetMember(found.Template.JSON(), "uri", rawjson.Quote(found.Listed))
	default: // a link from the server
		out = rawjson.SetMember(out, "uri", rawjson.Quote(found.Listed))
	}
	out = rawjson.SetMember(out, "serverId", rawjson.Quote(found.Server))
	out = rawjson.SetMember(out, "originalUri", rawjson.Quote(found.Name))
	if e := found.Entry; e != nil && e.Flat != "" {
		out = rawjson.SetMember(out, "flatId", rawjson.Quote(e.Flat))
	}
	return structuredResult(out), nil
}

// maxFolders is the maximum number of parent folders searched for a file's skill.
const maxFolders = 64

func (t *Tools) inHiddenSkill(seen *registry.Snapshot, found registry.Target) bool {
	whole, folder := t.o.Registry.Load(), found.Name
	for range maxFolders {
		file := folder + "/SKILL.md"
		if whole.ByServerName(found.Server, registry.Skill, file) != nil && seen.ByServerName(found.Server, registry.Skill, file) == nil {
			return true
		}
		at := strings.LastIndexByte(folder, '/')
		if at <= 0 {
			break
		}
		folder = folder[:at]
	}
	return false
}

// maxSimilar is the maximum number of resources found by the words of a wrong URI.
const maxSimilar = 100

// similarResources returns the resources that a wrong URI may mean, or none if the URI is
// too long.
func (t *Tools) similarResources(ctx context.Context, uri string) []*registry.Entry {
	found, err := t.index.Search(ctx, search.Query{Text: uri, Kinds: []registry.Kind{registry.Resource}, Limit: maxSimilar, View: t.o.Registry.ViewFor(ctx)})
	if err != nil {
		return nil
	}
	entries := make([]*registry.Entry, len(found.Hits))
	for i, h := range found.Hits {
		entries[i] = h.Entry
	}
	return entries
}

func (t *Tools) notFound(ctx context.Context, e *registry.NotFoundError) string {
	text, see := e.Error(), "search_resources" // errors of resources begin with a code
	near := e.Nearest
	switch e.Kind {
	case registry.Tool:
		text, see = "TOOL_NOT_FOUND: "+text, "search_tools"
	case registry.Prompt:
		text, see = "PROMPT_NOT_FOUND: "+text, "search_prompts"
	default:
		s := t.o.Registry.ViewFor(ctx)
		near = append(s.Nearest(registry.Resource, e.Owner, e.Name, t.similarResources(ctx, e.Name)...), s.Nearest(registry.Template, e.Owner, e.Name)...)
		if len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		}
	}
	if len(near) == 0 {
		text += "; use " + see + " to find an existing one"
	}
	if pending := t.starting(ctx); len(pending) > 0 {
		text += " (still starting: " + strings.Join(pending, ", ") + ")"
	}
	return text
}
