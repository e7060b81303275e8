package config

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"goblin/registry/definition"
)

// defaults returns the config that an empty file means.
func defaults() Config {
	return Config{
		Gateway: Gateway{
			Namespace:   NamespaceURI,
			MaxName:     51,
			PageSize:    1000,
			StartupWait: 10 * time.Second, HandshakeWait: 5 * time.Second,
			ListChanged: ListChanged{Tools: true, Prompts: true, Resources: true},
			MetaTools:   MetaTools{Auto: true}, MetaToolsAbove: 60,
			Pin:      PinReport,
			Linger:   time.Minute,
			Remember: 30 * day,
			Start:    AutoStart, IdleTimeout: 15 * time.Minute,
			Limits: Limits{
				Frame: 128 << 20, InFlight: 256, Unsent: 16 << 20,
				Sessions: 2048, Projects: 16, Pages: 1000, Entries: 1_000_000, Depth: 512,
			},
		},
		Search: Search{Model: "nomic-embed-text"},
		Lua:    Lua{Timeout: 10 * time.Second, Memory: 64 << 20, Calls: 1000, Output: 1 << 20},
		Log:    Log{Level: slog.LevelInfo},
		TUI:    TUI{Theme: "auto", Images: "auto"},
	}
}

func defaultServer() Server {
	return Server{Timeout: 30 * time.Second, CallTimeout: 10 * time.Minute, StartupTimeout: 20 * time.Second, Isolation: Shared, Era: AutoEra, ForwardMeta: true}
}

const maxCount = 100_000_000 // the upper end of counts that have no natural one

func topKeys() []field[Config] {
	servers := kind[[]Server]{schema: serversSchema, read: readServers}
	at := func(c *Config) *[]Server { return &c.Servers }
	return []field[Config]{
		key("servers", "The MCP servers behind Goblin, by name.", servers, at),
		key("mcpServers", "Another name of `servers`, as in the files of other clients.", servers, at),
		key(envFileKey, "A file of variables, NAME=value a line, for those that the environment lacks. A relative path begins at the config's folder.",
			path(false), func(c *Config) *string { return &c.EnvFile }),
		key("registry", "The registry of MCP servers that `goblin registry search` and `goblin add --registry` ask. Not given: the official one.",
			text(registryComplaint), func(c *Config) *string { return &c.Registry }),
		key("profiles", "Parts of the catalog, by name, for clients that are not to see all of it: those that ask for one by `goblin stdio --profile` or the URL /mcp/p/NAME, or get it by `clients`. The profile named default is for all others.",
			profiles(), func(c *Config) *[]Profile { return &c.Profiles }),
		key("clients", "Which profile clients get that ask for none: globs on the name that a client says in its handshake, each with a profile. The first that fits counts.",
			clientRules(), func(c *Config) *[]ClientRule { return &c.Clients }),
		key("gateway", "What clients meet.", kind[Gateway]{schema: section(gatewayKeys).schema, read: readGateway}, func(c *Config) *Gateway { return &c.Gateway }),
		key("search", "How tools are found.", section(searchKeys), func(c *Config) *Search { return &c.Search }),
		key("lua", "Bounds of one run of a Lua program.", section(luaKeys), func(c *Config) *Lua { return &c.Lua }),
		key("log", "Goblin's own log.", section(logKeys), func(c *Config) *Log { return &c.Log }),
		key("tui", "The screen.", section(tuiKeys), func(c *Config) *TUI { return &c.TUI }),
	}
}

// sections lists the keys below the top level, for hints about misplaced ones.
func sections() map[string][]string {
	return map[string][]string{
		"gateway": names(gatewayKeys()), "search": names(searchKeys()), "lua": names(luaKeys()), "log": names(logKeys()), "tui": names(tuiKeys()),
	}
}

