package config

import (
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	serverName  = pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	notInName   = pattern(`[^A-Za-z0-9._-]+`)
	notInPrefix = pattern(`[^A-Za-z0-9_-]`)
)

// reservedName is the name of Goblin's own entries in lists.
const reservedName = "goblin"

// ValidName reports whether a server may have this name unchanged.
func ValidName(s string) bool { return serverName().MatchString(s) && s != reservedName }

func readServers(r *reader, at keyPath, n *yaml.Node, dst *[]Server) {
	pairs := r.pairs(at, r.byName(n))
	if r.lenient {
		pairs = slices.DeleteFunc(pairs, func(p pair) bool { return r.isAbsent(at, p) })
	}
	r.servers = make([]serverState, len(pairs))
	list := make([]Server, len(pairs))
	for i, name := range serverNames(pairs) {
		list[i] = r.readServer(pairs[i], name, &r.servers[i])
	}
	*dst = list
}

// byName converts a list of servers with names, as in some clients' files, to a mapping.
func (r *reader) byName(n *yaml.Node) *yaml.Node {
	if !r.lenient || n.Kind != yaml.SequenceNode {
		return n
	}
	all := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line}
	for _, item := range n.Content {
		i := indexOf(item, "name")
		if item.Kind != yaml.MappingNode || i < 0 || !isText(item.Content[i+1]) {
			return n
		}
		all.Content = append(all.Content, item.Content[i+1], item)
	}
	return all
}

func (r *reader) isAbsent(at keyPath, p pair) bool {
	switch {
	case isNull(p.val):
		r.warn(p.key, "%s is null and is ignored", at.key(p.key.Value))
	case isComment(p.key.Value) && p.val.Kind != yaml.MappingNode:
		r.warn(p.key, "%s is a comment and is ignored", at.key(p.key.Value))
	default:
		return false
	}
	return true
}

// serverNames converts names to ones that fit a URI. A valid name always stays.
func serverNames(pairs []pair) []string {
	taken := make(map[string]bool)
	for _, p := range pairs {
		if ValidName(p.key.Value) {
			taken[p.key.Value] = true
		}
	}
	list := make([]string, len(pairs))
	next := make(map[string]int) // last suffix by base
	for i, p := range pairs {
		if list[i] = p.key.Value; ValidName(list[i]) {
			continue
		}
		list[i] = fitName(p.key.Value, func(name string) bool { return taken[name] }, next)
		taken[list[i]] = true
	}
	return list
}

// MakeName converts a text to a valid server name that is not taken.
func MakeName(text string, taken func(name string) bool) string {
	return fitName(text, taken, make(map[string]int))
}

func fitName(text string, taken func(name string) bool, next map[string]int) string {
	base := strings.TrimRight(notInName().ReplaceAllString(strings.ToValidUTF8(text, "-"), "-"), "-")
	base = strings.TrimLeft(base, "._-")
	if base == "" {
		base = "server"
	}
	name := base[:min(len(base), 64)]
	for taken(name) || !ValidName(name) {
		next[base] = max(next[base]+1, 2)
		suffix := "-" + strconv.Itoa(next[base])
		name = base[:min(len(base), 64-len(suffix))] + suffix
	}
	return name
}

