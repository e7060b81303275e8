package config

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"goblin/registry/definition"
	"goblin/registry/rule"
	"goblin/registry/termtext"
)

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
		Record: Record{Max: 256 << 20, Days: 7, Bodies: true},
		TUI:    TUI{Theme: "auto", Images: "auto"},
	}
}

func defaultServer() Server {
	return Server{Timeout: 30 * time.Second, CallTimeout: 10 * time.Minute, StartupTimeout: 20 * time.Second, Isolation: Shared, Era: AutoEra, ForwardMeta: true}
}

const maxCount = 100_000_000 // maximum of counts without a natural limit

func topKeys() []field[Config] {
	servers := kind[[]Server]{schema: serversSchema, read: readServers}
	at := func(c *Config) *[]Server { return &c.Servers }
	return []field[Config]{
		key("servers", "MCP servers by name.", servers, at),
		key("mcpServers", "Alias of `servers`, as in other clients' files.", servers, at),
		key(envFileKey, "A file of variables, one NAME=value per line. The environment takes precedence. A relative path starts at the config's folder.",
			path(false), func(c *Config) *string { return &c.EnvFile }),
		key("registry", "URL of the MCP registry for `goblin registry search` and `goblin add --registry`. Default: the official registry.",
			text(registryComplaint), func(c *Config) *string { return &c.Registry }),
		key("profiles", "Parts of the catalog by name. A client gets one by `goblin stdio --profile`, the URL /mcp/p/NAME or `clients`. Other clients get the profile named default, or everything.",
			profiles(), func(c *Config) *[]Profile { return &c.Profiles }),
		key("clients", "Profiles for clients that request none: globs on the client's name in the handshake. The first match wins.",
			clientRules(), func(c *Config) *[]ClientRule { return &c.Clients }),
		key("rules", "Rules that stop, change or answer requests of clients. The first match wins.",
			rules(), func(c *Config) *[]*rule.Rule { return &c.Rules }),
		key("gateway", "The side that clients see.", kind[Gateway]{schema: section(gatewayKeys).schema, read: readGateway}, func(c *Config) *Gateway { return &c.Gateway }),
		key("search", "Tool search.", section(searchKeys), func(c *Config) *Search { return &c.Search }),
		key("lua", "Limits of one Lua run.", section(luaKeys), func(c *Config) *Lua { return &c.Lua }),
		key("log", "Goblin's own log.", section(logKeys), func(c *Config) *Log { return &c.Log }),
		key("record", "Recordings of all requests, notifications and lists. true or a mapping starts them. Secrets are hidden. Default: none.",
			record(), func(c *Config) *Record { return &c.Record }),
		key("otel", "Traces by OpenTelemetry. true or a mapping starts them, with the standard variables (OTEL_…) for everything that is not set here. Default: no traces.",
			otel(), func(c *Config) *OTel { return &c.OTel }),
		key("tui", "The UI.", kind[TUI]{schema: section(tuiKeys).schema, read: readTUI}, func(c *Config) *TUI { return &c.TUI }),
	}
}

func sections() map[string][]string {
	return map[string][]string{
		"gateway": names(gatewayKeys()), "search": names(searchKeys()), "lua": names(luaKeys()), "log": names(logKeys()), "otel": names(otelKeys()), "record": names(recordKeys()), "tui": names(tuiKeys()),
	}
}

