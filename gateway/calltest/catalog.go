package calltest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"goblin/gateway/daemon"
	"goblin/registry"
	"goblin/registry/names"
	"goblin/registry/rawjson"
	"goblin/registry/savedcall"
	"goblin/registry/suggest"
)

// Catalog finds the targets of calls in the lists of a gateway.
type Catalog struct {
	List func(ctx context.Context, q daemon.ListQuery) ([]daemon.Entry, error)
	// Status describes all servers; nil: the gateway's errors explain missing ones.
	Status func(ctx context.Context) (daemon.Status, error)
	// Server is the only server, and calls have its own names. "" means listed names.
	Server string
}

var lists = map[savedcall.Kind]string{savedcall.KindCall: "tools", savedcall.KindRead: "resources", savedcall.KindPrompt: "prompts"}

// Find implements [Runner.Find].
func (c *Catalog) Find(ctx context.Context, kind savedcall.Kind, name string) (Target, error) {
	entries, err := c.List(ctx, daemon.ListQuery{Kind: lists[kind], Name: name, WithOwn: true})
	if err != nil {
		return Target{}, &UnreachableError{err}
	}
	var found []*daemon.Entry
	best := 1
	for i := range entries {
		e := &entries[i]
		rank := e.MatchName(name)
		if c.Server != "" { // another entry may be listed under that name
			rank = 0
			if e.OriginalLabel() == name {
				rank = 1
			}
		}
		if rank > best {
			best, found = rank, nil
		}
		if rank == best {
			found = append(found, e)
		}
	}
	if len(found) == 1 {
		e := found[0]
		return Target{Name: e.ListedName(), Server: e.Server, Definition: ownDefinition(e), IsOwn: e.OriginalLabel() == name && e.ListedName() != name}, nil
	}
	t := Target{Name: name, Server: c.Server, IsOwn: c.Server != ""}
	if err := c.checkServer(ctx, name, len(found)); err != nil {
		return Target{}, err
	}
	server, _, ours := names.NormalizeAddress(name)
	switch {
	case kind == savedcall.KindRead && c.Server != "":
		t.Name = c.prefix() + name // a template's, or not listed
	case kind == savedcall.KindRead && ours:
		t.Server = server
	case c.Server != "":
		return Target{}, c.unknown(ctx, kind, name)
	}
	return t, nil
}

// checkServer returns an error if the server that a name suggests is not available.
func (c *Catalog) checkServer(ctx context.Context, name string, found int) error {
	if found > 0 || c.Status == nil {
		return nil // several entries
	}
	status, err := c.Status(ctx)
	if err != nil {
		return &UnreachableError{err}
	}
	for i := range status.Servers {
		s := &status.Servers[i]
		if s.Name != c.Server && !suggests(name, s.Name) {
			continue
		}
		switch registry.State(s.State) {
		case registry.StateReady:
			switch {
			case s.Error != "": // a list failed
				return &UnreachableError{fmt.Errorf("server %q: %s", s.Name, s.Error)}
			case !s.Listed:
				return &UnreachableError{fmt.Errorf("server %q: is ready, but did not answer its list requests yet", s.Name)}
			}
			continue
		case registry.StateSleeping, "":
			continue
		}
		reason := registry.State(s.State).Label()
		if s.Error != "" {
			reason += ": " + s.Error
		}
		return &UnreachableError{fmt.Errorf("server %q: %s", s.Name, reason)}
	}
	return nil
}

// suggests reports whether a listed name may belong to a server.
func suggests(name, server string) bool {
	for _, prefix := range []string{strings.ReplaceAll(server, ".", "_") + "_", server + "/", "mcp://" + server + "/"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// unknown returns the error for a name that the only server does not list. The gateway's
// error has listed names.
func (c *Catalog) unknown(ctx context.Context, kind savedcall.Kind, name string) error {
	entries, err := c.List(ctx, daemon.ListQuery{Kind: lists[kind]})
	if err != nil {
		return &UnreachableError{err}
	}
	near := suggest.New(name)
	for i := range entries {
		near.Add(entries[i].OriginalName, entries[i].OriginalName)
	}
	noun := "tool"
	if kind == savedcall.KindPrompt {
		noun = "prompt"
	}
	return fmt.Errorf("unknown %s %q%s", noun, name, suggest.DidYouMean(near.Best()...))
}

// ownDefinition returns a definition as the server sent it. An older daemon only has the
// listed one.
func ownDefinition(e *daemon.Entry) json.RawMessage {
	if e.Own == nil && e.OriginalName != "" {
		return rawjson.SetMember(cmpBytes(e.Overridden, e.Definition), "name", rawjson.Quote(e.OriginalName))
	}
	return cmpBytes(e.Own, e.Definition)
}

func cmpBytes(a, b json.RawMessage) json.RawMessage {
	if a != nil {
		return a
	}
	return b
}

func (c *Catalog) prefix() string { return "mcp://" + c.Server + "/" }