func serverKeys() []field[Server] {
	return append([]field[Server]{
		key("command", "The program of a local server. A bare name is looked up in PATH; a relative path begins at the config's folder.",
			withReferences(path(true)), func(s *Server) *string { return &s.Command }),
		key("args", "Arguments of the command.",
			withReferences(list(loose(noNUL))), func(s *Server) *[]string { return &s.Args }),
		key("env", "Environment variables of the command.",
			withReferences(dict(loose(noNUL), keepEnvName)), func(s *Server) *map[string]string { return &s.Env }),
		key("cwd", "The command's working directory. A relative path begins at the config's folder. With isolation: project, it is the project's unless given.",
			withReferences(path(false)), func(s *Server) *string { return &s.Cwd }),
		key("inherit_env", "What the command gets of Goblin's environment besides HOME, LANG, LOGNAME, PATH, SHELL, TERM, TMPDIR, USER (on Windows APPDATA, PATH, PATHEXT, SYSTEMROOT, TEMP, USERPROFILE and their like) and `env`: nothing (false), everything (true), or these names.",
			selected(text(envNameComplaint)), func(s *Server) *selection { return (*selection)(&s.InheritEnv) }),
		key("url", "The address of a remote server.",
			withReferences(text(urlComplaint)), func(s *Server) *string { return &s.URL }),
		key("type", "The transport. With `url`: http (Streamable HTTP; falls back to SSE if `type` is not given) or sse.",
			choice(
				option[Type]{"http", HTTP, nil},
				option[Type]{"streamable-http", HTTP, []string{"streamable_http", "streamableHttp", "streamablehttp"}},
				option[Type]{"sse", SSE, nil},
				option[Type]{"stdio", Stdio, nil},
			), func(s *Server) *Type { return &s.Type }),
		key("headers", "HTTP headers of every request to the remote server.",
			withReferences(dict(loose(headerValueComplaint), keepHeaderName)), func(s *Server) *map[string]string { return &s.Headers }),
		key("oauth", "The login at the remote server by OAuth, see `goblin login`; off: none. Nothing is needed for servers that register their clients.",
			oauth(), func(s *Server) *OAuth { return &s.OAuth }),
		key("tags", "Words by which profiles choose the server, as in `tag:work`.",
			tags(), func(s *Server) *[]string { return &s.Tags }),
		key("disabled", "Do not start the server.",
			flag(), func(s *Server) *bool { return &s.Disabled }),
		key("timeout", "The longest time of one request other than a call of a tool. Progress extends it; a wait for a human does not count.",
			duration(false), func(s *Server) *time.Duration { return &s.Timeout }),
		key("call_timeout", "The longest time of one call of a tool; 0 for any time. Progress extends it; a wait for a human does not count.",
			duration(true), func(s *Server) *time.Duration { return &s.CallTimeout }),
		key("startup_timeout", "The longest time of connecting to the server and of the handshake. The default is 2m for commands that may download the server first: npx, uvx, bunx, pipx, docker, podman and the like.",
			duration(false), func(s *Server) *time.Duration { return &s.StartupTimeout }),
		key("start", "When the server starts. eager: with Goblin. auto: at its first use if its lists are remembered, else with Goblin. lazy: likewise, and it stops once it has listed unless somebody uses it. Default: that of gateway.",
			words(AutoStart, EagerStart, LazyStart), func(s *Server) *Start { return &s.Start }),
		key("idle_timeout", "How long a local server goes on that nobody uses; off: for ever. Default: that of gateway.",
			durationOrOff(), func(s *Server) *time.Duration { return &s.IdleTimeout }),
		key("isolation", "shared: one connection for all clients. session: one for each; clients of 2026-07-28 over HTTP, which have no sessions, are refused. project: one for the clients of each project, whose folder ${project} stands for in command, args, env, cwd, url and headers.",
			words(Shared, PerSession, PerProject), func(s *Server) *Isolation { return &s.Isolation }),
		key("era", "Which revisions the server is spoken to in. legacy: those up to 2025-11-25. modern: from 2026-07-28 on. auto: legacy where the server offers it; over HTTP, each client's own. both: each client's own; over stdio that takes a process for each.",
			words(AutoEra, LegacyEra, ModernEra, BothEras), func(s *Server) *Era { return &s.Era }),
		key("roots", "Whose roots the server gets that asks for them. config: those of `gateway.roots`, but during a call those of its client; the default for servers that clients share. client: those of its clients; the default for the others. none: none.",
			words(ConfigRoots, ClientRoots, NoRoots), func(s *Server) *RootsFrom { return &s.Roots }),
		key("forward_meta", "Pass on what clients put into `_meta` of their requests besides the protocol's own keys, such as ids of sessions and threads.",
			flag(), func(s *Server) *bool { return &s.ForwardMeta }),
		key("tools", "Which tools are offered: globs on the server's own names. `deny` wins.",
			filterOrList(section(filterKeys)), func(s *Server) *Filter { return &s.Tools }),
		key("prompts", "Which prompts are offered: globs on the server's own names. `deny` wins.",
			section(filterKeys), func(s *Server) *Filter { return &s.Prompts }),
		key("resources", "Which resources and templates are offered: globs on the server's own URIs, however they are spelled. `deny` wins.",
			section(filterKeys), func(s *Server) *Filter { return &s.Resources }),
		key("open_resources", "Forward reads of URIs that the server never listed.",
			flag(), func(s *Server) *bool { return &s.OpenResources }),
		key("overrides", "What clients see of tools, prompts and resources instead of what the server says of them, and arguments that are filled in and hidden. Pins, filters and switches are about the server's own.",
			optional(section(overrideKeys)), func(s *Server) **definition.Set { return &s.Overrides }),
		key("max_result", "How much text of a tool's result clients get at a time: of a longer one they get the head and the tail, and the rest is a resource that is read by pages. off, the default: all of it.",
			sizeOrOff(1<<10), func(s *Server) *int64 { return &s.MaxResult }),
	}, legacyServerKeys()...)
}

