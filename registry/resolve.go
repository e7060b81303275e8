package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"goblin/registry/names"
)

const (
	// maxCandidates bounds what an [AmbiguousError] lists.
	maxCandidates = 20
	// maxSteps bounds the matching of one URI with the templates of all servers: a
	// millisecond, or some thousand templates with one prefix.
	maxSteps = 1 << 20
)

// resolution collects the targets that a name can mean.
type resolution struct {
	s       *Snapshot
	kind    Kind
	name    string // as requested
	targets []Target
	single  Target // targets[0], without an allocation
	n       int
	budget  names.MatchBudget // for templates
}

func (h *resolution) add(t Target) {
	if t.Entry == nil && !h.s.IsVisible(t.Server, Resource, t.Name) {
		return
	}
	switch h.n++; {
	case h.n == 1:
		h.single = t
	case h.n == 2:
		h.targets = append(h.targets, h.single, t)
	case h.n <= maxCandidates:
		h.targets = append(h.targets, t)
	}
}

func (h *resolution) entry(e *Entry) {
	if e != nil {
		h.add(h.s.target(e))
	}
}

// result returns the answer once it is known: exactly one target, or too many.
func (h *resolution) result() (t Target, ok bool, err error) {
	switch h.n {
	case 0:
		return Target{}, false, nil
	case 1:
		return h.single, true, nil
	}
	e := &AmbiguousError{Kind: h.kind, Name: h.name}
	for _, t := range h.targets {
		if c := t.uniqueName(); !slices.Contains(e.Candidates, c) {
			e.Candidates = append(e.Candidates, c)
		}
	}
	return Target{}, true, e
}

// resultAfterMatch is result after templates were matched. It returns an error if the budget is
// spent, because another template might match.
func (h *resolution) resultAfterMatch() (t Target, ok bool, err error) {
	if h.budget.IsSpent() {
		return Target{}, true, &NotFoundError{Kind: h.kind, Name: h.name, Reason: ReasonTemplates}
	}
	return h.result()
}

func (s *Snapshot) target(e *Entry) Target {
	t := Target{Server: e.Server, Name: e.Name, Listed: e.Listed, Entry: e}
	if e.Server == Local {
		t.Local = &LocalHandler{Resource: s.handlers[e.Name], Tool: s.tools[e.Name]}
	}
	return t
}

// uniqueName returns a name that only this target has.
func (t *Target) uniqueName() string {
	raw := t.Entry == nil || t.Entry.Kind == Template // flat mode lists raw templates
	if raw && t.Server != Local {
		return names.NamespacedURI(t.Server, t.Name)
	}
	return t.Listed
}

// LookupListed finds what stands in the lists of servers under exactly this name, with
// no more work than looks into a few tables.
func (s *Snapshot) LookupListed(k Kind, name string) (Target, bool) {
	h := resolution{s: s, kind: k, name: name}
	switch k {
	case Tool:
		s.listedTool(&h, hashKey(name))
	case Prompt:
		if t, rest, named := s.owner(Prompt, name); named {
			h.entry(t.runs[Prompt].byClientName(hashKey(rest), rest))
		}
	case Resource:
		if key, flat := names.FlatKey(name); s.flat && flat {
			s.flatEntries(&h, key, nil)
		} else if server, rest, ours := names.SplitURI(name); ours {
			if t := s.table(server); t != nil {
				h.entry(t.runs[Resource].name(hashKey(rest), rest))
			}
		}
	}
	return h.single, h.n == 1 && h.single.Listed == name
}

// listedTool adds the tools of servers that are listed under h.name.
func (s *Snapshot) listedTool(h *resolution, hash uint64) {
	if len(h.name) > s.dir.most {
		return
	}
	head := h.name[:min(len(h.name), s.dir.longestHead)]
	for end := 1; end <= len(head); end++ {
		if at := strings.IndexByte(head[end-1:], '_'); at >= 0 {
			end += at
		} else if end = len(head); end < names.PrefixLen(s.dir.most) {
			return // heads that are not cut end in an underscore
		}
		for _, n := range s.dir.byHead[head[:end]] {
			h.entry(s.tables[n].runs[Tool].listed(hash, h.name))
		}
	}
}

// nameTooLong returns the error for a name that is too long for any entry.
func nameTooLong(k Kind, name string, most int) error {
	return &NotFoundError{Kind: k, Name: clip(name), Reason: fmt.Sprintf("it is longer than %d bytes", most)}
}

