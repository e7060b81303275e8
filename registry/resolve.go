package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"goblin/registry/names"
)

const (
	// maxCandidates is the maximum number of names in an [AmbiguousError].
	maxCandidates = 20
	// maxSteps limits the matching of one URI with all templates. It takes about 1 ms, or
	// some thousand templates with one prefix.
	maxSteps = 1 << 20
)

type resolution struct {
	s       *Snapshot
	kind    Kind
	name    string // as requested
	targets []Target
	single  Target // targets[0]; saves an allocation
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

// result returns an error for several targets. ok is false if there is none.
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

// resultAfterMatch returns an error if the budget is spent, because another template
// might match.
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

func (t *Target) uniqueName() string {
	raw := t.Entry == nil || t.Entry.Kind == Template // flat mode lists raw templates
	if raw && t.Server != Local {
		return names.NamespacedURI(t.Server, t.Name)
	}
	return t.Listed
}

// LookupListed finds the entry of a server that is listed under exactly this name, with a
// few table lookups.
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

func (s *Snapshot) listedTool(h *resolution, hash uint64) {
	if len(h.name) > s.dir.most {
		return
	}
	head := h.name[:min(len(h.name), s.dir.longestHead)]
	for end := 1; end <= len(head); end++ {
		if at := strings.IndexByte(head[end-1:], '_'); at >= 0 {
			end += at
		} else if end = len(head); end < names.PrefixLen(s.dir.most) {
			return // uncut prefixes end in an underscore
		}
		for _, n := range s.dir.byHead[head[:end]] {
			h.entry(s.tables[n].runs[Tool].listed(hash, h.name))
		}
	}
}

func nameTooLong(k Kind, name string, most int) error {
	return &NotFoundError{Kind: k, Name: clip(name), Reason: fmt.Sprintf("longer than %d bytes", most)}
}

// ResolveTool finds a tool by its listed name, as server/tool, or by its bare name if
// that is unique. It also accepts the listed name under another length limit. Names of
// Goblin's own tools never resolve to a server; names with a server's prefix only to that
// server. Errors: *[NotFoundError], *[AmbiguousError].
func (r *Registry) ResolveTool(name string) (Target, error) { return r.Load().ResolveTool(name) }

// ResolveTool is [Registry.ResolveTool] for this catalog.
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
	// The listed name of another tool is not a bare name.
	if h.n == 0 && (t == nil || !(t.rule != nil && t.rule.Confusable(name)) && s.UnapprovedTool(name) == nil) {
		s.addUnprefixed(&h, t, hash)
	}
	return s.resolveOwned(&h, t)
}

// owner is the server whose prefix the name has, or nil.
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

func (s *Snapshot) addUnprefixed(h *resolution, only *table, hash uint64) {
	for _, t := range s.tablesOf(only) {
		h.entry(t.runs[h.kind].byClientName(hash, h.name))
	}
}

func (s *Snapshot) tablesOf(only *table) []*table {
	switch {
	case only == nil:
		return s.tables[1:]
	case only.rule == nil: // Goblin's own are all listed
		return nil
	}
	return []*table{only}
}

// ResolvePrompt finds a prompt as server/prompt, as server_prompt, or by its bare name if
// exactly one server has it. Names with a server's prefix resolve only to that server.
// Errors as [Registry.ResolveTool].
func (r *Registry) ResolvePrompt(name string) (Target, error) { return r.Load().ResolvePrompt(name) }

// ResolvePrompt is [Registry.ResolvePrompt] for this catalog.
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

// ResolveResource finds the resource that a client means by a URI. Goblin's own come
// first.
//
// mcp://server/…, ui://server/… and skill://server/… of a known server use only that
// server's tables. They are tried as the exact, normalized and percent-decoded URI, as a
// template expansion and as a learned link. Any URI resolves if unlisted ones are
// allowed.
//
// Other URIs are tried as a flat id, and as one server's raw URI, template expansion and
// learned link. A URI with the prefix of a server's flat ids resolves only to that
// server. Errors as [Registry.ResolveTool].
func (r *Registry) ResolveResource(uri string) (Target, error) { return r.Load().ResolveResource(uri) }

// ResolveResource is [Registry.ResolveResource] for this catalog.
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

// UnknownResource returns the error of [Snapshot.ResolveResource] for an unknown URI, to
// hide a resource from a client.
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

// resolveRawURI finds a URI without a namespace. A non-nil owner has the prefix of the
// URI and is the only server searched. key is the URI's flat form, or "".
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

func (s *Snapshot) resolveUnlisted(t *table, uri string, template *Entry) Target {
	return Target{Server: t.name, Name: uri, Listed: s.listedURI(t, uri), Template: template}
}

// inServerOrBare is inServer for a URI that may also be the server's own as a whole,
// which has lower precedence.
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

// inServer finds rest, the part of the requested URI after the server's name.
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

func (s *Snapshot) addUnlisted(h *resolution, t *table, key, rest, decoded string) (Target, bool, error) {
	templates := t.runs[Template]
	// Links come before templates: the server must get exactly the bytes that it sent,
	// without changes by clients.
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
		uri = decoded // the scheme was percent-encoded, too
	}
	if e := templates.template(uri, &h.budget); e != nil || t.open || t.mayHave(uri) {
		h.add(s.resolveUnlisted(t, uri, e))
		return h.result()
	}
	return h.resultAfterMatch()
}

func (t *table) hasLink(uri string) bool {
	if run := t.runs[Tool]; run != nil {
		if _, ok := run.links[uri]; ok {
			return true
		}
	}
	return t.links.Has(uri)
}

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

// ResolveTemplate finds the template or resource of a completion reference: a listed
// template, a raw template of exactly one server, or a URI for
// [Registry.ResolveResource].
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