// ignoredKeys are keys of other clients that say nothing about how a server is run. Some of
// them approve calls, which Goblin never imports.
var ignoredKeys = []string{
	"alwaysAllow", "autoApprove", "description", "name", "id", "title", "icon", "iconUrl", "logoUrl",
	"category", "provider", "providerUrl", "version", "note", "notes", "comment", "_comment", "$comment",
	"gallery", "trust", "autoStart", "dev", "metadata", "longRunning", "author", "homepage", "repository",
	"installSource", "registryUrl", "reference", "source", "searchKey", "isTrusted", "bundled", "displayName", "display_name",
}

// IsIgnorableKey reports a key of another client that says nothing about how a server is run.
func IsIgnorableKey(key string) bool { return isComment(key) || slices.Contains(ignoredKeys, key) }

// legacyServerKeys are keys that other clients write and that change what a
// server may do, so that ignoring them would be wrong.
func legacyServerKeys() []field[Server] {
	deny := func(s *Server) *[]string { return &s.Tools.Deny }
	fields := []field[Server]{
		key("disabledTools", "", list(text(globComplaint)), deny),
		key("excludeTools", "", list(text(globComplaint)), deny),
		key("disabled_tools", "", list(text(globComplaint)), deny),
		key("includeTools", "", list(text(globComplaint)), func(s *Server) *[]string { return &s.Tools.Allow }),
		key("enabled_tools", "", list(text(globComplaint)), func(s *Server) *[]string { return &s.Tools.Allow }),
	}
	// These change nothing about how a server is run, or nothing that Goblin
	// could follow; they are named in a warning.
	for _, name := range slices.Concat(ignoredKeys, []string{"envFile", "auth", "sampling"}) {
		fields = append(fields, ignored(name))
	}
	for i := range fields {
		fields[i].legacy = true
	}
	return fields
}

// oauth is a mapping, or off.
func oauth() kind[OAuth] {
	some := section(oauthKeys)
	read := func(r *reader, at keyPath, n *yaml.Node, dst *OAuth) {
		r.server.oauth = readTable(r, at, oauthKeys(), n, dst)
	}
	return kind[OAuth]{
		schema: func(def OAuth) object {
			return object{"anyOf": []any{object{"enum": []any{"off", false}}, some.schema(def)}}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *OAuth) {
			if b, ok := boolean(n); n.Kind == yaml.ScalarNode && (n.Value == "off" || ok && !b) {
				*dst = OAuth{Off: true}
				return
			}
			if n.Kind == yaml.ScalarNode && !isNull(n) {
				r.fail(n, "%s must be a mapping or off, not %s", at, describe(n))
				return
			}
			read(r, at, n, dst)
		},
	}
}

// checkIssuer finds a client secret that is not bound to an authorization server.
func (r *reader) checkIssuer(s *Server, keys map[string]*yaml.Node) {
	o := s.OAuth
	if s.URL == "" || o.Issuer != "" || s.Authorized() {
		return
	}
	if o.ClientCredentials {
		r.issue(keys["grant"], "oauth.grant: client_credentials of server %q requires oauth.issuer, since no user can agree where the client secret goes; add the URL of the authorization server as issuer",
			s.Name)
		r.server.mistakes = append(r.server.mistakes, r.server.issues[len(r.server.issues)-1])
		return
	}
	if o.ClientSecret != "" && !s.Disabled {
		r.warn(cmp.Or(keys["client_secret"], keys["clientSecret"]), "oauth.client_secret of server %q is bound to no authorization server, so \"goblin login\" asks before it is sent; add the URL of the right one as issuer",
			s.Name)
	}
}