func (r *reader) readServer(p pair, name string, state *serverState) Server {
	r.server = state
	defer func() { r.server = nil }()
	at := keyPath{self: "server " + quote(p.key.Value)}
	s := defaultServer()
	s.Name = name
	s.JSON = r.lenient
	state.key = p.key
	if r.resolve == nil {
		r.asked = make(map[string]*string)
		defer func() { r.asked = nil }()
	}
	state.perProject = r.perProject(p.val)
	r.overriding = OverrideTarget{Server: name}
	p.val = r.translated(at, p.val)
	state.seen = readTable(r, at, serverKeys(), p.val, &s)
	if p.val.Kind == yaml.MappingNode || isNull(p.val) {
		r.checkTransport(at, p.key, state.seen, &s)
	}
	if s.Type == "" {
		s.Type = Stdio // the server cannot start
	}
	r.checkHeaders(at, &s, state.seen["headers"])
	r.checkIssuer(&s, state.oauth)
	r.checkWatch(at, &s, state.seen)
	r.warnUnexpanded(at, p.val, s.Command)
	if s.Isolation == PerProject && s.Type == Stdio && s.Cwd == "" {
		s.Cwd = projectVariable
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if state.other[at.key("env").key(name)] != nil {
			s.FromEnv = append(s.FromEnv, name)
		}
	}
	r.keepVariables(at, &s)
	s.FileEnv = s.InheritEnv.choose(r.fileVars)
	s.CommandSplit = state.divided
	self := isSelf(&s)
	if name != p.key.Value && !self {
		r.warnRenamed(p.key, name)
	}
	why := r.reportIssues(state, &s)
	if self {
		const text = "is Goblin itself, so it is disabled"
		at := state.seen["command"]
		why = append(why, r.problem(at, "this %s", text).String())
		if !s.Disabled {
			r.warn(at, "server %s %s", quote(p.key.Value), text)
		}
		s.Disabled = true // Problem prevents starting even if it is enabled later
	}
	if state.seen["startup_timeout"] == nil && downloads(s.Command, s.Args) {
		s.StartupTimeout = downloadTimeout
	}
	s.Problem, s.Problems = strings.Join(why, "; "), why
	if len(state.late) > 0 {
		slices.Sort(state.late)
		s.late = &lateServer{r.origin(), state.late, p}
	}
	return s
}

// reportIssues returns why a server cannot start. It adds warnings unless the server is
// disabled.
func (r *reader) reportIssues(state *serverState, s *Server) (why []string) {
	for _, issue := range sortProblems(state.issues) {
		why = append(why, issue.String())
		if s.Disabled {
			continue
		}
		wrong := !r.lenient && slices.Contains(state.mistakes, issue)
		issue.Text += fmt.Sprintf(" (server %q is not started until then)", s.Name)
		r.warns = append(r.warns, issue)
		if wrong {
			r.mistakes = append(r.mistakes, issue)
		}
	}
	return why
}

func (r *reader) warnRenamed(key *yaml.Node, name string) {
	why := "has characters that a URI does not allow"
	if key.Value == reservedName {
		why = "is reserved for Goblin"
	} else if len(key.Value) > 64 {
		why = "is longer than 64 characters or has some that a URI does not allow"
	}
	r.warn(key, "the name %s %s; renamed to %q", quote(key.Value), why, name)
}

func (r *reader) keepVariables(at keyPath, s *Server) {
	keep := func(at keyPath) {
		for _, name := range r.server.other[at] {
			if s.Variables == nil {
				s.Variables = make(map[string]string)
			}
			s.Variables[name], _ = r.env(name)
		}
	}
	for i := range s.Args {
		keep(at.key("args").item(i))
	}
	keep(at.key("url"))
	if overrides := at.key("overrides"); len(r.server.overridden) > 0 {
		r.server.other[overrides] = r.server.overridden
		keep(overrides)
	}
}

var transportKeys = map[string][]string{
	"command": {"args", "env", "cwd", "inherit_env"},
	"url":     {"headers", "oauth"},
}

func (r *reader) checkTransport(at keyPath, name *yaml.Node, seen map[string]*yaml.Node, s *Server) {
	command := seen["command"]
	remote := seen["url"]
	_, s.TypeSet = seen["type"]
	if s.Type == Stdio && remote != nil && command == nil {
		r.fail(seen["type"], `"type" in %s is stdio, but it has "url"; use http or sse`, at)
	}
	if s.Type == SSE && s.Era == ModernEra {
		r.fail(seen["era"], `"era" in %s is modern, but "type" is sse, which only older revisions have; use http or remove type`, at)
	}
	if (s.Type == HTTP || s.Type == SSE) && command != nil && remote == nil {
		r.fail(seen["type"], `"type" in %s is %s, but it has "command"; use stdio or remove type`, at, s.Type)
	}
	switch {
	case command != nil && remote != nil:
		later := command
		if remote.Line > command.Line {
			later = remote
		}
		r.fail(later, `%s has both "command" and "url"; keep one of them`, at)
	case command != nil:
		s.Type = Stdio
		r.misfits(at, seen, "url", "command", func() { s.Headers, s.OAuth = nil, OAuth{} })
	case remote != nil:
		if s.Type == "" {
			s.Type = HTTP
		}
		r.misfits(at, seen, "command", "url", func() {
			s.Args = nil
			s.Env = nil
			s.Cwd = ""
			s.InheritEnv = InheritEnv{}
		})
	case !r.server.typo: // otherwise already reported
		r.fail(name, `%s needs "command" (a local program) or "url" (a remote server)`, at)
	}
}

