package config

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// References are ${keyring:NAME}, ${file:PATH} and ${cmd:PROGRAM ARGS…}. Their values are
// unknown while a file is read, so a Config contains them as written. [Server.Resolve]
// and [Gateway.Resolve] replace them with their values.

// Resolver returns the value of a reference. words depends on the kind: a name, the
// absolute path of a file, or a program to run in dir with its arguments. The error
// continues the reference: "is not set; run: goblin secret set NAME".
type Resolver func(ctx context.Context, kind string, words []string, dir string) (value string, err error)

const (
	keyringKind = "keyring"
	fileKind    = "file"
	commandKind = "cmd"

	maxWords = 64 // per command
)

var (
	referenceStart = pattern(`\$\{(?:keyring|file|cmd):`)
	secretName     = pattern(`^[A-Za-z0-9_][A-Za-z0-9_./@-]{0,127}$`)
)

// IsReferenceKind reports whether ${kind:…} is a reference.
func IsReferenceKind(kind string) bool {
	return kind == keyringKind || kind == fileKind || kind == commandKind
}

type secretRef struct {
	kind  string
	words []string
}

// String returns the reference for messages, without a command's arguments, which may be
// secrets.
func (f secretRef) String() string {
	shown := f.words[0]
	if len(f.words) > 1 {
		shown += " …"
	}
	if r := []rune(shown); len(r) > 200 {
		shown = string(r[:200]) + "…"
	}
	shown = strconv.Quote(shown)
	return "${" + f.kind + ":" + shown[1:len(shown)-1] + "}"
}

// resolveReference returns the reference as written if values are not available yet.
func (r *reader) resolveReference(e *expansion, body string, depth int) (value string, ok bool) {
	kind, rest, found := strings.Cut(body, ":")
	if !found || strings.HasPrefix(rest, "-") { // a variable with a default
		return "", false
	}
	var f secretRef
	switch {
	case !IsReferenceKind(kind):
		return "", false
	case r.lenient && r.server != nil && plainInClient(r.file, kind):
		e.plain = append(e.plain, kind)
		return "${" + body + "}", true
	case depth > 0: // a command's arguments are visible to other users
		e.wrong = "has ${" + kind + ":…} inside another ${…}; remove the outer one"
		return "", true
	}
	switch kind {
	case keyringKind:
		f = secretRef{kind, []string{rest}}
		if !secretName().MatchString(rest) {
			e.wrong = `has a "${keyring:…}" with an invalid name; use up to 128 letters, digits, "_", "-", ".", "/" and "@"`
		}
	case fileKind:
		f = r.fileReference(e, rest, depth)
	case commandKind:
		f = commandReference(e, rest, depth)
	}
	written := "${" + body + "}"
	if e.wrong != "" || len(e.unset) > 0 {
		return "", true
	}
	e.late = append(e.late, f.String())
	if r.resolve == nil {
		return written, true
	}
	value, err := r.resolve(f)
	if err != nil {
		e.failed = append(e.failed, [2]string{f.String(), err.Error()})
	}
	return value, true
}

func (r *reader) fileReference(e *expansion, rest string, depth int) secretRef {
	at := e.expand(rest, depth+1)
	home := homeOf(r.ask)
	switch {
	case e.wrong != "" || len(e.unset) > 0:
	case strings.TrimSpace(at) == "":
		e.wrong = `has a "${file:…}" without a path`
	case noNUL(at) != "":
		e.wrong = `has a "${file:…}" with a NUL character`
	case strings.HasPrefix(at, "~/") && home == "":
		e.wrong = `has a "${file:~/…}", but HOME is not set`
	case strings.HasPrefix(at, "~/"):
		at = filepath.Join(home, at[2:])
	case !filepath.IsAbs(at):
		at = filepath.Join(r.dir, at)
	}
	return secretRef{fileKind, []string{at}}
}