func serverKeys() []field[Server] {
	return append([]field[Server]{
		key("command", "Program of a local server: a name in PATH, or a path. A relative path starts at the config's folder.",
			withReferences(path(true)), func(s *Server) *string { return &s.Command }),
		key("args", "Arguments of the command.",
			withReferences(list(loose(noNUL))), func(s *Server) *[]string { return &s.Args }),
		key("env", "Environment variables of the command.",
			withReferences(dict(loose(noNUL), keepEnvName)), func(s *Server) *map[string]string { return &s.Env }),
		key("cwd", "Working directory of the command. A relative path starts at the config's folder. Default: the config's folder, or the project's with isolation: project.",
			withReferences(path(false)), func(s *Server) *string { return &s.Cwd }),
		key("inherit_env", "Further variables of Goblin's environment for the command: none (false), all (true), or a list of names. It always gets `env` and HOME, LANG, LOGNAME, PATH, SHELL, TERM, TMPDIR, USER (on Windows APPDATA, PATH, PATHEXT, SYSTEMROOT, TEMP, USERPROFILE and similar ones).",
			selected(text(envNameComplaint)), func(s *Server) *selection { return (*selection)(&s.InheritEnv) }),
		key("url", "URL of a remote server.",
			withReferences(text(urlComplaint)), func(s *Server) *string { return &s.URL }),
		key("type", "Transport. With `url`: http (Streamable HTTP) or sse. Default: http, falling back to sse.",
			choice(
				option[Type]{"http", HTTP, nil},
				option[Type]{"streamable-http", HTTP, []string{"streamable_http", "streamableHttp", "streamablehttp"}},
				option[Type]{"sse", SSE, nil},
				option[Type]{"stdio", Stdio, nil},
			), func(s *Server) *Type { return &s.Type }),
		key("headers", "HTTP headers of each request to the remote server.",
			withReferences(dict(loose(headerValueComplaint), keepHeaderName)), func(s *Server) *map[string]string { return &s.Headers }),
		key("oauth", "OAuth login at the remote server, see `goblin login`. Not needed for servers that register clients. off: no login.",
			oauth(), func(s *Server) *OAuth { return &s.OAuth }),
		key("tags", "Words by which profiles select the server, as in `tag:work`.",
			tags(), func(s *Server) *[]string { return &s.Tags }),
		key("disabled", "Disables the server.",
			flag(), func(s *Server) *bool { return &s.Disabled }),
		key("timeout", "Maximum time per request, except tool calls. Progress extends it. Waiting for the user does not count.",
			duration(false), func(s *Server) *time.Duration { return &s.Timeout }),
		key("call_timeout", "Maximum time per tool call; 0: no limit. Progress extends it. Waiting for the user does not count.",
			duration(true), func(s *Server) *time.Duration { return &s.CallTimeout }),
		key("startup_timeout", "Maximum time for connecting and the handshake. Default: 20s, or 2m for commands that may first download the server, such as npx, uvx and docker.",
			duration(false), func(s *Server) *time.Duration { return &s.StartupTimeout }),
		key("start", "When the server starts. eager: together with Goblin. auto: on first use if its lists are cached, otherwise together with Goblin. lazy: like auto, but it stops after listing if it is unused. Default: `gateway.start`.",
			words(AutoStart, EagerStart, LazyStart), func(s *Server) *Start { return &s.Start }),
		key("idle_timeout", "Idle time after which a local server stops; off: never. Default: `gateway.idle_timeout`.",
			durationOrOff(), func(s *Server) *time.Duration { return &s.IdleTimeout }),
		key("isolation", "shared: one connection for all clients. session: one per client; refuses clients of 2026-07-28 over HTTP, which have no sessions. project: one per project; ${project} in command, args, env, cwd, url and headers is the project's folder.",
			words(Shared, PerSession, PerProject), func(s *Server) *Isolation { return &s.Isolation }),
		key("era", "Protocol revisions for the server. legacy: up to 2025-11-25. modern: 2026-07-28 and later. both: the client's; over stdio this needs two processes. auto: over stdio legacy if the server supports it, over HTTP the client's.",
			words(AutoEra, LegacyEra, ModernEra, BothEras), func(s *Server) *Era { return &s.Era }),
		key("roots", "Roots that the server gets. config: `gateway.roots`, and during a call those of the calling client. client: those of its clients. none: no roots. Default: config for shared servers, otherwise client.",
			words(ConfigRoots, ClientRoots, NoRoots), func(s *Server) *RootsFrom { return &s.Roots }),
		key("forward_meta", "Pass on clients' own keys in `_meta`, such as session and thread ids.",
			flag(), func(s *Server) *bool { return &s.ForwardMeta }),
		key("tools", "Visible tools: globs on the server's own names. `deny` wins.",
			filterOrList(section(filterKeys)), func(s *Server) *Filter { return &s.Tools }),
		key("prompts", "Visible prompts: globs on the server's own names. `deny` wins.",
			section(filterKeys), func(s *Server) *Filter { return &s.Prompts }),
		key("resources", "Visible resources and templates: globs on the server's own URIs in any spelling. `deny` wins.",
			section(filterKeys), func(s *Server) *Filter { return &s.Resources }),
		key("open_resources", "Forward reads of URIs that the server never listed.",
			flag(), func(s *Server) *bool { return &s.OpenResources }),
		key("overrides", "Changes to what clients see of tools, prompts and resources, and arguments that are filled in and hidden. Approval, filters and disabled entries use the originals.",
			optional(section(overrideKeys)), func(s *Server) **definition.Set { return &s.Overrides }),
		key("max_result", "Maximum text of a tool result. Clients get the start and end of a longer text and can read the rest as a resource, page by page. off: no limit (default).",
			sizeOrOff(1<<10), func(s *Server) *int64 { return &s.MaxResult }),
		key("watch", "Files that restart the server when they change: a glob or a list of globs, relative to `cwd`. ** matches any folders, {a,b} alternatives; a leading ! excludes. auto: source files, outside of hidden folders, packages and build outputs. Default: none, or auto with `build`.",
			watch(), func(s *Server) *[]string { return &s.Watch }),
		key("build", "Command in `cwd` that builds the server, before it starts and after watched files changed: a line for the shell, or a list of words. The running server is replaced after a successful build only.",
			build(), func(s *Server) *Build { return &s.Build }),
	}, legacyServerKeys()...)
}

