package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"goblin/registry/termtext"
	"goblin/registry/yamltext"
)

const (
	maxFile    = 4 << 20  // bytes
	maxAliased = 100_000  // nodes that aliases add to a file
	maxCopied  = 16 << 20 // bytes that aliases add to a file
	maxDepth   = 1000     // for JSON; the YAML parser has its own limit
	bom        = "\ufeff"
)

// Parse parses a configuration. name appears in messages, and its directory is the base
// of relative paths. env looks up variables. The error is an *Errors with every mistake.
//
// A JSON object with mcpServers counts as another MCP client's file. So does any file
// named .json or .jsonc. Unknown keys are then no mistakes. An unusable
// entry is disabled without affecting the others.
func Parse(name string, src []byte, env func(string) (string, bool)) (*Config, error) {
	if len(src) > maxFile {
		return nil, fileError(name, "is larger than %s", termtext.ExactSize(maxFile))
	}
	full, err := filepath.Abs(name)
	if err != nil {
		return nil, fileError(name, "has no absolute path: %v", err)
	}
	env = withProgram(env)
	src = bytes.TrimPrefix(src, []byte(bom))
	root, lenient, bad := parseNodes(name, src)
	if bad != nil {
		return nil, bad
	}
	r := &reader{file: name, dir: filepath.Dir(full), env: env, lenient: lenient}
	r.readEnvFile(root)
	cfg := defaults()
	cfg.Path = full
	seen := readTable(r, keyPath{}, topKeys(), root, &cfg)
	cfg.EnvNames = r.fileNames
	r.checkTop(seen, &cfg)
	if len(r.errs) > 0 {
		return nil, &Errors{Problems: sortProblems(r.errs), Warnings: sortProblems(r.warns), EnvFile: cfg.EnvFile}
	}
	cfg.Warnings, cfg.Mistakes = sortProblems(r.warns), sortProblems(r.mistakes)
	return &cfg, nil
}

func (r *reader) checkTop(seen map[string]*yaml.Node, cfg *Config) {
	a, b := seen["servers"], seen["mcpServers"]
	if a != nil && b != nil {
		if a.Line > b.Line {
			a, b = b, a
		}
		r.fail(b, "%q and %q are mutually exclusive; keep one of them", a.Value, b.Value)
	}
	if len(cfg.Servers) == 0 && len(r.errs) == 0 {
		r.warns = append(r.warns, Problem{File: r.file, Text: "no servers are configured; add one under \"servers\""})
	}
	if len(r.servers) == len(cfg.Servers) {
		r.warnNames(cfg.Servers)
		r.warnProjects(cfg.Servers)
		r.warnOpenProjects(cfg)
	}
	r.checkProfiles(cfg)
	r.checkOverrides(cfg)
	r.warnRules(cfg)
}

func readGateway(r *reader, at keyPath, n *yaml.Node, g *Gateway) {
	seen := readTable(r, at, gatewayKeys(), n, g)
	g.lateToken = r.lateToken
	token := seen["auth_token"]
	if r.badToken {
		token = nil
	}
	if g.NoToken = r.noToken; g.NoToken.Text != "" {
		r.warns = append(r.warns, g.NoToken)
	}
	if g.AuthToken == "" && !r.badToken && g.Listen != "" && !isLoopback(g.Listen) {
		r.fail(seen["listen"], "%s %s", at.key("listen"), needsToken)
	} else if g.AuthToken == "" && token != nil {
		r.warn(token, "%s is empty, so every user of this machine may call Goblin", at.key("auth_token"))
	}
	if len(g.AllowedHosts) > 0 && g.AuthToken == "" && g.NoToken.Text == "" && !r.badToken {
		r.warn(seen["allowed_hosts"], "allowed_hosts without auth_token: every client that reaches the proxy may call all servers; set auth_token")
	}
	if g.Namespace == NamespaceFlat {
		r.warn(seen["namespace"], "namespace: %s", flatIsNoURI)
	}
}

const flatIsNoURI = "flat lists resources by ids that are not URIs; clients that validate URIs, such as the Python SDK 1.x, reject the whole list"

