package servercheck

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"goblin/gateway/config"
	"goblin/registry"
	"goblin/registry/names"
	"goblin/registry/rawjson"
	"goblin/registry/repair"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

const (
	maxName      = 64    // characters that model APIs accept
	maxTokens    = 2_000 // of one definition
	maxDescribed = 2048  // see [report.KnownLimits]
)

// checkEntries checks the definitions of all lists.
func (c *checker) checkEntries() {
	for i := range kinds {
		k := &kinds[i]
		for n, e := range c.entries[k.kind] {
			c.checkEntry(k, n, e)
		}
	}
	c.checkNames()
	c.checkSizes()
}

func (c *checker) checkEntry(k *listKind, n int, e []byte) {
	if !rawjson.IsObject(e) {
		c.add("definition/dropped", k.method, "entry %d is not an object: %s", n+1, clip(string(e)))
		return
	}
	key := rawjson.GetString(e, k.key)
	if key == "" {
		c.add("definition/dropped", k.method, "entry %d has no %s: %s", n+1, k.key, clip(string(e)))
		return
	}
	subject := k.noun + " " + clip(key)
	c.checkMeta(subject, e)
	fixed := repair.Definition{JSON: e}
	switch k.kind {
	case registry.Tool:
		fixed = repair.Tool(e)
	case registry.Prompt:
		var err error
		if fixed, err = repair.Prompt(e); err != nil {
			c.add("definition/dropped", subject, "%v", err)
			return
		}
		c.checkPrompt(subject, fixed.JSON)
	case registry.Resource:
		fixed = repair.Resource(e)
	case registry.Template:
		fixed = repair.Template(e)
	}
	for _, change := range fixed.Changes {
		c.add(ruleOf(change, e), subject, "Goblin repairs it for clients: %s", change)
	}
	if k.kind == registry.Tool {
		c.checkTool(subject, e, &fixed)
	}
}

// ruleOf returns the rule of a repair.
func ruleOf(change string, def []byte) string {
	switch {
	case strings.HasPrefix(change, "inputSchema"):
		return "schema/input"
	case strings.HasPrefix(change, "outputSchema"):
		// Goblin also removes schemas that it cannot judge.
		out := rawjson.Get(def, "outputSchema")
		if rawjson.IsObject(out) && rawjson.GetString(out, "type") == "object" && !strings.HasPrefix(change, "outputSchema.") {
			return "schema/output-unsure"
		}
		return "schema/output"
	}
	return "definition/member"
}

func (c *checker) checkTool(subject string, def []byte, fixed *repair.Definition) {
	accepted := fixed.JSON
	if fixed.Legacy != nil {
		accepted = fixed.Legacy
	}
	c.checkSchemas(subject, accepted)
	text := rawjson.GetString(def, "description")
	if strings.TrimSpace(text) == "" {
		c.add("description/missing", subject, "no description")
	} else if n := utf8.RuneCountInString(text); n > maxDescribed {
		c.add("description/long", subject, "%d characters", n)
	}
	var bare []string
	for name, property := range rawjson.Members(objectOf(rawjson.Path(accepted, "inputSchema", "properties"))) {
		if rawjson.IsObject(property) && strings.TrimSpace(rawjson.GetString(property, "description")) == "" && rawjson.Get(property, "$ref") == nil {
			bare = append(bare, string(name.Name()))
		}
	}
	if len(bare) > 0 {
		c.add("description/argument", subject, "no description of %s", someOf(bare))
	}
	c.checkAnnotations(subject, accepted)
	if size := report.DefinitionSize(len(def)); size.Tokens > maxTokens {
		c.add("size/tool", subject, "about %d tokens", size.Tokens)
	}
}

func (c *checker) checkAnnotations(subject string, def []byte) {
	hint := func(name string) string { return string(rawjson.Get(objectOf(rawjson.Get(def, "annotations")), name)) }
	readOnly, destructive := hint("readOnlyHint"), hint("destructiveHint")
	switch {
	case readOnly == "" && destructive == "":
		c.add("annotation/missing", subject, "neither readOnlyHint nor destructiveHint")
	case readOnly == "true" && destructive == "true":
		c.add("annotation/contradiction", subject, "readOnlyHint and destructiveHint are both true")
	}
}

func (c *checker) checkPrompt(subject string, def []byte) {
	if strings.TrimSpace(rawjson.GetString(def, "description")) == "" {
		c.add("description/prompt", subject, "no description")
	}
	var bare []string
	for a := range rawjson.Elements(arrayOf(def, "arguments")) {
		if strings.TrimSpace(rawjson.GetString(objectOf(a), "description")) == "" {
			bare = append(bare, rawjson.GetString(objectOf(a), "name"))
		}
	}
	if len(bare) > 0 {
		c.add("description/prompt", subject, "no description of %s", someOf(bare))
	}
}

// someOf lists the first names.
func someOf(all []string) string {
	const most = 5
	text := clip(strings.Join(all[:min(len(all), most)], ", "))
	if len(all) > most {
		text += ", and " + termtext.Count(len(all)-most, "more argument")
	}
	return text
}