// ignoredKeys lists keys of other clients that don't affect how a server runs. Some
// approve calls; Goblin never imports approvals.
var ignoredKeys = []string{
	"alwaysAllow", "autoApprove", "description", "name", "id", "title", "icon", "iconUrl", "logoUrl",
	"category", "provider", "providerUrl", "version", "note", "notes", "comment", "_comment", "$comment",
	"gallery", "trust", "autoStart", "dev", "metadata", "longRunning", "author", "homepage", "repository",
	"installSource", "registryUrl", "reference", "source", "searchKey", "isTrusted", "bundled", "displayName", "display_name",
}

// IsIgnorableKey reports whether another client's key does not affect how a server runs.
func IsIgnorableKey(key string) bool { return isComment(key) || slices.Contains(ignoredKeys, key) }

// legacyServerKeys returns keys of other clients that change what a server may do, and
// therefore cannot be ignored.
func legacyServerKeys() []field[Server] {
	deny := func(s *Server) *[]string { return &s.Tools.Deny }
	fields := []field[Server]{
		key("disabledTools", "", list(text(globComplaint)), deny),
		key("excludeTools", "", list(text(globComplaint)), deny),
		key("disabled_tools", "", list(text(globComplaint)), deny),
		key("includeTools", "", list(text(globComplaint)), func(s *Server) *[]string { return &s.Tools.Allow }),
		key("enabled_tools", "", list(text(globComplaint)), func(s *Server) *[]string { return &s.Tools.Allow }),
	}
	// These keys have no effect in Goblin, and a warning names each.
	for _, name := range slices.Concat(ignoredKeys, []string{"envFile", "auth", "sampling"}) {
		fields = append(fields, ignored(name))
	}
	for i := range fields {
		fields[i].legacy = true
	}
	return fields
}

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

// checkIssuer reports a client secret that is not bound to an authorization server.
func (r *reader) checkIssuer(s *Server, keys map[string]*yaml.Node) {
	o := s.OAuth
	if s.URL == "" || o.Issuer != "" || s.Authorized() {
		return
	}
	if o.ClientCredentials {
		r.issue(keys["grant"], "oauth.grant: client_credentials of server %q requires oauth.issuer, because no user can confirm where the client secret goes; set issuer to the authorization server's URL",
			s.Name)
		r.server.mistakes = append(r.server.mistakes, r.server.issues[len(r.server.issues)-1])
		return
	}
	if o.ClientSecret != "" && !s.Disabled {
		r.warn(cmp.Or(keys["client_secret"], keys["clientSecret"]), "oauth.client_secret of server %q is not bound to an authorization server, so \"goblin login\" asks before sending it; set issuer to the authorization server's URL",
			s.Name)
	}
}