// ResolveTool finds a tool by its listed name, as server/tool, by the name that it
// would be listed under were names longer or shorter, or by its bare name if
// exactly one server owns it. Names of Goblin's own tools are no
// server's, and those below a server's prefix are that server's only. Errors:
// *[NotFoundError], *[AmbiguousError].
func (r *Registry) ResolveTool(name string) (Target, error) { return r.Load().ResolveTool(name) }

// ResolveTool is [Registry.ResolveTool] in this catalog.
func (s *Snapshot) ResolveTool(name string) (Target, error) {
	if len(name) > MaxName {
		return Target{}, nameTooLong(Tool, name, MaxName)
	}
	hash := hashKey(name)
	for _, find := range []func(*run, uint64, string) *Entry{(*run).listed, (*run).name} {
		if e := find(s.tables[0].runs[Tool], hash, name); e != nil {
			return s.target(e), nil
		}
	}
	h := resolution{s: s, kind: Tool, name: name}
	s.listedTool(&h, hash)
	if t, ok, err := h.result(); ok {
		return t, err
	}
	if s.ownTool(name) {
		return Target{}, &NotFoundError{Kind: Tool, Name: name, Owner: Local, Reason: "unknown tool"}
	}
	t, rest, named := s.owner(Tool, name)
	if named {
		h.entry(t.runs[Tool].byClientName(hashKey(rest), rest))
	}
	if h.n == 0 {
		s.spelledTool(&h)
	}
	// What another tool would be listed as is not a bare name.
	if h.n == 0 && (t == nil || !(t.rule != nil && t.rule.Confusable(name)) && s.UnapprovedTool(name) == nil) {
		s.addUnprefixed(&h, t, hash)
	}
	return s.resolveOwned(&h, t)
}

// resolveOwned returns the target or the error for a tool or prompt name with the prefix of owner.
func (s *Snapshot) resolveOwned(h *resolution, owner *table) (Target, error) {
	if t, ok, err := h.result(); ok {
		return t, err
	}
	e := &NotFoundError{Kind: h.kind, Name: h.name, Reason: "unknown " + h.kind.String()}
	if owner != nil {
		e.Owner = owner.name
	}
	e.Nearest = s.Nearest(h.kind, e.Owner, h.name)
	return Target{}, e
}

// addUnprefixed adds the entries that have the bare name or raw URI h.name, of all servers or of
// one.
func (s *Snapshot) addUnprefixed(h *resolution, only *table, hash uint64) {
	for _, t := range s.tablesOf(only) {
		h.entry(t.runs[h.kind].byClientName(hash, h.name))
	}
}

// tablesOf returns the tables of all servers, or of one.
func (s *Snapshot) tablesOf(only *table) []*table {
	switch {
	case only == nil:
		return s.tables[1:]
	case only.rule == nil: // Goblin has nothing but what it lists
		return nil
	}
	return []*table{only}
}

// ResolvePrompt finds a prompt as server/prompt, as server_prompt, or by its
// bare name if exactly one server owns it. Names below a server's prefix are
// that server's only. Errors as [Registry.ResolveTool].
func (r *Registry) ResolvePrompt(name string) (Target, error) { return r.Load().ResolvePrompt(name) }

// ResolvePrompt is [Registry.ResolvePrompt] in this catalog.
func (s *Snapshot) ResolvePrompt(name string) (Target, error) {
	if len(name) > MaxName {
		return Target{}, nameTooLong(Prompt, name, MaxName)
	}
	h := resolution{s: s, kind: Prompt, name: name}
	t, rest, named := s.owner(Prompt, name)
	if t != nil && !named {
		rest, named = strings.CutPrefix(name, t.name+"_")
	}
	if named {
		h.entry(t.runs[Prompt].byClientName(hashKey(rest), rest))
	}
	if h.n == 0 {
		s.addUnprefixed(&h, t, hashKey(name))
	}
	return s.resolveOwned(&h, t)
}

// ResolveResource finds what a client means by a URI. Goblin's own come
// first. mcp://server/…, ui://server/… and skill://server/… of a known server are
// looked up in that server's tables only: the exact URI, the form that URL parsers make of it, the
// percent-decoded one, templates, learned links, and anything if the server
// is open. Everything else is tried as a flat id, as the raw URI of exactly
// one server, as an expansion of templates of exactly one server, and as a
// learned link of exactly one; of what begins like the flat ids of a server,
// only of that one. Errors as [Registry.ResolveTool].
func (r *Registry) ResolveResource(uri string) (Target, error) { return r.Load().ResolveResource(uri) }