// readToken also records a mistake, so that the token is not reported as missing too. An
// unset variable is a mistake only if Goblin listens.
func readToken(r *reader, at keyPath, n *yaml.Node, dst *string) {
	before := len(r.errs)
	r.inToken = true
	if r.resolve == nil {
		r.asked = make(map[string]*string)
		defer func() { r.asked = nil }()
	}
	withReferences(text(tokenComplaint)).read(r, at, n, dst)
	r.inToken = false
	if r.late {
		r.lateToken = &lateText{r.origin(), at, n}
	}
	r.badToken = len(r.errs) > before || r.noToken.Text != ""
}

func readRoot(r *reader, at keyPath, n *yaml.Node, dst *Root) {
	if isNull(n) || n.Kind == yaml.MappingNode && readTable(r, at, rootKeys(), n, dst)["uri"] == nil {
		r.fail(n, `%s needs "uri"`, at)
	} else if n.Kind != yaml.MappingNode {
		r.fail(n, "%s must be a mapping with \"uri\" and optionally \"name\", not %s", at, describe(n))
	}
}

// parseNodes returns a tree whose aliases are safe to follow.
func parseNodes(name string, src []byte) (root *yaml.Node, lenient bool, bad *Errors) {
	empty := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: 1}
	isFile := IsJSON(name)
	text := bytes.TrimSpace(src)
	if len(text) == 0 {
		return empty, isFile, nil
	}
	if isFile || text[0] == '{' && json.Valid(src) {
		root, bad = parseJSON(name, src)
		if bad != nil {
			return nil, false, bad
		}
		if root.Kind != yaml.MappingNode {
			return nil, false, lineError(name, root.Line, "the file must be a mapping, not %s", describe(root))
		}
		return root, isFile || hasKey(root, "mcpServers"), nil
	}
	root, bad = parseYAML(name, src)
	if bad != nil {
		return nil, false, bad
	}
	if root == nil || isNull(root) {
		return empty, false, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, false, lineError(name, root.Line, "the file must be a mapping, not %s", describe(root))
	}
	return root, false, nil
}

// IsJSON reports whether a file's extension is one of JSON. Such a file may contain
// comments.
func IsJSON(name string) bool {
	ext := filepath.Ext(name)
	return strings.EqualFold(ext, ".json") || strings.EqualFold(ext, ".jsonc")
}

func hasKey(n *yaml.Node, name string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}

func parseYAML(name string, src []byte) (*yaml.Node, *Errors) {
	root, second, bad := yamltext.Parse(src)
	switch {
	case bad != nil:
		return nil, lineError(name, bad.Line, "not valid YAML: %s", bad.Text)
	case second > 0:
		return nil, lineError(name, second, "a second YAML document begins here; a config is one document")
	case root == nil:
		return nil, nil
	}
	root = target(root)
	if bad := checkAliases(name, root); bad != nil {
		return nil, bad
	}
	return root, nil
}

type aliases struct {
	open         map[*yaml.Node]bool // ancestors of the current node
	nodes, bytes int                 // added by aliases
}

func checkAliases(name string, root *yaml.Node) *Errors {
	a := aliases{open: make(map[*yaml.Node]bool)}
	return a.follow(name, root, nil)
}

// follow walks a node and its aliases. alias is the outermost alias on the path, or nil.
func (a *aliases) follow(name string, n, alias *yaml.Node) *Errors {
	if n.Kind == yaml.AliasNode {
		if a.open[n.Alias] {
			return lineError(name, n.Line, "the alias *%s contains itself", n.Value)
		}
		return a.follow(name, n.Alias, cmp.Or(alias, n))
	}
	if alias != nil {
		if a.nodes, a.bytes = a.nodes+1, a.bytes+len(n.Value); a.nodes > maxAliased || a.bytes > maxCopied {
			return lineError(name, alias.Line, "the file's aliases expand to too much text; use fewer")
		}
	}
	a.open[n] = true
	defer delete(a.open, n)
	for _, c := range n.Content {
		if bad := a.follow(name, c, alias); bad != nil {
			return bad
		}
	}
	return nil
}