func oauthKeys() []field[OAuth] {
	const issuer = "The only authorization server for logins and client_secret. Required for client_credentials. Otherwise, the first login asks if it is missing."
	legacy := func(f field[OAuth]) field[OAuth] { // Claude Code's spelling
		f.legacy = true
		return f
	}
	return []field[OAuth]{
		legacy(key("clientId", "", text(noNUL), func(o *OAuth) *string { return &o.ClientID })),
		legacy(key("clientSecret", "", withReferences(text(noNUL)), func(o *OAuth) *string { return &o.ClientSecret })),
		legacy(key("callbackPort", "", count(0, 65535), func(o *OAuth) *int { return &o.RedirectPort })),
		key("client_id", "Goblin's client id, if the authorization server does not register clients itself.",
			text(noNUL), func(o *OAuth) *string { return &o.ClientID }),
		key("client_secret", "Client secret, or a private key in PEM.",
			withReferences(text(noNUL)), func(o *OAuth) *string { return &o.ClientSecret }),
		key("client_metadata_url", "URL of a client ID metadata document for Goblin, for authorization servers that support it.",
			text(urlComplaint), func(o *OAuth) *string { return &o.MetadataURL }),
		key("scopes", "Scopes to request instead of the server's.",
			list(text(noNUL)), func(o *OAuth) *[]string { return &o.Scopes }),
		key("redirect_port", "Loopback port of the redirect. 0: any.",
			count(0, 65535), func(o *OAuth) *int { return &o.RedirectPort }),
		key("grant", "authorization_code: a user logs in. client_credentials: Goblin logs in as `client_id`, without a user.",
			choice(
				option[bool]{"authorization_code", false, nil},
				option[bool]{"client_credentials", true, nil},
			), func(o *OAuth) *bool { return &o.ClientCredentials }),
		key("issuer", issuer,
			text(urlComplaint), func(o *OAuth) *string { return &o.Issuer }),
		key("account", "Servers with the same account and URL share a login, across configs.",
			text(noNUL), func(o *OAuth) *string { return &o.Account }),
	}
}

func filterKeys() []field[Filter] {
	return []field[Filter]{
		key("allow", "Globs; empty: all. * matches any characters, ? matches one, [a-z] is a class, \\ makes the next character literal.",
			list(text(globComplaint)), func(f *Filter) *[]string { return &f.Allow }),
		key("deny", "Globs of hidden entries. Takes precedence over allow.",
			list(text(globComplaint)), func(f *Filter) *[]string { return &f.Deny }),
	}
}

