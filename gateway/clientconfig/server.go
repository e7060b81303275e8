package clientconfig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"goblin/gateway/config"
)

// EntryName is the name of Goblin's entry in clients' files.
const EntryName = "goblin"

type entryKeys map[string]any

func (r *reading) entries(f *FileServers, list []item, off func(name string) bool) {
	taken := map[string]bool{}
	for _, it := range list {
		if config.ValidName(it.name) {
			taken[it.name] = true
		}
	}
	for _, it := range list {
		e, ok := it.value.(map[string]any)
		if !ok {
			why := "is not a mapping"
			if it.value == nil {
				why = "is null"
			}
			f.Skipped = append(f.Skipped, Skipped{it.name, why})
			continue
		}
		r.dialect = it.dialect
		s := Server{Name: it.name, OriginalName: it.name, Keys: map[string]any{}}
		if r.client != nil {
			s.Clients = []string{r.client.Name}
		}
		s.Files = []string{f.File}
		r.server, r.perProject = &s, false
		why := r.read(entryKeys(e))
		if why == "" && off(it.name) {
			s.Keys["disabled"] = true
		}
		if why == "" {
			why = mistake(s.Keys)
		}
		if why != "" {
			f.Skipped = append(f.Skipped, Skipped{it.name, why})
			continue
		}
		if !config.ValidName(s.Name) {
			s.Name = config.MakeName(it.name, func(name string) bool { return taken[name] })
			taken[s.Name] = true
			r.note("was renamed to %q; names allow only letters, digits, \".\", \"_\" and \"-\"", s.Name)
		}
		f.Servers = append(f.Servers, s)
	}
}

// read converts an entry to keys of Goblin's config. A non-empty why is the reason to
// skip it.
func (r *reading) read(written entryKeys) (why string) {
	if written["source"] == "extension" || written["settings"] != nil && !reaches(map[string]any(written)) {
		return "is part of an editor extension"
	}
	if _, isNumber := written["command"].(json.Number); isNumber {
		return "has a command that is not text"
	}
	translated, notes, why := config.Translate(written, r.programIsThere)
	if why != "" {
		return why
	}
	e := entryKeys(translated)
	for _, note := range notes {
		r.note("%s", note.Text)
		r.server.Partial = r.server.Partial || note.Partial
	}
	kind := e.first("type")
	command, args, problem := e.commandLine()
	address := e.address()
	switch {
	case problem != "":
		return problem
	case command != "" && config.IsSelf(command, args), r.server.OriginalName == EntryName && ownURL(address):
		return "is Goblin itself"
	case strings.HasPrefix(address, "unix:"), strings.HasPrefix(address, "pipe:"):
		return "uses a local socket, which Goblin does not support"
	case command == "" && address == "":
		return "has neither a command nor a URL"
	case command != "" && (address == "" || kind == "stdio"):
		r.local(e, command, args)
	default:
		r.remote(e, written, address, kind)
	}
	if e["disabled"] == true {
		r.server.Keys["disabled"] = true
	}
	r.unknown(e)
	r.tools(e)
	r.times(e)
	if r.perProject {
		r.server.Keys["isolation"] = "project"
		r.note("works in a project's folder, so Goblin runs one process per project (isolation: project)")
	}
	return ""
}

// understood lists the keys of a translated entry that are imported or have no effect.
var understood = []string{
	"command", "args", "env", "cwd", "url", "type", "headers", "disabled", "timeout", "settings", "tags",
	"env_keys", "env_vars", "envFile", "sandbox", "sandboxEnabled", "oauth", "auth", "scopes", "authProviderType", "headersHelper",
	"includeTools", "enabled_tools", "available_tools", "tools", "excludeTools", "disabled_tools", "disabledTools",
	"connectionTimeout", "startup_timeout_ms", "startup_timeout_sec", "tool_timeout_sec",
	"bearer_token_env_var", "env_http_headers", "bearer_token", "apiKey",
	"always_allow", "auto_approve", "default_tools_approval_mode", "required", "schema", "faviconUrl",
}