func oauthKeys() []field[OAuth] {
	const issuer = "The only authorization server to log in at, and to send client_secret to. Required for client_credentials; if it is missing otherwise, the first login asks."
	legacy := func(f field[OAuth]) field[OAuth] { // as Claude Code writes it
		f.legacy = true
		return f
	}
	return []field[OAuth]{
		legacy(key("clientId", "", text(noNUL), func(o *OAuth) *string { return &o.ClientID })),
		legacy(key("clientSecret", "", withReferences(text(noNUL)), func(o *OAuth) *string { return &o.ClientSecret })),
		legacy(key("callbackPort", "", count(0, 65535), func(o *OAuth) *int { return &o.RedirectPort })),
		key("client_id", "Goblin's id at the authorization server, if that registers no clients itself.",
			text(noNUL), func(o *OAuth) *string { return &o.ClientID }),
		key("client_secret", "The secret of that client, or its private key in PEM.",
			withReferences(text(noNUL)), func(o *OAuth) *string { return &o.ClientSecret }),
		key("client_metadata_url", "Where a client id metadata document of Goblin lies, for authorization servers that take one.",
			text(urlComplaint), func(o *OAuth) *string { return &o.MetadataURL }),
		key("scopes", "What to ask for, instead of what the server names.",
			list(text(noNUL)), func(o *OAuth) *[]string { return &o.Scopes }),
		key("redirect_port", "The loopback port that the browser comes back to. 0: any.",
			count(0, 65535), func(o *OAuth) *int { return &o.RedirectPort }),
		key("grant", "authorization_code: a user logs in. client_credentials: the client of `client_id` does, without a user.",
			choice(
				option[bool]{"authorization_code", false, nil},
				option[bool]{"client_credentials", true, nil},
			), func(o *OAuth) *bool { return &o.ClientCredentials }),
		key("issuer", issuer,
			text(urlComplaint), func(o *OAuth) *string { return &o.Issuer }),
		key("account", "Servers with the same account and URL share a login, whatever config they are in.",
			text(noNUL), func(o *OAuth) *string { return &o.Account }),
	}
}

func filterKeys() []field[Filter] {
	return []field[Filter]{
		key("allow", "Globs; empty: all. * is any run of characters, ? is one, [a-z] is a class, \\ makes the next one literal.",
			list(text(globComplaint)), func(f *Filter) *[]string { return &f.Allow }),
		key("deny", "Globs of what is left out, even if allowed.",
			list(text(globComplaint)), func(f *Filter) *[]string { return &f.Deny }),
	}
}

// filterOrList is a filter that a file of another client may write as a list of what it allows.
func filterOrList(k kind[Filter]) kind[Filter] {
	return kind[Filter]{schema: k.schema, read: func(r *reader, at keyPath, n *yaml.Node, dst *Filter) {
		if !r.lenient || n.Kind != yaml.SequenceNode {
			k.read(r, at, n, dst)
			return
		}
		if list(text(globComplaint)).read(r, at, n, &dst.Allow); len(n.Content) == 0 {
			dst.Deny = []string{"*"}
		}
	}}
}