// filterOrList reads a filter, or another client's list of allowed names.
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
		key("listen", "host:port of the HTTP server with /mcp, /metrics, /healthz and /readyz. Default: no HTTP.",
			text(listenComplaint), func(g *Gateway) *string { return &g.Listen }),
		key("auth_token", "Bearer token for /mcp and /metrics. Required if `listen` is not a loopback address.",
			kind[string]{schema: text(tokenComplaint).schema, read: readToken}, func(g *Gateway) *string { return &g.AuthToken }),
		key("allowed_origins", "Web origins that may call, in addition to loopback.",
			list(text(originComplaint)), func(g *Gateway) *[]string { return &g.AllowedOrigins }),
		key("allowed_hosts", "Host names of a proxy in front, accepted in addition to loopback. If set, all other names are refused on every address.",
			list(hostName()), func(g *Gateway) *[]string { return &g.AllowedHosts }),
		key("namespace", "Form of listed resources. uri: mcp://server/<original>. flat: ids without special characters.",
			words(NamespaceURI, NamespaceFlat), func(g *Gateway) *Namespace { return &g.Namespace }),
		key("max_name", "Maximum length of listed tool names. Clients add a prefix such as mcp__goblin__, and model APIs allow 64 characters.",
			count(24, 128), func(g *Gateway) *int { return &g.MaxName }),
		key("page_size", "Entries per page of a list.",
			count(1, 1_000_000), func(g *Gateway) *int { return &g.PageSize }),
		key("startup_wait", "Maximum wait of a list or an unknown name for servers that have not listed yet.",
			duration(true), func(g *Gateway) *time.Duration { return &g.StartupWait }),
		key("handshake_wait", "Maximum wait of initialize and server/discover for servers without cached lists that are still connecting, once per daemon. 0: none.",
			duration(true), func(g *Gateway) *time.Duration { return &g.HandshakeWait }),
		key("list_changed", "Kinds of list_changed notifications to honor. Other lists are read again on reload or reconnect.",
			section(listChangedKeys), func(g *Gateway) *ListChanged { return &g.ListChanged }),
		key("meta_tools", "Goblin's own tools for finding others: auto (all, for clients that see more than `meta_tools_above` entries), true (all), false (none), or a list of names. Profiles take precedence.",
			metaTools(), func(g *Gateway) *MetaTools { return &g.MetaTools }),
		key("meta_tools_above", "With `meta_tools: auto`: maximum number of servers' entries of all kinds that a client sees without Goblin's own tools.",
			count(0, maxCount), func(g *Gateway) *int { return &g.MetaToolsAbove }),
		key("roots", "Folders for servers that request roots, see a server's `roots`.",
			list(kind[Root]{schema: rootSchema, read: readRoot}), func(g *Gateway) *[]Root { return &g.Roots }),
		key("pin", "New or changed tool definitions. off: visible. report: visible and reported. strict: hidden until approved.",
			words(PinOff, PinReport, PinStrict), func(g *Gateway) *Pin { return &g.Pin }),
		key("linger", "Time until a background daemon exits after its last session and UI.",
			duration(true), func(g *Gateway) *time.Duration { return &g.Linger }),
		key("start", "Default of servers' `start`. eager: together with Goblin. auto: on first use if their lists are cached, otherwise together with Goblin. lazy: like auto, but they stop after listing if they are unused.",
			words(AutoStart, EagerStart, LazyStart), func(g *Gateway) *Start { return &g.Start }),
		key("idle_timeout", "Default of servers' `idle_timeout`: idle time after which a local server stops; off: never.",
			durationOrOff(), func(g *Gateway) *time.Duration { return &g.IdleTimeout }),
		key("remember", "Days to cache servers' lists on disk after their last use, or off. Cached lists are available before the server starts.",
			days(), func(g *Gateway) *time.Duration { return &g.Remember }),
		key("limits", "Resource limits per client and server.",
			section(limitKeys), func(g *Gateway) *Limits { return &g.Limits }),
	}
}

func listChangedKeys() []field[ListChanged] {
	return []field[ListChanged]{
		key("tools", "Honor changes of tools.", flag(), func(l *ListChanged) *bool { return &l.Tools }),
		key("prompts", "Honor changes of prompts.", flag(), func(l *ListChanged) *bool { return &l.Prompts }),
		key("resources", "Honor changes of resources and templates.", flag(), func(l *ListChanged) *bool { return &l.Resources }),
	}
}

func rootKeys() []field[Root] {
	return []field[Root]{
		key("uri", "A file:// URI.", text(rootComplaint), func(r *Root) *string { return &r.URI }),
		key("name", "Display name.", text(noNUL), func(r *Root) *string { return &r.Name }),
	}
}

func limitKeys() []field[Limits] {
	return []field[Limits]{
		key("frame", "Maximum size of one JSON-RPC message.", size(64<<10), func(l *Limits) *int64 { return &l.Frame }),
		key("in_flight", "Maximum concurrent requests per server. One client never gets all: it leaves one free, and above 31 a quarter of the free ones.", count(1, maxCount), func(l *Limits) *int { return &l.InFlight }),
		key("unsent", "Maximum unsent data per client before its further requests wait.", size(64<<10), func(l *Limits) *int64 { return &l.Unsent }),
		key("sessions", "Maximum concurrent sessions, for the socket and HTTP separately.", count(1, maxCount), func(l *Limits) *int { return &l.Sessions }),
		key("projects", "Maximum concurrent processes of servers with isolation: project.", count(1, maxCount), func(l *Limits) *int { return &l.Projects }),
		key("pages", "Maximum pages of a server's list.", count(1, maxCount), func(l *Limits) *int { return &l.Pages }),
		key("entries", "Maximum entries of a server's list.", count(1, maxCount), func(l *Limits) *int { return &l.Entries }),
		key("depth", "Maximum nesting of arrays and objects in one message. Many parsers stop at 1000.", count(32, 10_000), func(l *Limits) *int { return &l.Depth }),
	}
}