// commandReference expands each word separately, so a variable never becomes two words.
func commandReference(e *expansion, rest string, depth int) secretRef {
	words, ok := split(rest)
	switch {
	case !ok:
		e.wrong = `has a "${cmd:…}" with an unclosed quote`
	case len(words) == 0:
		e.wrong = `has a "${cmd:…}" without a program`
	case len(words) > maxWords:
		e.wrong = fmt.Sprintf(`has a "${cmd:…}" with more than %d words`, maxWords)
	}
	for i := 0; i < len(words) && e.wrong == ""; i++ {
		if words[i] = e.expand(words[i], depth+1); noNUL(words[i]) != "" {
			e.wrong = `has a "${cmd:…}" with a NUL character`
		}
	}
	if len(words) == 0 || words[0] == "" && len(e.unset) == 0 && e.wrong == "" {
		if e.wrong == "" {
			e.wrong = `has a "${cmd:…}" without a program`
		}
		words = []string{""}
	}
	return secretRef{commandKind, words}
}

// split splits a command at spaces outside of '…' and "…". Other characters are literal,
// so paths with backslashes work.
func split(s string) (words []string, ok bool) {
	var word strings.Builder
	open, inWord := rune(0), false
	for _, c := range s {
		switch {
		case open != 0 && c == open:
			open = 0
		case open != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			open, inWord = c, true
		case strings.ContainsRune(" \t\r\n", c):
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, open == 0
}

func withReferences[V any](k kind[V]) kind[V] {
	return kind[V]{schema: k.schema, read: func(r *reader, at keyPath, n *yaml.Node, dst *V) {
		before := r.secret
		r.secret = true
		k.read(r, at, n, dst)
		r.secret = before
	}}
}

func (r *reader) noteReferences(at keyPath, n *yaml.Node, e *expansion) {
	for _, kind := range e.plain {
		r.warn(n, "%s has ${%s:…}, which is plain text in a client's file; run goblin init to import its servers", at, kind)
	}
	r.late = len(e.late) > 0 && r.resolve == nil
	switch {
	case len(e.late) > 0 && !r.secret:
		e.wrong = "is needed before servers start and cannot contain " + e.late[0] +
			"; references are allowed in command, args, env, cwd, url, headers, oauth.client_secret, gateway.auth_token and otel.headers"
	case len(e.failed) > 0 && r.server != nil:
		for _, f := range e.failed { // the fix comes last, ready to copy
			r.issue(n, "%s (%s) %s", f[0], at, f[1])
		}
	case len(e.failed) > 0:
		r.noToken = r.problem(n, "%s (%s) %s", e.failed[0][0], at, e.failed[0][1])
	}
	if r.server == nil || len(e.late) == 0 {
		return
	}
	for _, f := range e.late {
		if !slices.Contains(r.server.late, f) {
			r.server.late = append(r.server.late, f)
		}
	}
	e.other = append(e.other, e.late...)
	if r.resolve == nil {
		e.other = nil // not a value yet
	}
}

// ask records the answer for Resolve.
func (r *reader) ask(name string) (string, bool) {
	value, ok := r.env(name)
	if r.asked != nil {
		r.asked[name] = nil
		if ok {
			r.asked[name] = &value
		}
	}
	return value, ok
}

// origin is the context for reading a text again.
type origin struct {
	file, dir string
	lenient   bool
	asked     map[string]*string
}

func (r *reader) origin() origin { return origin{r.file, r.dir, r.lenient, r.asked} }

// reader returns a reader that appends the values of references to found.
func (o *origin) reader(ctx context.Context, resolve Resolver, found *[]string) *reader {
	r := &reader{file: o.file, dir: o.dir, lenient: o.lenient, env: func(name string) (string, bool) {
		value := o.asked[name]
		if value == nil {
			return "", false
		}
		return *value, true
	}}
	r.resolve = func(f secretRef) (string, error) {
		if resolve == nil {
			return "", errors.New("is not available here")
		}
		value, err := resolve(ctx, f.kind, f.words, o.dir)
		if err == nil {
			*found = append(*found, value)
		}
		return value, err
	}
	return r
}

type lateServer struct {
	origin
	refs []string // as shown to users, sorted
	pair pair
}

// References returns the references in the server's texts, as shown to users.
func (s *Server) References() []string {
	if s.late == nil {
		return nil
	}
	return slices.Clone(s.late.refs)
}

var keyringName = pattern(`\$\{keyring:([^{}]+)\}`)

// KeyringNames returns the keyring secrets in the server's texts with their lines.
func (s *Server) KeyringNames() map[string]int {
	if s.late == nil {
		return nil
	}
	lines := make(map[string]int)
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		n = target(n)
		for _, m := range keyringName().FindAllStringSubmatch(n.Value, -1) {
			if _, ok := lines[m[1]]; !ok {
				lines[m[1]] = n.Line
			}
		}
		for _, inner := range n.Content {
			walk(inner)
		}
	}
	walk(s.late.pair.val)
	return lines
}

// IsReference reports whether a text of the server has unresolved references.
func (s *Server) IsReference(text string) bool {
	return s.late != nil && referenceStart().MatchString(text)
}

// Resolved is a Server with the values of its references.
type Resolved struct {
	*Server
	Secrets []string // the values
}

// UnresolvedError reports references without a usable value. Its text names the
// reference, its place in the file, and the fix.
type UnresolvedError struct {
	Text     string
	Texts    []string // the parts of Text, each with its own fix
	Location string   // file:line
}

func (e *UnresolvedError) Error() string { return e.Text }

// IsUnresolved reports whether an error is an [UnresolvedError]. Automatic retries could
// ask the user for a password repeatedly.
func IsUnresolved(err error) bool {
	var why *UnresolvedError
	return errors.As(err, &why)
}

// Resolve returns the server with the values of its references, or the server itself if
// it has none. Fields without references may differ from the file. The error is an
// *UnresolvedError that covers all missing or wrong values.
func (s *Server) Resolve(ctx context.Context, resolve Resolver) (Resolved, error) {
	if s.late == nil {
		return Resolved{Server: s}, nil
	}
	found := Resolved{}
	r := s.late.reader(ctx, resolve, &found.Secrets)
	var state serverState
	now := r.readServer(s.late.pair, s.Name, &state)
	state.issues = append(state.issues, r.errs...) // mistakes in texts with values filled in
	if len(state.issues) > 0 {
		var why []string
		for _, p := range sortProblems(state.issues) {
			why = append(why, p.Text)
		}
		first := state.issues[0]
		return found, &UnresolvedError{Text: strings.Join(why, "; "), Texts: why, Location: fmt.Sprintf("%s:%d", first.File, first.Line)}
	}
	v := *s
	v.late = nil
	v.Command = now.Command
	v.Args = now.Args
	v.Env = now.Env
	v.URL = now.URL
	v.Headers = now.Headers
	v.OAuth.ClientSecret, v.FromEnv, v.Variables = now.OAuth.ClientSecret, now.FromEnv, now.Variables
	if s.IsReference(s.Cwd) {
		v.Cwd = now.Cwd
	}
	found.Server = &v
	return found, nil
}

type lateText struct {
	origin
	at   keyPath
	node *yaml.Node
}

// Resolve returns the gateway with the values of its references. If one has no value,
// NoToken has the reason.
func (g Gateway) Resolve(ctx context.Context, resolve Resolver) (now Gateway, secrets []string) {
	if g.lateToken == nil {
		return g, nil
	}
	r := g.lateToken.reader(ctx, resolve, &secrets)
	token := ""
	readToken(r, g.lateToken.at, g.lateToken.node, &token)
	node := g.lateToken.node
	g.lateToken, g.AuthToken, g.NoToken = nil, token, r.noToken
	switch {
	case len(r.errs) > 0:
		g.NoToken = r.errs[0]
	case token == "" && g.NoToken.Text == "": // an empty token would leave the gateway open
		g.NoToken = r.problem(node, "auth_token has no value")
	}
	if g.NoToken.Text != "" {
		g.AuthToken = ""
	}
	return g, secrets
}