func gatewayKeys() []field[Gateway] {
	return []field[Gateway]{
		key("listen", "host:port of the HTTP server: /mcp, /metrics, /healthz, /readyz. Not given: none.",
			text(listenComplaint), func(g *Gateway) *string { return &g.Listen }),
		key("auth_token", "The bearer token of /mcp and /metrics; required if `listen` is not a loopback address.",
			kind[string]{schema: text(tokenComplaint).schema, read: readToken}, func(g *Gateway) *string { return &g.AuthToken }),
		key("allowed_origins", "Web origins that may call, besides loopback.",
			list(text(originComplaint)), func(g *Gateway) *[]string { return &g.AllowedOrigins }),
		key("allowed_hosts", "Names in the Host header that may be called, besides loopback ones: those of a proxy in front. If there are any, others are refused on every address.",
			list(hostName()), func(g *Gateway) *[]string { return &g.AllowedHosts }),
		key("namespace", "How resources are listed. uri: mcp://server/<original>. flat: ids without special characters.",
			words(NamespaceURI, NamespaceFlat), func(g *Gateway) *Namespace { return &g.Namespace }),
		key("max_name", "Characters of a tool's listed name. Clients put mcp__goblin__ or the like in front, and models' interfaces end at 64.",
			count(24, 128), func(g *Gateway) *int { return &g.MaxName }),
		key("page_size", "Entries on a page of a list.",
			count(1, 1_000_000), func(g *Gateway) *int { return &g.PageSize }),
		key("startup_wait", "How long a list, or an unknown name, waits for servers that never listed yet.",
			duration(true), func(g *Gateway) *time.Duration { return &g.StartupWait }),
		key("handshake_wait", "How long initialize and server/discover wait for servers that connect for the first time and have no cached lists, once per daemon. 0: not at all.",
			duration(true), func(g *Gateway) *time.Duration { return &g.HandshakeWait }),
		key("list_changed", "Which kinds of change notices of servers are heeded; the others wait for a reload or reconnect.",
			section(listChangedKeys), func(g *Gateway) *ListChanged { return &g.ListChanged }),
		key("meta_tools", "Goblin's own tools, by which others are found: auto (all for clients that see more than `meta_tools_above` entries), all (true), none (false), or these names. What a profile says wins.",
			metaTools(), func(g *Gateway) *MetaTools { return &g.MetaTools }),
		key("meta_tools_above", "With `meta_tools: auto`: how many tools, prompts, resources, templates and skills of servers a client may see together without Goblin's own tools.",
			count(0, maxCount), func(g *Gateway) *int { return &g.MetaToolsAbove }),
		key("roots", "Folders offered to servers that ask for roots, see `roots` of a server.",
			list(kind[Root]{schema: rootSchema, read: readRoot}), func(g *Gateway) *[]Root { return &g.Roots }),
		key("pin", "New or changed tool definitions. off: served as they come. report: served and reported. strict: withheld until approved.",
			words(PinOff, PinReport, PinStrict), func(g *Gateway) *Pin { return &g.Pin }),
		key("linger", "How long a background daemon stays after its last session and screen.",
			duration(true), func(g *Gateway) *time.Duration { return &g.Linger }),
		key("start", "When servers start that do not say so themselves. eager: with Goblin. auto: at their first use if their lists are remembered, else with Goblin. lazy: likewise, and they stop once they have listed unless somebody uses them.",
			words(AutoStart, EagerStart, LazyStart), func(g *Gateway) *Start { return &g.Start }),
		key("idle_timeout", "How long local servers go on that nobody uses, if they do not say so themselves; off: for ever.",
			durationOrOff(), func(g *Gateway) *time.Duration { return &g.IdleTimeout }),
		key("remember", "How long the lists of a server are kept on disk after their last use, so that they are served before it has started: days, or off.",
			days(), func(g *Gateway) *time.Duration { return &g.Remember }),
		key("limits", "What one party can cost at most.",
			section(limitKeys), func(g *Gateway) *Limits { return &g.Limits }),
	}
}

func listChangedKeys() []field[ListChanged] {
	return []field[ListChanged]{
		key("tools", "Heed changes of tools.", flag(), func(l *ListChanged) *bool { return &l.Tools }),
		key("prompts", "Heed changes of prompts.", flag(), func(l *ListChanged) *bool { return &l.Prompts }),
		key("resources", "Heed changes of resources and templates.", flag(), func(l *ListChanged) *bool { return &l.Resources }),
	}
}

func rootKeys() []field[Root] {
	return []field[Root]{
		key("uri", "A file:// URI.", text(rootComplaint), func(r *Root) *string { return &r.URI }),
		key("name", "What people call it.", text(noNUL), func(r *Root) *string { return &r.Name }),
	}
}

