package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// translation rewrites an entry in another client's format to Goblin's keys for the
// transport: command, args, env, cwd, url, type, headers and disabled. Other keys stay
// unchanged.
type translation struct {
	n      *yaml.Node                                                 // the entry, a mapping
	note   func(at *yaml.Node, lost bool, format string, args ...any) // lost: a part of the entry is dropped
	exists func(command string) bool
	split  func(at *yaml.Node) // reports a split command line
	why    string              // reason for an unusable entry, or ""
	whyAt  *yaml.Node
}

// foreignKeys maps synonyms, in lower case without "-" and "_", to Goblin's keys.
var foreignKeys = map[string]string{
	"cmd": "command", "program": "command", "executable": "command", "commandline": "command",
	"arguments": "args", "argv": "args",
	"environment": "env", "envs": "env", "environmentvariables": "env", "envvariables": "env",
	"workingdirectory": "cwd", "workingdir": "cwd", "workdir": "cwd",
	"serverurl": "url", "httpurl": "url", "baseurl": "url", "uri": "url", "endpoint": "url", "sseurl": "url",
	"httpheaders": "headers", "requestheaders": "headers", "customheaders": "headers",
	"transporttype": "type",
	"enabled":       "disabled", "isactive": "disabled", "isenabled": "disabled", "active": "disabled", "isdisabled": "disabled",
}

var envelopes = []string{"transport", "connection", "server", "config", "stdio", "http", "sse"}

var requestOptions = []string{"requestInit", "requestOptions", "eventSourceInit", "fetchOptions"}

func isComment(key string) bool {
	return key == "" || strings.HasPrefix(key, "//") || strings.HasPrefix(key, "#") || strings.HasPrefix(key, "$") ||
		slices.Contains([]string{"_comment", "_comments", "_note", "comment"}, key)
}

// Note describes a difference between a translated entry and the client's.
type Note struct {
	Text    string // continues the server's name
	Partial bool   // the entry does less than in its client
}

// Translate rewrites an entry of another client with Goblin's keys. exists reports
// whether a command, with variables in the client's syntax, is a file or a program in
// PATH. A non-empty why says that the entry is unusable.
func Translate(entry map[string]any, exists func(command string) bool) (out map[string]any, notes []Note, why string) {
	n := new(yaml.Node)
	if err := n.Encode(entry); err != nil || n.Kind != yaml.MappingNode {
		return nil, nil, "is malformed"
	}
	t := translation{n: n, exists: exists, note: func(_ *yaml.Node, lost bool, format string, args ...any) {
		notes = append(notes, Note{fmt.Sprintf(format, args...), lost})
	}}
	t.split = func(at *yaml.Node) {
		t.note(at, false, `has arguments in "command", which is split as a shell would`)
	}
	t.run()
	if err := t.n.Decode(&out); err != nil {
		return nil, nil, "is malformed"
	}
	return out, notes, t.why
}

// translated only splits command lines in Goblin's own files.
func (r *reader) translated(at keyPath, n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.MappingNode || r.resolve != nil { // translated when the file was read
		return n
	}
	copied := *n
	copied.Content = slices.Clone(n.Content)
	t := translation{n: &copied, exists: r.programIsThere, note: func(n *yaml.Node, _ bool, format string, args ...any) {
		r.warn(n, "%s %s", at, fmt.Sprintf(format, args...))
	}, split: func(n *yaml.Node) {
		r.server.divided = true
		r.warn(n, `"command" in %s contains a space; arguments belong in "args"`, at)
	}}
	if r.lenient {
		t.run()
	} else {
		t.splitLine()
	}
	if t.why != "" {
		r.issue(t.whyAt, "%s %s", at, t.why)
		r.server.typo = true // one reason is enough
	}
	return &copied
}

func (t *translation) run() {
	t.dropAbsent()
	t.unwrap()
	t.requestHeaders()
	t.rename()
	t.pairs("env", "=")
	t.pairs("headers", ":")
	t.choose()
	t.splitCommand()
	t.arguments()
}

func (t *translation) reject(at *yaml.Node, format string, args ...any) {
	if t.why == "" {
		t.why, t.whyAt = fmt.Sprintf(format, args...), at
	}
}

func (t *translation) find(name string) int { return indexOf(t.n, name) }

func indexOf(n *yaml.Node, name string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return i
		}
	}
	return -1
}

func (t *translation) get(name string) (key, value *yaml.Node) {
	if i := t.find(name); i >= 0 {
		return t.n.Content[i], t.n.Content[i+1]
	}
	return nil, nil
}

func (t *translation) remove(name string) {
	if i := t.find(name); i >= 0 {
		t.n.Content = slices.Delete(slices.Clone(t.n.Content), i, i+2)
	}
}

