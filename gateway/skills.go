package gateway

import (
	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// refreshSkills refetches possibly outdated skills, since there is no list_changed. It
// returns cache hints.
func refreshSkills(g *Gateway, r *request, first bool) (hints []byte, err error) {
	ctx, cancel := r.listContext()
	defer cancel()
	hints, served := g.Servers.RefreshSkills(ctx, r.view(), first)
	if !served && r.view().Count(registry.Skill) == 0 {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s; no server has skills", r.Method())
	}
	return hints, nil
}

func forwardSkill(g *Gateway, r *request) {
	t, edits, ok := g.route(r, "uri", (*registry.Snapshot).ResolveSkill)
	if !ok {
		return
	}
	// A hidden skill also hides its folder.
	b, file := g.Servers.Get(t.Server), t.Name+"/SKILL.md"
	if b != nil && !b.Permits(registry.Skill, file) || !r.view().IsVisible(t.Server, registry.Skill, file) {
		r.fail(view.ForbiddenError(t, r.name))
		return
	}
	g.forward(r, t, edits)
}

// skillError sets the code that the extension requires.
func skillError(method string, e *jsonrpc.Error) *jsonrpc.Error {
	if isSkillsMethod(method) && e.Code == downstream.CodeResourceNotFound {
		e.Code = jsonrpc.CodeInvalidParams
	}
	return e
}

// Methods that name a skill or a folder.
const (
	MethodSkillsGet       = "skills/get"
	MethodSkillsDirectory = "resources/directory/read"
)

// isSkillsMethod reports whether a method names a skill or a folder.
func isSkillsMethod(method string) bool {
	return method == MethodSkillsGet || method == MethodSkillsDirectory
}

// filterSkills filters a reply to a skills method. permits reports whether clients may
// see a URI.
func filterSkills(method string, reply jsonrpc.Reply, permits func(uri string) bool) (jsonrpc.Reply, error) {
	if method == MethodSkillsGet {
		return reply, registry.CheckSkill(rawjson.Get(reply.Result, "skill"))
	}
	array := rawjson.Get(reply.Result, "resources")
	visible, all := []byte{'['}, true
	for child := range rawjson.Elements(array) {
		uri := rawjson.GetString(child, "uri")
		if len(uri) > registry.MaxURI || !permits(uri) || !permits(uri+"/SKILL.md") {
			all = false
			continue
		}
		if len(visible) > 1 {
			visible = append(visible, ',')
		}
		visible = append(visible, child...)
	}
	if !all {
		reply.Result = rawjson.Splice(reply.Result, rawjson.ReplaceEdit(reply.Result, array, append(visible, ']')))
		reply.Shape = nil // its offsets are invalid now
	}
	return reply, nil
}