// checkNames checks the tools' names, alone and as clients list them.
func (c *checker) checkNames() {
	all := c.names()
	changed := make(map[string]string)
	for _, name := range all {
		subject := "tool " + clip(name)
		if len(name) > maxName {
			c.add("name/long", subject, "%d characters", len(name))
		} else {
			c.checkPrefixed(subject, name)
		}
		if !names.IsToolName(name) {
			level := bad
			if names.IsToolName(strings.ReplaceAll(name, ".", "")) {
				level = warning // the protocol permits dots
			}
			c.addLevel(level, "name/characters", subject, "clients that replace characters list it as %s", clip(names.Sanitize(name)))
		}
		if other, taken := changed[names.Sanitize(name)]; taken {
			c.add("name/collision", subject, "equal to %s as %s", clip(other), clip(names.Sanitize(name)))
		}
		changed[names.Sanitize(name)] = name
	}
}

// checkPrefixed checks the name with the prefixes that clients add for this server. They
// use the server's name in their own config, which is unknown for a command.
func (c *checker) checkPrefixed(subject, name string) {
	if c.o.Config.Path == "" {
		return
	}
	for _, l := range report.KnownLimits {
		if n := len(strings.ReplaceAll(l.Prefix, "goblin", c.s.Name)) + len(name); l.Name > 0 && n > l.Name {
			c.add("name/prefixed", subject, "%d characters in %s, which accepts %d", n, l.Client, l.Name)
		}
	}
}

// checkSizes adds up the definitions and compares them with the limits of clients.
func (c *checker) checkSizes() {
	listed := c.listedNames()
	total := 0
	for _, e := range c.entries[registry.Tool] {
		name := rawjson.GetString(objectOf(e), "name")
		total += len(e)
		tool := Tool{Name: termtext.Line(clip(c.o.Redact(name))), Listed: listed[name], Definitions: report.DefinitionSize(len(e))}
		c.r.Tools = append(c.r.Tools, tool)
		if plain := c.s.Name + "_" + name; tool.Listed != "" && tool.Listed != names.Sanitize(plain) && name != "" {
			c.add("name/listed", "tool "+clip(name), "listed as %s", tool.Listed)
		}
	}
	slices.SortStableFunc(c.r.Tools, func(a, b Tool) int { return cmp.Compare(b.Bytes, a.Bytes) })
	c.r.Definitions = report.DefinitionSize(total)
	if c.r.Definitions.Tokens > c.o.MaxTokens {
		c.add("size/total", "tools/list", "about %d tokens in %s; the threshold is %d", c.r.Definitions.Tokens, termtext.Count(len(c.r.Tools), "tool"), c.o.MaxTokens)
	}
	for _, l := range report.KnownLimits {
		if n := len(c.r.Tools); l.Tools > 0 && n > l.Tools {
			c.add("size/tools", "tools/list", "%s accepts %d tools and gets %d", l.Client, l.Tools, n)
		}
	}
}

// listedNames returns the names under which Goblin lists the tools.
func (c *checker) listedNames() map[string]string {
	server := c.s.Name
	configured := []string{server}
	for i := range c.o.Config.Servers {
		if s := &c.o.Config.Servers[i]; s.Name != server {
			configured = append(configured, s.Name)
		}
	}
	reg := registry.New(registry.Options{Servers: configured, Own: config.OwnTools(), MaxName: c.o.Config.Gateway.MaxName, Repair: true})
	reg.SetList(server, registry.Tool, c.entries[registry.Tool])
	listed := make(map[string]string)
	for e := range reg.Load().Server(server, registry.Tool) {
		listed[e.Name] = e.Listed
	}
	return listed
}

func (c *checker) checkInstructions(text string) {
	for _, l := range report.KnownLimits {
		if l.Instructions > 0 && len(text) > l.Instructions {
			c.add("size/instructions", "initialize", "%d bytes, about %d tokens", len(text), report.Tokens(len(text)))
		}
	}
}

// specified are the keys that the protocol defines, after its prefix.
var specified = []string{"related-task", "model-immediate-response", "serverInfo", "clientInfo", "subscriptionId", "protocolVersion", "clientCapabilities", "logLevel", "ui"}

// checkMeta checks the keys of an object's _meta.
func (c *checker) checkMeta(subject string, v []byte) {
	keys := make(map[string]bool)
	for k := range rawjson.Members(objectOf(rawjson.Get(objectOf(v), "_meta"))) {
		keys[string(k.Name())] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		prefix, name, prefixed := strings.Cut(key, "/")
		if !prefixed {
			prefix, name = "", key
		}
		switch {
		case !isMetaName(name) || prefixed && !isMetaPrefix(prefix):
			c.add("meta/key", subject, "key %q", clip(key))
		case isReserved(prefix) && (prefix != "io.modelcontextprotocol" || !slices.Contains(specified, name)):
			c.add("meta/reserved", subject, "key %q", clip(key))
		}
	}
}

// isReserved follows the revisions 2025-06-18 and 2025-11-25. The first reserves labels
// before the last one, the second the second label.
func isReserved(prefix string) bool {
	labels := strings.Split(prefix, ".")
	for i, label := range labels {
		if (label == "modelcontextprotocol" || label == "mcp") && (i == 1 || i < len(labels)-1) {
			return true
		}
	}
	return false
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isMetaName(s string) bool {
	for i := range len(s) {
		inside := 0 < i && i < len(s)-1 && strings.IndexByte("-_.", s[i]) >= 0
		if !isAlnum(s[i]) && !inside {
			return false
		}
	}
	return true
}

func isMetaPrefix(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || '0' <= label[0] && label[0] <= '9' || strings.ContainsAny(label, "_") || !isMetaName(label) {
			return false
		}
	}
	return true
}