func (t *translation) set(at *yaml.Node, name string, value *yaml.Node) {
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: at.Line}
	if i := t.find(name); i >= 0 {
		t.n.Content = slices.Clone(t.n.Content)
		t.n.Content[i], t.n.Content[i+1] = key, value
		return
	}
	t.n.Content = append(slices.Clip(t.n.Content), key, value)
}

func textNode(at *yaml.Node, s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Line: at.Line}
}

func isText(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" }

// isBlank reports whether clients write the value to mean "none".
func isBlank(n *yaml.Node) bool {
	return isNull(n) || isText(n) && strings.TrimSpace(n.Value) == ""
}

// dropAbsent removes null values, including those in env, headers and args.
func (t *translation) dropAbsent() {
	var kept []*yaml.Node
	for i := 0; i+1 < len(t.n.Content); i += 2 {
		key, value := t.n.Content[i], target(t.n.Content[i+1])
		if isNull(value) {
			continue
		}
		if at := indexOf(&yaml.Node{Content: kept}, key.Value); at >= 0 { // like JSON parsers: the last one wins
			t.note(key, false, "has %s twice; the last one is used", quoteKey(key.Value))
			kept = slices.Delete(kept, at, at+2)
		}
		kept = append(kept, key, withoutNulls(value, 0))
	}
	t.n.Content = kept
}

func withoutNulls(n *yaml.Node, depth int) *yaml.Node {
	if n.Kind == yaml.ScalarNode || depth > maxDepth {
		return n
	}
	copied := *n
	copied.Content = nil
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	for i := 0; i+step <= len(n.Content); i += step {
		value := target(n.Content[i+step-1])
		if isNull(value) {
			continue
		}
		copied.Content = append(copied.Content, n.Content[i:i+step-1]...)
		copied.Content = append(copied.Content, withoutNulls(value, depth+1))
	}
	return &copied
}

// unwrap moves keys from inner mappings to the entry, whose own keys win.
func (t *translation) unwrap() {
	for _, name := range envelopes {
		key, inner := t.get(name)
		if inner == nil {
			continue
		}
		if name == "transport" && isText(inner) {
			t.remove(name)
			if _, there := t.get("type"); there == nil {
				t.set(key, "type", inner)
			}
			continue
		}
		if inner.Kind != yaml.MappingNode || name != "transport" && !hasTransport(inner) {
			continue
		}
		t.remove(name)
		if (name == "stdio" || name == "http" || name == "sse") && indexOf(inner, "type") < 0 {
			t.set(key, "type", textNode(key, name))
		}
		for i := 0; i+1 < len(inner.Content); i += 2 {
			if t.find(inner.Content[i].Value) < 0 {
				t.set(inner.Content[i], inner.Content[i].Value, inner.Content[i+1])
			}
		}
	}
}

func (t *translation) requestHeaders() {
	for _, name := range requestOptions {
		key, inner := t.get(name)
		if inner == nil || inner.Kind != yaml.MappingNode {
			continue
		}
		t.remove(name)
		for i := 0; i+1 < len(inner.Content); i += 2 {
			if inner.Content[i].Value == "headers" {
				t.merge(inner.Content[i], "headers", inner.Content[i+1])
			} else if !isComment(inner.Content[i].Value) {
				t.note(key, true, "has %s in %s, which is unknown and ignored", quoteKey(inner.Content[i].Value), quoteKey(name))
			}
		}
	}
}

func hasTransport(n *yaml.Node) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := canonicalKey(n.Content[i].Value); name == "command" || name == "url" {
			return n.Content[i+1].Kind != yaml.MappingNode
		}
	}
	return false
}

// merge adds the pairs of a mapping or a list. Existing pairs win.
func (t *translation) merge(at *yaml.Node, name string, value *yaml.Node) {
	_, there := t.get(name)
	switch {
	case there == nil || isBlank(there):
		t.set(at, name, value)
	case there.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
		all := *there
		all.Content = slices.Clone(there.Content)
		for i := 0; i+1 < len(value.Content); i += 2 {
			if indexOf(there, value.Content[i].Value) < 0 {
				all.Content = append(all.Content, value.Content[i], value.Content[i+1])
			}
		}
		t.set(at, name, &all)
	case there.Kind == yaml.SequenceNode && value.Kind == yaml.SequenceNode:
		all := *there
		all.Content = slices.Concat(there.Content, value.Content)
		t.set(at, name, &all)
	default:
		t.note(at, true, "has %s in two forms; one is ignored", quoteKey(name))
	}
}

func canonicalKey(name string) string {
	folded := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
	if to, ok := foreignKeys[folded]; ok {
		return to
	}
	if folded == "disabled" || slices.Contains(transportServerKeys, folded) {
		return folded
	}
	return name
}