func (r *reading) unknown(e entryKeys) {
	for _, key := range slices.Sorted(maps.Keys(e)) {
		if !slices.Contains(understood, key) && !config.IsIgnorableKey(key) {
			r.noteLoss("has %q, which is unknown and ignored", short(key))
		}
	}
}

func (r *reading) programIsThere(command string) bool {
	command = os.Expand(r.text(command), func(name string) string {
		name, fallback, _ := strings.Cut(name, ":-")
		return cmp.Or(r.machine.Getenv(name), fallback)
	})
	if rest, ok := strings.CutPrefix(command, "~/"); ok {
		command = filepath.Join(r.machine.home(), rest)
	}
	return config.ProgramExists(command, r.dir)
}

func (e entryKeys) commandLine() (command string, args []string, problem string) {
	list := func(v any) []string {
		all, ok := v.([]any)
		var out []string
		for _, item := range all {
			s, isText := scalar(item)
			ok = ok && isText
			out = append(out, s)
		}
		if v != nil && !ok {
			problem = "has arguments that are not a list of texts"
		}
		return out
	}
	args = list(e["args"])
	switch v := e["command"].(type) {
	case string:
		command = v
	case []any:
		if words := list(v); len(words) > 0 {
			command, args = words[0], append(words[1:], args...)
		}
	case map[string]any: // old Zed format
		inner := entryKeys(v)
		command, args = inner.first("path", "command"), list(v["args"])
		if env, ok := v["env"]; ok && e["env"] == nil {
			e["env"] = env
		}
	case nil:
		command = e.first("cmd")
	default:
		problem = "has a command that is not text"
	}
	return command, args, problem
}