func limitKeys() []field[Limits] {
	return []field[Limits]{
		key("frame", "One JSON-RPC message.", size(64<<10), func(l *Limits) *int64 { return &l.Frame }),
		key("in_flight", "Requests at a time to one server. One client never gets all of them: it leaves one, and of more than 31 a quarter of what others leave free.", count(1, maxCount), func(l *Limits) *int { return &l.InFlight }),
		key("unsent", "What may wait for one client before its further requests wait.", size(64<<10), func(l *Limits) *int64 { return &l.Unsent }),
		key("sessions", "Sessions at a time, over the socket and over HTTP each.", count(1, maxCount), func(l *Limits) *int { return &l.Sessions }),
		key("projects", "Processes of servers with isolation: project at a time.", count(1, maxCount), func(l *Limits) *int { return &l.Projects }),
		key("pages", "Pages of one list of a server.", count(1, maxCount), func(l *Limits) *int { return &l.Pages }),
		key("entries", "Entries of one list of a server.", count(1, maxCount), func(l *Limits) *int { return &l.Entries }),
		key("depth", "Arrays and objects within each other in one message. Many parsers stop at 1000.", count(32, 10_000), func(l *Limits) *int { return &l.Depth }),
	}
}

func searchKeys() []field[Search] {
	return []field[Search]{
		key("embeddings", "The URL of an OpenAI-compatible API for embeddings, such as Ollama's http://127.0.0.1:11434/v1, by which searches find tools that mean the same in other words. It gets the names and descriptions of all tools, and the queries. Not given: none.",
			text(embeddingsComplaint), func(s *Search) *string { return &s.Embeddings }),
		key("model", "The model that it is asked for.", text(noNUL), func(s *Search) *string { return &s.Model }),
		key("auth_token", "The bearer token that it wants.", text(tokenComplaint), func(s *Search) *string { return &s.AuthToken }),
	}
}

func luaKeys() []field[Lua] {
	return []field[Lua]{
		key("timeout", "The longest run.", duration(false), func(l *Lua) *time.Duration { return &l.Timeout }),
		key("memory", "The most memory.", size(1<<20), func(l *Lua) *int64 { return &l.Memory }),
		key("calls", "The most calls of tools, prompts, resources and searches.", count(0, maxCount), func(l *Lua) *int { return &l.Calls }),
		key("output", "The longest output.", size(1<<10), func(l *Lua) *int64 { return &l.Output }),
	}
}

func logKeys() []field[Log] {
	return []field[Log]{
		key("level", "The least important lines that are kept.",
			choice(
				option[slog.Level]{"debug", slog.LevelDebug, nil},
				option[slog.Level]{"info", slog.LevelInfo, nil},
				option[slog.Level]{"warn", slog.LevelWarn, []string{"warning"}},
				option[slog.Level]{"error", slog.LevelError, nil},
			), func(l *Log) *slog.Level { return &l.Level }),
		key("file", "Where the log goes; empty: stderr. A relative path begins at the config's folder.",
			path(false), func(l *Log) *string { return &l.File }),
	}
}

func tuiKeys() []field[TUI] {
	return []field[TUI]{
		key("theme", "Colours of the screen.",
			words("auto", "dark", "light", "none"), func(t *TUI) *string { return &t.Theme }),
		key("images", "How images are drawn: by what the terminal says that it has, by one protocol whatever it says, as half blocks, or not.",
			words("auto", "kitty", "iterm", "sixel", "blocks", "off"), func(t *TUI) *string { return &t.Images }),
		key("keys", "Other keys for what the screen does, by action: one key or a list; an empty list takes them away. A key is a character, a name such as f5, pgdn or space, or ctrl+ with a letter.",
			actionKeys(), func(t *TUI) *map[string][]string { return &t.Keys }),
	}
}

// DifferingSettings names the settings in which two configs differ, but for servers, profiles and
// those that count at once: "gateway.listen", "lua.timeout".
func (c *Config) DifferingSettings(o *Config) []string {
	found := differingKeys("gateway.", gatewayKeys(), &c.Gateway, &o.Gateway)
	found = append(found, differingKeys("search.", searchKeys(), &c.Search, &o.Search)...)
	found = append(found, differingKeys("lua.", luaKeys(), &c.Lua, &o.Lua)...)
	found = append(found, differingKeys("log.", logKeys(), &c.Log, &o.Log)...)
	return append(found, differingKeys("tui.", tuiKeys(), &c.TUI, &o.TUI)...)
}

// liveSettings are settings that count as soon as they are edited.
var liveSettings = []string{"gateway.roots", "gateway.meta_tools", "gateway.meta_tools_above"}

func differingKeys[T any](section string, table []field[T], a, b *T) (found []string) {
	for _, f := range table {
		if name := section + f.name; !slices.Contains(liveSettings, name) && !f.same(a, b) {
			found = append(found, name)
		}
	}
	return found
}