var transportServerKeys = []string{"command", "args", "env", "cwd", "url", "type", "headers"}

func (t *translation) rename() {
	old := &yaml.Node{Content: t.n.Content}
	t.n.Content = nil
	for i := 0; i+1 < len(old.Content); i += 2 {
		key, value := old.Content[i], old.Content[i+1]
		name := canonicalKey(key.Value)
		switch {
		case name == "disabled":
			t.setDisabled(key, value)
		case !slices.Contains(transportServerKeys, name):
			t.set(key, name, value)
		case isBlank(value):
		case name == "env" || name == "headers":
			t.merge(key, name, value)
		case name != key.Value:
			t.renameOne(key, value, name, old)
		default:
			t.set(key, name, value)
		}
	}
}

func (t *translation) renameOne(key, value *yaml.Node, name string, old *yaml.Node) {
	_, other := t.get(name)
	if i := indexOf(old, name); i >= 0 && !isBlank(old.Content[i+1]) {
		other = old.Content[i+1]
	}
	switch {
	case other == nil:
		t.set(key, name, value)
		if strings.EqualFold(key.Value, "sseUrl") && indexOf(old, "type") < 0 {
			t.set(key, "type", textNode(key, "sse"))
		}
	case !isText(value) || other.Value != value.Value:
		t.note(key, true, "has both %s and %s; the first is ignored", quoteKey(key.Value), quoteKey(name))
	}
}

// setDisabled translates the keys by which clients disable servers. One key that disables
// is enough.
func (t *translation) setDisabled(key, value *yaml.Node) {
	on, ok := boolean(value)
	if text := strings.ToLower(strings.TrimSpace(value.Value)); !ok && value.Kind == yaml.ScalarNode {
		on, ok = text == "true" || text == "1" || text == "yes" || text == "on", slices.Contains([]string{"true", "1", "yes", "on", "false", "0", "no", "off"}, text)
	}
	if !ok {
		t.reject(key, "has %s, which must be true or false", quoteKey(key.Value))
		return
	}
	if name := strings.ToLower(key.Value); !strings.Contains(name, "disabled") {
		on = !on
	}
	if _, there := t.get("disabled"); there == nil || on {
		t.set(key, "disabled", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(on), Line: key.Line})
	}
}

// pairs converts a list of {name, value}, "NAME=value" or "Name: value" to a mapping.
func (t *translation) pairs(name, sign string) {
	key, list := t.get(name)
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	all := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: list.Line}
	for _, item := range list.Content {
		label, value := onePair(target(item), sign)
		if label == nil {
			t.note(item, true, "has an entry in %s that is neither {name, value} nor \"NAME%sVALUE\"; it is ignored", quoteKey(name), sign)
			continue
		}
		if i := indexOf(all, label.Value); i >= 0 {
			all.Content[i+1] = value
			continue
		}
		all.Content = append(all.Content, label, value)
	}
	t.set(key, name, all)
}

func onePair(item *yaml.Node, sign string) (label, value *yaml.Node) {
	switch {
	case item.Kind == yaml.MappingNode:
		label, value = mappedPair(item, sign)
	case item.Kind == yaml.SequenceNode && len(item.Content) == 2:
		label, value = item.Content[0], item.Content[1]
	case isText(item):
		label, value = writtenPair(item, sign)
	}
	if label == nil || value == nil || !isText(label) || label.Value == "" || value.Kind != yaml.ScalarNode {
		return nil, nil
	}
	return label, value
}

// mappedPair reads {name, value} or {NAME: value}.
func mappedPair(item *yaml.Node, sign string) (label, value *yaml.Node) {
	for i := 0; i+1 < len(item.Content); i += 2 {
		switch strings.ToLower(item.Content[i].Value) {
		case "name", "key", "header", "variable":
			label = item.Content[i+1]
		case "value", "val":
			value = item.Content[i+1]
		}
	}
	switch {
	case label == nil && value == nil && len(item.Content) == 2:
		return item.Content[0], item.Content[1]
	case label != nil && value == nil && sign == "=" && variable().MatchString(label.Value): // inherited, as in Docker
		return label, textNode(label, "${"+label.Value+"}")
	}
	return label, value
}

// writtenPair reads "NAME=value", "NAME" or "Name: value".
func writtenPair(item *yaml.Node, sign string) (label, value *yaml.Node) {
	name, text, ok := strings.Cut(item.Value, sign)
	name = strings.TrimSpace(name)
	switch {
	case ok && sign == ":":
		text = strings.TrimSpace(text)
	case !ok && sign == "=" && variable().MatchString(name):
		text = "${" + name + "}"
	case !ok:
		return nil, nil
	}
	return textNode(item, name), textNode(item, text)
}

