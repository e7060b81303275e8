package registry

import (
	"slices"
	"strings"
)

// maxCandidates bounds what an [AmbiguousError] lists.
const maxCandidates = 20

// hits collects what a name can mean.
type hits struct {
	s       *Snapshot
	kind    Kind
	name    string // as requested
	targets []Target
	one     Target // targets[0], without allocating for the usual case
	n       int
}

func (h *hits) add(t Target) {
	switch h.n++; {
	case h.n == 1:
		h.one = t
	case h.n == 2:
		h.targets = append(h.targets, h.one, t)
	case h.n <= maxCandidates:
		h.targets = append(h.targets, t)
	}
}

func (h *hits) entry(e *Entry) {
	if e != nil {
		h.add(h.s.target(e))
	}
}

// done returns the answer once there is one: exactly one hit, or too many.
func (h *hits) done() (t Target, ok bool, err error) {
	switch h.n {
	case 0:
		return Target{}, false, nil
	case 1:
		return h.one, true, nil
	}
	e := &AmbiguousError{Kind: h.kind, Name: h.name}
	for _, t := range h.targets {
		if c := t.unique(); !slices.Contains(e.Candidates, c) {
			e.Candidates = append(e.Candidates, c)
		}
	}
	return Target{}, true, e
}

func (s *Snapshot) target(e *Entry) Target {
	t := Target{Server: e.Server, Name: e.Name, Listed: e.Listed, Entry: e}
	if e.Server == Local {
		t.Local = &LocalHandler{Resource: s.handlers[e.Name], Tool: s.tools[e.Name]}
	}
	return t
}

// unique is a name of the target that nothing else has.
func (t *Target) unique() string {
	raw := t.Entry == nil || t.Entry.Kind == Template // flat mode lists raw templates
	if raw && t.Server != Local {
		return namespaced(t.Server, t.Name)
	}
	return t.Listed
}

// ResolveTool finds a tool by its listed name, as server/tool, or by its bare
// name if exactly one server owns it. Errors: *[NotFoundError], *[AmbiguousError].
func (r *Registry) ResolveTool(name string) (Target, error) {
	s := r.Load()
	hash := hashKey(name)
	if e := s.tables[0].runs[Tool].listed(hash, name); e != nil {
		return s.target(e), nil
	}
	h := hits{s: s, kind: Tool, name: name}
	for i := 0; i < len(name); i++ {
		if name[i] != '_' {
			continue
		}
		for _, n := range s.dir.byTool[name[:i]] {
			h.entry(s.tables[n].runs[Tool].listed(hash, name))
		}
	}
	for _, n := range s.dir.long {
		h.entry(s.tables[n].runs[Tool].listed(hash, name))
	}
	if t, ok, err := h.done(); ok {
		return t, err
	}
	if server, tool, ok := strings.Cut(name, "/"); ok {
		if t := s.table(server); t != nil {
			h.entry(t.runs[Tool].name(hashKey(tool), tool))
		}
	}
	if t, ok, err := h.done(); ok {
		return t, err
	}
	s.owners(&h, Tool, hash)
	if t, ok, err := h.done(); ok {
		return t, err
	}
	return Target{}, &NotFoundError{Kind: Tool, Name: name, Reason: "unknown tool", Nearest: s.Nearest(Tool, name)}
}

// owners adds what the servers know under the bare name or raw URI h.name.
func (s *Snapshot) owners(h *hits, k Kind, hash uint64) {
	for _, t := range s.tables[1:] {
		h.entry(t.runs[k].name(hash, h.name))
	}
}

// ResolvePrompt finds a prompt as server/prompt, as server_prompt, or by its
// bare name if exactly one server owns it. Errors as [Registry.ResolveTool].
func (r *Registry) ResolvePrompt(name string) (Target, error) {
	s := r.Load()
	h := hits{s: s, kind: Prompt, name: name}
	if server, prompt, ok := strings.Cut(name, "/"); ok {
		if t := s.table(server); t != nil {
			h.entry(t.runs[Prompt].name(hashKey(prompt), prompt))
		}
	}
	if t, ok, err := h.done(); ok {
		return t, err
	}
	for i := 0; i < len(name); i++ {
		if name[i] != '_' {
			continue
		}
		if t := s.table(name[:i]); t != nil {
			prompt := name[i+1:]
			h.entry(t.runs[Prompt].name(hashKey(prompt), prompt))
		}
	}
	if t, ok, err := h.done(); ok {
		return t, err
	}
	s.owners(&h, Prompt, hashKey(name))
	if t, ok, err := h.done(); ok {
		return t, err
	}
	return Target{}, &NotFoundError{Kind: Prompt, Name: name, Reason: "unknown prompt", Nearest: s.Nearest(Prompt, name)}
}

// ResolveResource finds what a client means by a URI. Goblin's own come
// first. mcp://server/… of a known server is looked up in that server's
// tables only: the exact URI, the form that URL parsers make of it, the
// percent-decoded one, templates, learned links, and anything if the server
// is open. Everything else is tried as a flat id, as the raw URI of exactly
// one server, as an expansion of templates of exactly one server, and as a
// learned link of exactly one. Errors as [Registry.ResolveTool].
func (r *Registry) ResolveResource(uri string) (Target, error) { return r.Load().resource(uri) }