func (r *reading) local(e entryKeys, command string, args []string) {
	s := r.server
	cwd := e.first("cwd")
	if e["sandbox"] != nil || e["sandboxEnabled"] == true {
		r.noteLoss("runs in a sandbox in the client, but not in Goblin")
	}
	s.Keys["command"] = r.text(command)
	if len(args) > 0 {
		s.Keys["args"] = r.all(args)
	}
	env := map[string]string{}
	r.envFile(e.first("envFile"), env)
	maps.Copy(env, r.pairs(e, "env"))
	for _, name := range texts(e["env_keys"]) { // goose stores them elsewhere
		if value, ok := r.environment(name); ok {
			env[name] = value
			r.needs(name, "a secret of the client")
		}
	}
	if len(env) > 0 {
		s.Keys["env"] = env
	}
	names := slices.DeleteFunc(inherited(e["env_vars"]), func(name string) bool { _, ok := r.environment(name); return !ok })
	if len(names) > 0 {
		s.Keys["inherit_env"] = names
	}
	if cwd != "" {
		s.Keys["cwd"] = r.text(cwd)
	}
	begins := relative(command) && strings.ContainsAny(command, `/\`) || cwd == "" && slices.ContainsFunc(args, isDotPath)
	if begins && !r.perProject || relative(cwd) {
		r.noteLoss("has a relative path, which now starts at the folder of Goblin's config; make it absolute")
	}
}

func relative(path string) bool {
	return path != "" && !strings.ContainsAny(path[:1], `/\~$`) && (len(path) < 2 || path[1] != ':')
}

func isDotPath(path string) bool {
	first, _, _ := strings.Cut(strings.ReplaceAll(path, `\`, "/"), "/")
	return first == "." || first == ".."
}

// FindRelativePath returns the first path in an entry that is relative to the working
// directory, or a relative cwd. It returns "" if cwd is absolute.
func FindRelativePath(entry map[string]any) string {
	command, _ := entry["command"].(string)
	args, _ := entry["args"].([]string)
	words := append([]string{command}, args...)
	if cwd, ok := entry["cwd"].(string); ok {
		if relative(cwd) {
			return cwd
		}
		words = nil
	}
	for _, word := range words {
		if isDotPath(word) {
			return word
		}
	}
	return ""
}

// inherited returns the variables that Codex passes on.
func inherited(v any) (names []string) {
	list, _ := v.([]any)
	for _, v := range list {
		switch v := v.(type) {
		case string:
			names = append(names, v)
		case map[string]any:
			if name, ok := v["name"].(string); ok && v["source"] != "remote" {
				names = append(names, name)
			}
		}
	}
	return names
}

// envFile adds the variables of a file that the client reads when it starts the server.
func (r *reading) envFile(file string, env map[string]string) {
	if file == "" {
		return
	}
	home := r.machine.home()
	path := strings.NewReplacer("${userHome}", home, "${env:HOME}", home, "${HOME}", home, "${/}", "/").Replace(file)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(home, rest)
	}
	if strings.Contains(path, "${") || !filepath.IsAbs(path) {
		r.noteLoss("has an envFile in a project; its variables are not imported")
		return
	}
	vars, err := config.ReadEnvFile(path)
	if err != nil {
		r.noteLoss("has an envFile, %s, which %v; its variables are not imported", short(path), err)
		return
	}
	for name, value := range vars {
		env[name] = escaped(value)
	}
	r.note("has the variables of %s copied to env", short(path))
}

func (r *reading) remote(e, written entryKeys, address, kind string) {
	s := r.server
	s.Keys["url"] = r.text(address)
	switch {
	case kind == "sse", kind == "" && r.dialect == gemini && written["httpUrl"] == nil && written["url"] != nil:
		s.Keys["type"] = "sse"
	case kind == "http":
		s.Keys["type"] = "http"
	}
	env := r.pairs(e, "env")
	if r.dialect == goose {
		defer r.expanding(e)()
	}
	headers := r.pairs(e, "headers")
	if named, ok := e["env_http_headers"].(map[string]any); ok {
		for _, header := range slices.Sorted(maps.Keys(named)) {
			name, _ := named[header].(string)
			if value, ok := r.environment(name); ok {
				headers[header] = value
			}
		}
	}
	if name := e.first("bearer_token_env_var"); name != "" {
		if value, ok := r.environment(name); ok {
			headers["Authorization"] = "Bearer " + value
		}
	}
	if token := e.first("bearer_token", "apiKey"); token != "" {
		headers["Authorization"] = "Bearer " + r.text(token)
	}
	if len(headers) > 0 {
		s.Keys["headers"] = headers
	}
	for name, value := range env {
		for header := range headers {
			headers[header] = inserted(headers[header], name, value)
		}
	}
	if e["authProviderType"] != nil {
		r.noteLoss("logs in with the client's auth provider; try goblin login")
	}
	if helper := e.first("headersHelper"); helper != "" {
		r.noteLoss("has a headersHelper, which Goblin does not run")
	}
	r.oauth(e)
}

// inserted keeps escaped variables.
func inserted(text, name, value string) string {
	parts := strings.Split(text, "$${")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "${"+name+"}", value)
	}
	return strings.Join(parts, "$${")
}

// expanding enables variables until end is called, since goose expands them in headers
// only.
func (r *reading) expanding(e entryKeys) (end func()) {
	inner := *r.dialect
	inner.expands = braces | dollar
	r.dialect = &inner
	for _, name := range texts(e["env_keys"]) {
		r.needs(name, "a secret of the client")
	}
	return func() { r.dialect = goose }
}

func (r *reading) oauth(e entryKeys) {
	if e["oauth"] == false {
		r.server.Keys["oauth"] = "off"
		return
	}
	out := map[string]any{}
	for _, key := range []string{"oauth", "auth"} {
		doc, _ := e[key].(map[string]any)
		from := entryKeys(doc)
		if id := from.first("clientId", "client_id", "CLIENT_ID"); id != "" {
			out["client_id"] = r.text(id)
		}
		if secret := from.first("clientSecret", "client_secret", "CLIENT_SECRET"); secret != "" {
			out["client_secret"] = r.text(secret)
		}
		if scopes := append(texts(from["scopes"]), strings.Fields(from.first("scope"))...); len(scopes) > 0 {
			out["scopes"] = r.all(scopes)
		}
		if port, ok := number(from["callbackPort"]); ok && port > 0 && port <= math.MaxUint16 {
			out["redirect_port"] = int(port)
		}
	}
	if scopes := texts(e["scopes"]); len(scopes) > 0 {
		out["scopes"] = r.all(scopes)
	}
	if len(out) > 0 {
		r.server.Keys["oauth"] = out
	}
}

func (r *reading) all(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = r.text(text)
	}
	return out
}

var globs = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

func (r *reading) tools(e entryKeys) {
	plain := func(names []string) []string {
		out := make([]string, len(names))
		for i, name := range names {
			name, _, _ = strings.Cut(name, "(") // Gemini CLI allows arguments here
			out[i] = escaped(globs.Replace(name))
		}
		return out
	}
	filter := map[string]any{}
	for _, key := range []string{"includeTools", "enabled_tools", "available_tools", "tools"} {
		list, ok := e[key].([]any)
		names := texts(list)
		switch {
		case !ok, key == "available_tools" && len(names) == 0, slices.Contains(names, "*"):
		case len(names) == 0:
			filter["deny"] = []string{"*"}
		default:
			filter["allow"] = plain(names)
		}
	}
	for _, key := range []string{"excludeTools", "disabled_tools", "disabledTools"} {
		if names := texts(e[key]); len(names) > 0 {
			filter["deny"] = plain(names)
		}
	}
	if _, isList := e["tools"].([]any); !isList && e["tools"] != nil && r.dialect != codex { // Codex approves calls there
		r.noteLoss("has \"tools\" that are not a list; they are ignored")
	}
	if len(filter) > 0 {
		r.server.Keys["tools"] = filter
	}
}

func (r *reading) times(e entryKeys) {
	set := func(key string, unit time.Duration, to ...string) {
		n, ok := number(e[key])
		if !ok || unit == 0 || n <= 0 || n > float64(24*time.Hour/unit) {
			return
		}
		for _, name := range to {
			r.server.Keys[name] = config.ShortDuration(time.Duration(n * float64(unit)))
		}
	}
	set("timeout", r.dialect.unit, "timeout", "call_timeout")
	set("connectionTimeout", time.Millisecond, "startup_timeout")
	set("startup_timeout_ms", time.Millisecond, "startup_timeout")
	set("startup_timeout_sec", time.Second, "startup_timeout")
	set("tool_timeout_sec", time.Second, "call_timeout")
}

func (r *reading) pairs(e entryKeys, key string) map[string]string {
	doc, ok := e[key].(map[string]any)
	if !ok && e[key] != nil {
		r.noteLoss("has %q that is neither a mapping nor a list; it is ignored", key)
	}
	out := make(map[string]string, len(doc))
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if s, ok := scalar(doc[name]); ok {
			out[name] = r.text(s)
		} else {
			r.noteLoss("has %q in %q that is not text; it is ignored", short(name), key)
		}
	}
	return out
}

func (e entryKeys) first(names ...string) string {
	for _, name := range names {
		if s, ok := e[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(v), true
	}
	return "", false
}

func number(v any) (float64, bool) {
	s, ok := scalar(v)
	n, err := strconv.ParseFloat(s, 64)
	return n, ok && err == nil
}

func (e entryKeys) address() string { return e.first("url", "serverUrl", "httpUrl", "uri") }

func ownURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return (u.Hostname() == "localhost" || ip.IsLoopback()) && strings.HasPrefix(path.Clean(u.Path), "/mcp")
}

// mistake returns the first problem that Goblin's config would report, or "".
func mistake(entry map[string]any) string {
	text, err := yaml.Marshal(map[string]any{"servers": map[string]any{"entry": entry}})
	if err != nil {
		return "cannot be encoded"
	}
	home, err := filepath.Abs("/")
	if err != nil {
		return err.Error()
	}
	set := func(name string) (string, bool) {
		if name == "HOME" { // for "~"
			return home, true
		}
		return "x", true
	}
	_, err = config.Parse("entry.yaml", text, set)
	var wrong *config.Errors
	if errors.As(err, &wrong) && len(wrong.Problems) > 0 {
		return "is invalid: " + strings.NewReplacer(` in server "entry"`, "", ` of server "entry"`, "").Replace(wrong.Problems[0].Text)
	}
	return ""
}