func (t *translation) choose() {
	typeKey, word := t.get("type")
	commandKey, command := t.get("command")
	urlKey, address := t.get("url")
	kind := ""
	if word != nil && isText(word) {
		var why string
		kind, why = transportOf(word.Value)
		t.remove("type")
		switch {
		case why != "" && (command == nil || strings.HasPrefix(why, "is ")):
			t.reject(typeKey, "%s", why)
			t.remove("url") // its mistakes would only repeat this one
			return
		case why != "":
			t.note(typeKey, false, "%s; it is ignored because the entry has a command", why)
		}
	}
	switch {
	case command != nil && address != nil && kind == "stdio":
		t.note(urlKey, false, "has both a URL and a command; the URL is ignored because its type is stdio")
		t.remove("url")
	case command != nil && address != nil:
		t.note(commandKey, false, "has both a command and a URL; the command is ignored")
		t.remove("command")
	}
	if _, address = t.get("url"); address != nil && kind != "stdio" && kind != "" {
		t.set(typeKey, "type", textNode(typeKey, kind))
	}
	if _, command = t.get("command"); command != nil && kind == "stdio" {
		t.set(typeKey, "type", textNode(typeKey, kind))
	}
}

// splitCommand also accepts a list and a mapping.
func (t *translation) splitCommand() {
	key, command := t.get("command")
	switch {
	case command == nil:
	case command.Kind == yaml.SequenceNode:
		t.prepend(key, command.Content)
	case command.Kind == yaml.MappingNode: // old Zed format
		t.remove("command")
		for i := 0; i+1 < len(command.Content); i += 2 {
			name := canonicalKey(command.Content[i].Value)
			if name == "path" {
				name = "command"
			}
			if name == "env" {
				t.merge(command.Content[i], name, command.Content[i+1])
			} else if t.find(name) < 0 {
				t.set(command.Content[i], name, command.Content[i+1])
			}
		}
		t.splitLine()
	default:
		t.splitLine()
	}
}

// splitLine splits a whole line in command, unless a program has that name.
func (t *translation) splitLine() {
	key, command := t.get("command")
	if command == nil || !isText(command) || !strings.ContainsAny(strings.TrimSpace(command.Value), " \t\n\"'") || t.exists(command.Value) {
		return
	}
	line, problem := t.parse(command.Value)
	switch {
	case problem != "":
		t.reject(key, "%s", problem)
		return
	case len(line.words) == 0, len(line.words) == 1 && line.words[0] == strings.TrimSpace(command.Value):
		return
	}
	t.split(key)
	words := make([]*yaml.Node, len(line.words))
	for i, word := range line.words {
		words[i] = textNode(command, word)
	}
	t.prepend(key, words)
	if len(line.env) > 0 {
		set := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: key.Line}
		for _, pair := range line.env {
			set.Content = append(set.Content, textNode(key, pair[0]), textNode(key, pair[1]))
		}
		t.merge(key, "env", set)
	}
}

// maxPath is the length limit for program paths with spaces, in bytes.
const maxPath = 1024

// parse splits a command line. The longest existing path that contains spaces becomes the
// command.
func (t *translation) parse(line string) (commandLine, string) {
	line = strings.TrimSpace(line)
	for at := len(line); at < maxPath && strings.ContainsRune(line, '/'); {
		at = strings.LastIndexByte(line[:at], ' ')
		if at < 0 || !strings.Contains(line[:at], " ") {
			break
		}
		if strings.Contains(line[:at], "/") && t.exists(line[:at]) {
			words, problem := splitWords(line[at:])
			return commandLine{words: append([]string{line[:at]}, words...)}, problem
		}
	}
	return parseCommandLine(line)
}

func (t *translation) prepend(key *yaml.Node, words []*yaml.Node) {
	if len(words) == 0 {
		t.remove("command")
		return
	}
	t.set(key, "command", words[0])
	rest := words[1:]
	at, args := t.get("args")
	switch {
	case len(rest) == 0:
		return
	case args == nil:
		at, args = key, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: key.Line}
	case isText(args):
		args = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: args.Line, Content: splitArgs(args)}
	case args.Kind != yaml.SequenceNode:
		return // reported elsewhere
	}
	all := *args
	all.Content = slices.Concat(rest, args.Content)
	t.set(at, "args", &all)
}

func (t *translation) arguments() {
	key, args := t.get("args")
	if args == nil || !isText(args) {
		return
	}
	t.note(key, false, `has a single text in "args", which is split as a shell would`)
	t.set(key, "args", &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: args.Line, Content: splitArgs(args)})
}

func splitArgs(args *yaml.Node) (list []*yaml.Node) {
	words, problem := splitWords(args.Value)
	if problem != "" {
		words = []string{args.Value}
	}
	for _, word := range words {
		list = append(list, textNode(args, word))
	}
	return list
}
