package gateway

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/pins"
	"goblin/registry"
)

// pin compares the tools that a server lists with those that were approved, tells
// of what differs, and says of each whether clients get it.
func (g *Gateway) pin(server string, tools []registry.Definition) []bool {
	offered := make([]pins.Tool, len(tools))
	for i, t := range tools {
		offered[i] = pins.Tool{Name: t.Name, Definition: t.JSON}
	}
	v, err := g.o.Pins.Check(server, offered, !g.withholds())
	if err != nil {
		g.log.Error("Pinned tools not read or saved", "server", server, "withheld", g.withholds(), "err", err)
	}
	g.showPinned(server, v.Changes)
	if v.Unwatched > 0 {
		g.log.Warn("Tools beyond the bound are not watched for changes", "server", server, "count", v.Unwatched, "withheld", g.withholds())
	}
	if !g.withholds() {
		return slices.Repeat([]bool{true}, len(tools))
	}
	if err != nil {
		g.pinAgain(server)
	}
	return v.Approved
}

// pinRetry is how long what could not be kept is withheld before that is tried
// again.
const pinRetry = 30 * time.Second

// pinAgain has a server list its tools anew after a while.
func (g *Gateway) pinAgain(server string) {
	g.mu.RLock()
	b, run := g.servers[server], g.run
	g.mu.RUnlock()
	if b == nil || run == nil || !b.repins.CompareAndSwap(false, true) {
		return
	}
	g.work.Go(func() {
		wait := time.NewTimer(pinRetry)
		defer wait.Stop()
		select {
		case <-wait.C:
			b.repins.Store(false) // or the next failure would find it
			b.RelistTools()
		case <-run.Done():
		case <-b.done:
		}
	})
}

// PinsChanged takes over what other processes approved: the file of the pinned
// tools was written.
func (g *Gateway) PinsChanged() {
	for _, b := range g.backends() {
		before := g.reg.Pinned(b.Name())
		changes, err := g.o.Pins.Changes(b.Name())
		if err != nil {
			g.log.Error("Pinned tools not read", "err", err)
			return // it is one file
		}
		g.showPinned(b.Name(), changes)
		if g.withholds() && !slices.EqualFunc(before, g.reg.Pinned(b.Name()), func(a, b registry.PinnedTool) bool { return a.Name == b.Name }) {
			b.RelistTools()
		}
	}
}

// withholds reports whether tools that were not approved are kept from clients.
func (g *Gateway) withholds() bool { return g.o.Config.Gateway.Pin == config.PinStrict }

// showPinned writes what awaits approval where screens see it, and logs what
// was not known before.
func (g *Gateway) showPinned(server string, changes []pins.Change) {
	rows := make([]registry.PinnedTool, len(changes))
	for i, c := range changes {
		rows[i] = registry.PinnedTool{
			Server: server, Name: c.Name, New: c.New, Withheld: g.withholds(), Approved: c.Approved, Offered: c.Offered,
			Hash: c.Hash,
		}
		if old := g.reg.PinnedTool(server, c.Name); old != nil && old.Hash == c.Hash {
			continue
		}
		args := []any{"server", server, "tool", c.Name, "withheld", g.withholds(), "approve", approval(server, c.Name)}
		if c.New {
			g.log.Warn("Tool is new on a server that was known without it", args...)
		} else {
			g.log.Warn("Tool changed since it was approved", args...)
		}
	}
	g.reg.SetPinned(server, rows)
}

// withheld says why clients do not get a tool.
func withheld(p *registry.PinnedTool) string {
	why := fmt.Sprintf("server %q changed it, and it", p.Server)
	if p.New {
		why = fmt.Sprintf("it is new on server %q and", p.Server)
	}
	return fmt.Sprintf("%s is withheld until %q", why, approval(p.Server, p.Name))
}

// approval is the command that approves a tool.
func approval(server, tool string) string {
	if strings.HasPrefix(tool, "-") || strings.ContainsFunc(tool, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`'"\$&;|<>*?()`, r) || r > '~' }) {
		return "goblin approve " + server
	}
	return "goblin approve " + server + " " + tool
}

// ApproveTools takes tools of a server as they are now for good: all that await
// it when none is named. seen has the hashes of those that the user saw, by name,
// nil if that does not matter: others are not taken, and nothing is approved if
// one is another by now. It returns the names of those that awaited it. The error
// says which name does not fit.
func (g *Gateway) ApproveTools(server string, seen map[string]string, names ...string) ([]string, error) {
	b := g.server(server)
	if b == nil {
		return nil, &UnknownServerError{Name: server, Known: g.ServerNames()}
	}
	if g.o.Pins == nil {
		return nil, fmt.Errorf("tools are not pinned (gateway.pin)")
	}
	var awaiting []string
	for _, p := range g.reg.Pinned(server) {
		awaiting = append(awaiting, p.Name)
	}
	if len(names) == 0 {
		names = slices.DeleteFunc(slices.Clone(awaiting), func(name string) bool { return seen != nil && seen[name] == "" })
	}
	if len(names) == 0 {
		return nil, nil
	}
	unknown, err := g.o.Pins.Approve(server, seen, names...)
	if len(unknown) > 0 {
		hint := "; none of its tools await approval"
		if len(awaiting) > 0 {
			hint = "; those that await approval: " + strings.Join(awaiting, ", ")
		}
		return nil, fmt.Errorf("server %q does not offer %s%s", server, strings.Join(unknown, ", "), hint)
	}
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(awaiting, name) })
	if len(names) == 0 {
		return nil, nil
	}
	g.log.Info("Tools approved", "server", server, "tools", names)
	changes, err := g.o.Pins.Changes(server)
	if err != nil {
		return nil, err
	}
	g.showPinned(server, changes)
	if g.withholds() {
		b.RelistTools()
	}
	return names, nil
}