func (s *Snapshot) resource(uri string) (Target, error) {
	hash := hashKey(uri)
	if e := s.tables[0].runs[Resource].name(hash, uri); e != nil {
		return s.target(e), nil
	}
	server, rest, ours := splitNamespaced(strings.TrimLeft(uri, " \t\r\n"))
	if ours && server != "" && rest != "" {
		if t := s.table(server); t != nil {
			return s.inServer(t, uri, rest)
		}
	}
	h := hits{s: s, kind: Resource, name: uri}
	key, isFlat := flatKey(uri)
	if isFlat {
		s.flatEntries(&h, key)
		if t, ok, err := h.done(); ok {
			return t, err
		}
	}
	s.owners(&h, Resource, hash)
	if t, ok, err := h.done(); ok {
		return t, err
	}
	if isFlat {
		s.flatExpansions(&h, key)
		if t, ok, err := h.done(); ok {
			return t, err
		}
	}
	for _, t := range s.tables[1:] {
		if e := t.runs[Template].template(uri); e != nil {
			h.add(s.expansion(t, uri, e))
		}
	}
	if t, ok, err := h.done(); ok {
		return t, err
	}
	for _, t := range s.tables[1:] {
		if t.hasLink(uri) {
			h.add(s.expansion(t, uri, nil))
		}
	}
	if t, ok, err := h.done(); ok {
		return t, err
	}
	return Target{}, unknownResource(uri, server, rest, ours)
}

// unknownResource says why a URI, split by splitNamespaced, is in no table.
func unknownResource(uri, server, rest string, ours bool) error {
	reason := ReasonNotFound
	switch {
	case ours && (server == "" || rest == ""):
		reason = ReasonMalformed
	case ours:
		reason = "Server '" + server + "' not found"
	}
	return &NotFoundError{Kind: Resource, Name: uri, Reason: reason}
}

// expansion is the target for a URI that is not listed itself.
func (s *Snapshot) expansion(t *table, uri string, template *Entry) Target {
	return Target{Server: t.name, Name: uri, Listed: s.listedURI(t, uri), Template: template}
}

// inServer finds rest of the requested mcp://server/rest.
func (s *Snapshot) inServer(t *table, requested, rest string) (Target, error) {
	run := t.runs[Resource]
	if e := run.name(hashKey(rest), rest); e != nil {
		return s.target(e), nil
	}
	h := hits{s: s, kind: Resource, name: requested}
	key := Norm(requested)
	run.aliases(&h, key)
	if target, ok, err := h.done(); ok {
		return target, err
	}
	decoded := unescape(rest)
	if decoded != rest {
		h.entry(run.name(hashKey(decoded), decoded))
		if target, ok, err := h.done(); ok {
			return target, err
		}
	}
	if t.rule != nil {
		if target, ok, err := s.unlisted(&h, t, key, rest, decoded); ok {
			return target, err
		}
	}
	return Target{}, &NotFoundError{Kind: Resource, Name: requested, Reason: ReasonNotFound}
}

// unlisted finds URIs that a server does not list but knows.
func (s *Snapshot) unlisted(h *hits, t *table, key, rest, decoded string) (Target, bool, error) {
	templates := t.runs[Template]
	// The server must get the very bytes that it gave, not what became of
	// them on the way, so links are asked before templates.
	if t.hasLink(rest) {
		h.add(s.expansion(t, rest, templates.template(rest)))
		return h.done()
	}
	links := t.learned.alias(key)
	_, normal, _ := splitNamespaced(key)
	for _, l := range []string{normal, decoded} {
		if len(links) == 0 && l != rest && t.hasLink(l) {
			links = append(links, l)
		}
	}
	for _, l := range links {
		h.add(s.expansion(t, l, templates.template(l)))
	}
	if target, ok, err := h.done(); ok {
		return target, true, err
	}
	uri := rest
	if strings.IndexByte(rest, ':') < 0 {
		uri = decoded // no URI yet: its scheme was encoded with the rest
	}
	if e := templates.template(uri); e != nil {
		h.add(s.expansion(t, uri, e))
	} else if t.open {
		h.add(s.expansion(t, uri, nil))
	}
	return h.done()
}

// hasLink reports whether the server returned this URI or a definition of its
// tools points to it.
func (t *table) hasLink(uri string) bool {
	if run := t.runs[Tool]; run != nil {
		if _, ok := run.links[uri]; ok {
			return true
		}
	}
	return t.learned.has(uri)
}

// aliases adds the entries with the given alias key.
func (r *run) aliases(h *hits, key string) {
	if r == nil {
		return
	}
	first, second := r.byNorm.find(r.entries, hashKey(key), key, byNorm)
	h.entry(first)
	h.entry(second)
	if _, rest, ok := splitNamespaced(key); ok && key != h.name {
		h.entry(r.name(hashKey(rest), rest))
	}
}

// ResolveTemplate finds the template or resource that a completion reference
// names: a listed template, its raw form with one owner, or anything that
// [Registry.ResolveResource] takes.
func (r *Registry) ResolveTemplate(ref string) (Target, error) {
	s := r.Load()
	h := hits{s: s, kind: Template, name: ref}
	if server, rest, ours := splitNamespaced(ref); ours {
		if t := s.table(server); t != nil {
			run := t.runs[Template]
			if e := run.name(hashKey(rest), rest); e != nil {
				return s.target(e), nil
			}
			run.aliases(&h, Norm(ref))
			if h.n == 0 {
				decoded := unescape(rest)
				h.entry(run.name(hashKey(decoded), decoded))
			}
			if target, ok, err := h.done(); ok {
				return target, err
			}
			return s.resource(ref)
		}
	}
	s.owners(&h, Template, hashKey(ref))
	if t, ok, err := h.done(); ok {
		return t, err
	}
	return s.resource(ref)
}
