package intercept

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"goblin/gateway/state"
	"goblin/registry"
	"goblin/registry/rule"
)

// Approvals returns the remembered approvals: the saved ones, then those of sessions.
func (g *Gate) Approvals() []registry.CallApproval {
	_ = g.o.Approvals.Refresh() // RefreshApprovals reports it
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Concat(g.o.Approvals.All(), g.approvals)
}

// RefreshApprovals reads the changes of other processes. The error names a damaged file;
// no saved approval applies then.
func (g *Gate) RefreshApprovals() error {
	err := g.o.Approvals.Refresh()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.publishLocked()
	return err
}

// Revoke removes a remembered approval.
func (g *Gate) Revoke(id string) error {
	g.mu.Lock()
	n := len(g.approvals)
	g.approvals = slices.DeleteFunc(g.approvals, func(a registry.CallApproval) bool { return a.ID == id })
	found := len(g.approvals) < n
	g.mu.Unlock()
	var err error
	if !found {
		found, err = g.o.Approvals.Remove(id)
	}
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("no approval %q", id)
	}
	return g.RefreshApprovals()
}

// remember stores the approval of a stopped request. It belongs to the rule's text, the
// client and the target.
func (g *Gate) remember(s *stop, how string) error {
	a := registry.CallApproval{
		When: s.When, Client: s.Client, Server: s.Server, Kind: s.kind, Name: s.target.Name,
		Since: time.Now().UTC().Truncate(time.Second),
	}
	switch {
	case a.Kind == "" || a.Name == "":
		return errors.New("only calls of tools, prompts and resources can be remembered")
	case how != registry.RememberTool && how != registry.RememberSession && how != registry.RememberDefinition:
		return fmt.Errorf("cannot remember %q; use tool, session or definition", how)
	case how == registry.RememberSession && !s.hasSession:
		return errors.New("this client has no session; choose the tool or its definition")
	case how != registry.RememberSession && a.Client == "":
		return errors.New("this client has no name; approve it for its session")
	}
	if how == registry.RememberDefinition {
		if s.target.Entry == nil {
			return errors.New("there is no definition that could change; choose the session or all calls")
		}
		if s.isUnlisted {
			return errors.New("the server lists another definition for this client; choose the session or all calls")
		}
		a.Definition = state.Digest(s.target.Entry.Own())
	}
	if how != registry.RememberSession {
		return g.o.Approvals.Add(a)
	}
	a.Session = s.Session
	a.ID = state.CallApprovalID(&a)
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.ContainsFunc(g.approvals, func(b registry.CallApproval) bool { return a.ID == b.ID }) {
		return nil
	}
	if len(g.approvals) >= state.MaxCallApprovals {
		return fmt.Errorf("there are %d approvals of sessions already; revoke one first", len(g.approvals))
	}
	g.approvals = append(g.approvals, a)
	return nil
}

// approval describes the approval that lets a request pass a rule, or returns "".
func (g *Gate) approval(x *Exchange, e *entry) (how string) {
	kind := approvable[x.Request.Method()]
	if e.On != rule.OnRequest || kind == "" || x.Target.Name == "" {
		return ""
	}
	if err := g.o.Approvals.Refresh(); err != nil {
		g.o.Logger.Error("remembered approvals do not apply", "err", err)
	}
	g.mu.Lock()
	all := slices.Concat(g.o.Approvals.All(), g.approvals)
	g.mu.Unlock()
	for i := range all {
		a := &all[i]
		if a.When != e.When || a.Client != x.Request.ClientName() || a.Server != x.Server || a.Kind != kind || a.Name != x.Target.Name {
			continue
		}
		switch {
		case a.Session != "":
			if a.Session == x.Request.Session().ID() {
				return "for this session"
			}
		case a.Definition == "":
			return "earlier"
		case x.Target.Entry != nil && x.refresh() == nil && x.definition() == a.Definition:
			return "until the definition changes"
		}
	}
	return ""
}