// misfits reports keys that don't apply to this type of server. In other clients' files
// it drops them with a warning.
func (r *reader) misfits(at keyPath, seen map[string]*yaml.Node, theirs, ours string, drop func()) {
	for _, k := range transportKeys[theirs] {
		n := seen[k]
		switch {
		case n == nil:
		case r.lenient:
			r.warn(n, "%s is for servers with %q and is ignored", at.key(k), theirs)
			drop()
		default:
			r.fail(n, "%s is for servers with %q; this one has %q", at.key(k), theirs, ours)
		}
	}
}

func (r *reader) checkHeaders(at keyPath, s *Server, key *yaml.Node) {
	first := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if other, ok := first[canonical]; ok {
			r.fail(key, `"headers" in %s has %s and %s, which are the same header`, at, quote(other), quote(name))
		}
		first[canonical] = name
	}
}

func ignored(name string) field[Server] {
	return field[Server]{name: name, legacy: true, read: func(r *reader, at keyPath, n *yaml.Node, _ *Server) {
		r.warn(n, "%s is a key of another client and is ignored", at)
	}}
}

// usualPrefix is the prefix of tool names in common clients. usualLimit is the maximum
// length of the whole name in clients and model APIs.
const (
	usualPrefix = "mcp__goblin__"
	usualLimit  = 64
	usualTool   = 20 // the length of a tool name that should still fit
)

// warnNames reports names that make tool names long or ambiguous.
func (r *reader) warnNames(servers []Server) {
	prefixes := make([]string, len(servers))
	for i, s := range servers {
		prefixes[i] = notInPrefix().ReplaceAllString(s.Name, "_") + "_"
		if left := usualLimit - len(usualPrefix) - len(prefixes[i]); left < usualTool {
			r.warn(r.servers[i].key, "the name of server %q leaves %d characters for tool names in clients that add %q and allow %d; shorten it",
				s.Name, max(left, 0), usualPrefix, usualLimit)
		}
	}
	// In sorted order, a prefix directly precedes the prefixes it starts.
	order := make([]int, len(servers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(prefixes[a], prefixes[b]) })
	var open []int
	for _, i := range order {
		for len(open) > 0 && !strings.HasPrefix(prefixes[i], prefixes[open[len(open)-1]]) {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			short := open[len(open)-1]
			r.warn(r.servers[short].key, "tools of server %q whose listed names begin with %q get a suffix, because server %q has that prefix",
				servers[short].Name, prefixes[i], servers[i].Name)
		}
		open = append(open, i)
	}
}

// transportOf translates another client's transport. kind is "" if the word leaves it
// open. A non-empty why says that Goblin lacks the transport.
func transportOf(word string) (kind, why string) {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(word)) {
	case "stdio", "local", "command", "studio", "process":
		return "stdio", ""
	case "http", "streamablehttp", "streamable", "httpstream", "httpstreaming", "streamhttp", "https":
		return "http", ""
	case "", "remote", "url", "auto":
		return "", ""
	case "sse", "httpsse", "httpwithsse":
		return "sse", ""
	case "builtin", "platform", "frontend", "inlinepython", "sdk", "inmemory":
		return "", "is built into the client"
	case "ws", "websocket", "websockets":
		return "", "uses WebSocket, which Goblin does not support"
	case "sseide", "wside":
		return "", "is part of an editor extension"
	}
	return "", fmt.Sprintf("has the unknown transport %s", quote(word))
}