func searchKeys() []field[Search] {
	return []field[Search]{
		key("embeddings", "URL of an OpenAI-compatible embeddings API for search by meaning, such as Ollama's http://127.0.0.1:11434/v1. It gets the names and descriptions of all tools, and all queries. Default: none.",
			text(embeddingsComplaint), func(s *Search) *string { return &s.Embeddings }),
		key("model", "Model for the embeddings.", text(noNUL), func(s *Search) *string { return &s.Model }),
		key("auth_token", "Bearer token for the embeddings API.", text(tokenComplaint), func(s *Search) *string { return &s.AuthToken }),
	}
}

func luaKeys() []field[Lua] {
	return []field[Lua]{
		key("timeout", "Maximum duration.", duration(false), func(l *Lua) *time.Duration { return &l.Timeout }),
		key("memory", "Maximum memory.", size(1<<20), func(l *Lua) *int64 { return &l.Memory }),
		key("calls", "Maximum calls of tools, prompts, resources and searches.", count(0, maxCount), func(l *Lua) *int { return &l.Calls }),
		key("output", "Maximum output.", size(1<<10), func(l *Lua) *int64 { return &l.Output }),
	}
}

func logKeys() []field[Log] {
	return []field[Log]{
		key("level", "Minimum level of recorded lines.",
			choice(
				option[slog.Level]{"debug", slog.LevelDebug, nil},
				option[slog.Level]{"info", slog.LevelInfo, nil},
				option[slog.Level]{"warn", slog.LevelWarn, []string{"warning"}},
				option[slog.Level]{"error", slog.LevelError, nil},
			), func(l *Log) *slog.Level { return &l.Level }),
		key("file", "Log file; empty: stderr. A relative path starts at the config's folder.",
			path(false), func(l *Log) *string { return &l.File }),
	}
}

func tuiKeys() []field[TUI] {
	return []field[TUI]{
		key("theme", "Colors of the UI.",
			words("auto", "dark", "light", "none"), func(t *TUI) *string { return &t.Theme }),
		key("colors", "Colors of the theme's styles: #7aa2f7, a number from 0 to 255, or a name such as bright-blue. A mapping has one for a dark and one for a light background.",
			styleColors(), func(t *TUI) *map[string]termtext.StyleColor { return &t.Colors }),
		key("images", "Drawing of images: by what the terminal reports (auto), by one protocol, as half blocks, or off.",
			words("auto", "kitty", "iterm", "sixel", "blocks", "off"), func(t *TUI) *string { return &t.Images }),
		key("keys", "Keys by action: one key or a list; an empty list removes the keys. A key is a character, a name such as f5, pgdn or space, or ctrl+ with a letter.",
			actionKeys(), func(t *TUI) *map[string][]string { return &t.Keys }),
	}
}

// DifferingSettings lists the settings that differ between two configs, such as
// "gateway.listen". It omits servers, profiles and settings that apply immediately.
func (c *Config) DifferingSettings(o *Config) []string {
	found := differingKeys("gateway.", gatewayKeys(), &c.Gateway, &o.Gateway, false)
	found = append(found, differingKeys("search.", searchKeys(), &c.Search, &o.Search, false)...)
	found = append(found, differingKeys("lua.", luaKeys(), &c.Lua, &o.Lua, false)...)
	found = append(found, differingKeys("log.", logKeys(), &c.Log, &o.Log, false)...)
	return append(found, differingKeys("tui.", tuiKeys(), &c.TUI, &o.TUI, false)...)
}

// liveSettings apply as soon as they are edited.
var liveSettings = []string{"gateway.roots", "gateway.meta_tools", "gateway.meta_tools_above", "tui.colors"}

func differingKeys[T any](section string, table []field[T], a, b *T, live bool) (found []string) {
	for _, f := range table {
		if name := section + f.name; slices.Contains(liveSettings, name) == live && !f.same(a, b) {
			found = append(found, name)
		}
	}
	return found
}