// ResolveResource is [Registry.ResolveResource] in this catalog.
func (s *Snapshot) ResolveResource(uri string) (Target, error) {
	if len(uri) > MaxURI {
		return Target{}, nameTooLong(Resource, uri, MaxURI)
	}
	hash := hashKey(uri)
	if e := s.tables[0].runs[Resource].name(hash, uri); e != nil {
		return s.target(e), nil
	}
	t, server, rest, _, bare := s.located(uri)
	if t != nil {
		if rest == "" {
			return Target{}, &NotFoundError{Kind: Resource, Name: uri, Owner: server, Reason: ReasonMalformed}
		}
		if bare {
			return s.inServerOrBare(t, uri, rest, hash)
		}
		return s.inServer(t, uri, rest)
	}
	if _, own := names.CutScheme(uri, Local+":"); own {
		return Target{}, &NotFoundError{Kind: Resource, Name: uri, Owner: Local, Reason: ReasonNotFound}
	}
	h := resolution{s: s, kind: Resource, name: uri, budget: maxSteps}
	owner := s.flatOwner(uri)
	key, isFlat := names.FlatKey(uri)
	if isFlat {
		s.flatEntries(&h, key, owner)
		if h.n == 0 {
			s.flatLinks(&h, key, owner)
		}
		if t, ok, err := h.result(); ok {
			return t, err
		}
	}
	if owner == nil || owner.rule == nil || !owner.rule.FlatConfusable(uri) {
		if t, ok, err := s.resolveRawURI(&h, owner, hash, key); ok {
			return t, err
		}
	}
	return Target{}, s.UnknownResource(uri)
}

// UnknownResource returns the error of [Snapshot.ResolveResource] for a URI of nothing: for
// callers that find something which the client is not to know.
func (s *Snapshot) UnknownResource(uri string) error {
	t, server, rest, ours, _ := s.located(uri)
	if t != nil {
		return &NotFoundError{Kind: Resource, Name: uri, Owner: t.name, Reason: ReasonNotFound}
	}
	err := unknownResource(uri, server, rest, ours)
	if owner := s.flatOwner(uri); owner != nil {
		err.Owner = owner.name
	}
	return err
}

// resolveRawURI finds a URI without a namespace, at owner only if it has the prefix of owner's flat
// ids. key is its flat form, "" if it has none.
func (s *Snapshot) resolveRawURI(h *resolution, owner *table, hash uint64, key string) (Target, bool, error) {
	s.addUnprefixed(h, owner, hash)
	if t, ok, err := h.result(); ok {
		return t, ok, err
	}
	if owner != nil && key != "" {
		s.flatExpansions(h, key, owner)
		if t, ok, err := h.resultAfterMatch(); ok {
			return t, ok, err
		}
	}
	for _, t := range s.tablesOf(owner) {
		if e := t.runs[Template].template(h.name, &h.budget); e != nil {
			h.add(s.resolveUnlisted(t, h.name, e))
		}
	}
	if t, ok, err := h.resultAfterMatch(); ok {
		return t, ok, err
	}
	for _, t := range s.tablesOf(owner) {
		if t.hasLink(h.name) || t.inSkill(h.name) {
			h.add(s.resolveUnlisted(t, h.name, nil))
		}
	}
	return h.result()
}

// unknownResource says why a URI, split by [names.SplitURI], is in no table.
func unknownResource(uri, server, rest string, ours bool) *NotFoundError {
	reason := ReasonNotFound
	switch {
	case ours && (server == "" || rest == ""):
		reason = ReasonMalformed
	case ours:
		reason = "Server '" + server + "' not found"
	}
	return &NotFoundError{Kind: Resource, Name: uri, Reason: reason}
}

// resolveUnlisted finds the target of a URI that is not listed itself.
func (s *Snapshot) resolveUnlisted(t *table, uri string, template *Entry) Target {
	return Target{Server: t.name, Name: uri, Listed: s.listedURI(t, uri), Template: template}
}

// inServerOrBare is inServer for a URI that may be the server's own as well as one below
// its name, which goes first.
func (s *Snapshot) inServerOrBare(t *table, uri, rest string, hash uint64) (Target, error) {
	if run := t.runs[Resource]; run.name(hashKey(rest), rest) == nil {
		if e := run.name(hash, uri); e != nil {
			return s.target(e), nil
		}
	}
	target, err := s.inServer(t, uri, rest)
	if _, ok := errors.AsType[*NotFoundError](err); ok {
		if own, err := s.inServer(t, uri, uri); err == nil {
			return own, nil
		}
	}
	return target, err
}

// inServer finds rest, a URI of the server as it was requested below its name.
func (s *Snapshot) inServer(t *table, requested, rest string) (Target, error) {
	run := t.runs[Resource]
	if e := run.name(hashKey(rest), rest); e != nil {
		return s.target(e), nil
	}
	h := resolution{s: s, kind: Resource, name: requested, budget: maxSteps}
	key := names.NormalizeURI(names.NamespacedURI(t.name, rest))
	run.aliases(&h, key)
	if target, ok, err := h.result(); ok {
		return target, err
	}
	decoded := names.UnescapeURI(rest)
	if decoded != rest {
		h.entry(run.name(hashKey(decoded), decoded))
		if target, ok, err := h.result(); ok {
			return target, err
		}
	}
	if t.rule != nil {
		if target, ok, err := s.addUnlisted(&h, t, key, rest, decoded); ok {
			return target, err
		}
	}
	return Target{}, &NotFoundError{Kind: Resource, Name: requested, Owner: t.name, Reason: ReasonNotFound}
}

// addUnlisted adds URIs that a server does not list but knows.
func (s *Snapshot) addUnlisted(h *resolution, t *table, key, rest, decoded string) (Target, bool, error) {
	templates := t.runs[Template]
	// The server must get the very bytes that it gave, not what became of
	// them on the way, so links are asked before templates.
	if t.hasLink(rest) {
		h.add(s.resolveUnlisted(t, rest, templates.template(rest, &h.budget)))
		return h.result()
	}
	links := t.links.Alias(key)
	_, normal, _ := names.SplitURI(key)
	for _, l := range []string{normal, decoded} {
		if len(links) == 0 && l != rest && t.hasLink(l) {
			links = append(links, l)
		}
	}
	for _, l := range links {
		h.add(s.resolveUnlisted(t, l, templates.template(l, &h.budget)))
	}
	if target, ok, err := h.result(); ok {
		return target, true, err
	}
	uri := rest
	if strings.IndexByte(rest, ':') < 0 {
		uri = decoded // no URI yet: its scheme was encoded with the rest
	}
	if e := templates.template(uri, &h.budget); e != nil || t.open || t.mayHave(uri) {
		h.add(s.resolveUnlisted(t, uri, e))
		return h.result()
	}
	return h.resultAfterMatch()
}

// hasLink reports whether the server returned this URI or a definition of its
// tools points to it.
func (t *table) hasLink(uri string) bool {
	if run := t.runs[Tool]; run != nil {
		if _, ok := run.links[uri]; ok {
			return true
		}
	}
	return t.links.Has(uri)
}

// aliases adds the entries with the given alias key.
func (r *run) aliases(h *resolution, key string) {
	if r == nil {
		return
	}
	first, second := r.byNorm.find(r.entries, hashKey(key), key, byNorm)
	h.entry(first)
	h.entry(second)
	if _, rest, ok := names.SplitURI(key); ok && key != h.name {
		h.entry(r.name(hashKey(rest), rest))
	}
}

// ResolveTemplate finds the template or resource that a completion reference
// names: a listed template, its raw form with one owner, or anything that
// [Registry.ResolveResource] takes.
func (s *Snapshot) ResolveTemplate(ref string) (Target, error) {
	if len(ref) > MaxURI {
		return Target{}, nameTooLong(Template, ref, MaxURI)
	}
	h := resolution{s: s, kind: Template, name: ref}
	t, _, rest, _, bare := s.located(ref)
	switch _, own := names.CutScheme(ref, Local+":"); {
	case t != nil:
		run := t.runs[Template]
		if e := run.name(hashKey(rest), rest); e != nil {
			return s.target(e), nil
		}
		run.aliases(&h, names.NormalizeURI(names.NamespacedURI(t.name, rest)))
		if h.n == 0 {
			decoded := names.UnescapeURI(rest)
			h.entry(run.name(hashKey(decoded), decoded))
		}
		if h.n == 0 && bare {
			h.entry(run.name(hashKey(ref), ref))
		}
	case !own:
		s.addUnprefixed(&h, s.flatOwner(ref), hashKey(ref))
	}
	if t, ok, err := h.result(); ok {
		return t, err
	}
	return s.ResolveResource(ref)
}
