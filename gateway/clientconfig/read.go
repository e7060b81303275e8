package clientconfig

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"goblin/gateway/config"
)

// Server is a client's entry in the form of Goblin's config.
type Server struct {
	Name         string // valid in Goblin's config
	OriginalName string // in the client's file
	Keys         map[string]any
	// Notes lists differences from the client's entry.
	Notes []string
	// Partial reports whether a part of the client's entry is dropped.
	Partial bool
	// Needs maps variables that the user must set to their purpose.
	Needs map[string]string
	// Clients and Files list the places where it was found.
	Clients, Files []string
}

// Skipped is an entry that Goblin does not import, with the reason.
type Skipped struct{ Name, Reason string }

// FileServers lists the servers of one client file.
type FileServers struct {
	Client  *Client // nil if unknown
	File    string
	Servers []Server
	Skipped []Skipped
	None    bool  // the file has no section for servers
	Err     error // a *BrokenError if the content is invalid
}

// Title returns the display name of the file's client.
func (f *FileServers) Title() string {
	if f.Client == nil {
		return filepath.Base(f.File)
	}
	return f.Client.Title
}

// Read reads the existing files of a client.
func (c *Client) Read(m Machine) []FileServers {
	var list []FileServers
	seen := map[string]bool{}
	for _, p := range c.places(&m) {
		if resolved, err := filepath.EvalSymlinks(p.path); err == nil {
			if seen[resolved] {
				continue
			}
			seen[resolved] = true
		}
		if f := read(&m, c, p); !errors.Is(f.Err, fs.ErrNotExist) {
			list = append(list, f)
		}
	}
	for _, p := range c.project {
		if m.Dir == "" {
			break
		}
		path := filepath.Join(m.Dir, filepath.FromSlash(p.path))
		if resolved, err := filepath.EvalSymlinks(path); err != nil || seen[resolved] {
			continue
		}
		f := read(&m, c, place{path: path, dialect: p.dialect})
		for _, s := range f.Servers {
			f.Skipped = append(f.Skipped, Skipped{s.OriginalName, "belongs to this project only; import it with --from " + p.path})
		}
		f.Servers, f.Err = nil, nil // project files are only listed
		if len(f.Skipped) > 0 {
			list = append(list, f)
		}
	}
	return list
}

// ReadFile reads a file of any client. It also accepts bare entries of servers, with or
// without outer braces, as in documentation.
func ReadFile(m Machine, path string) FileServers {
	c, d := guess(&m, path)
	if c != nil { // known clients' files have sections
		return read(&m, c, place{path: path, dialect: d})
	}
	return readNamed(&m, place{path: path, dialect: d})
}

// guess uses the path, then the content.
func guess(m *Machine, path string) (*Client, *dialect) {
	full, err := filepath.Abs(path)
	if err != nil {
		full = path
	}
	full = filepath.ToSlash(full)
	for _, c := range All {
		for _, p := range c.places(m) {
			known := p.path
			if m.OS == "windows" {
				known = strings.ReplaceAll(known, `\`, "/")
			}
			if known == full || distinct(known) != "" && strings.HasSuffix(full, distinct(known)) {
				return c, p.dialect
			}
		}
		for _, p := range c.project {
			if strings.HasSuffix(full, "/"+p.path) {
				return c, p.dialect
			}
		}
	}
	kind := inJSON
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		kind = inTOML
	case ".yaml", ".yml":
		kind = inYAML
	}
	var doc map[string]any
	if text, err := readFile(path); err == nil {
		doc, _ = decodeNamed(kind, text)
	}
	return nil, byContent(kind, doc)
}

func byContent(kind format, doc map[string]any) *dialect {
	inner, _ := doc["mcp"].(map[string]any)
	servers, _ := inner["servers"].(map[string]any)
	d := *unknown
	switch {
	case doc["extensions"] != nil && kind == inYAML:
		return goose
	case doc["context_servers"] != nil:
		d = *zed
	case doc["mcpServers"] != nil:
		if _, ok := doc["mcpServers"].([]any); ok && kind == inYAML {
			return continueYAML
		}
		if doc["servers"] != nil { // it is unclear which one applies
			d.also = []*dialect{vscode}
		}
	case doc["mcp_servers"] != nil:
		d.section = codex.section
	case doc["servers"] != nil:
		d = *vscode
	case servers != nil && !isEntry(servers) && !ofOpencode(doc, servers):
		d = *vscodeSettings
	case doc["mcp"] != nil:
		d = *opencode
	default:
		if path := sectionWithin(doc, 3); path != nil {
			d.section = path
		}
	}
	if d.format = kind; kind == inTOML {
		d.expands, d.unit = codex.expands, codex.unit
	}
	return &d
}

// ofOpencode reports whether entries have opencode's form instead of VS Code's.
func ofOpencode(doc, servers map[string]any) bool {
	schema, _ := doc["$schema"].(string)
	for _, v := range servers {
		entry, _ := v.(map[string]any)
		_, list := entry["command"].([]any)
		if list || entry["type"] == "local" || entry["type"] == "remote" {
			return true
		}
	}
	return strings.Contains(schema, "opencode")
}

func sectionWithin(doc map[string]any, depth int) []string {
	for _, key := range slices.Sorted(maps.Keys(doc)) {
		switch inner := doc[key].(type) {
		case []any:
			if strings.HasSuffix(key, "mcpServers") {
				return []string{key}
			}
		case map[string]any:
			if strings.HasSuffix(key, "mcpServers") || strings.HasSuffix(key, "mcp.servers") {
				return []string{key}
			}
			if depth > 1 && !isEntry(inner) {
				if path := sectionWithin(inner, depth-1); path != nil {
					return append([]string{key}, path...)
				}
			}
		}
	}
	return nil
}

// distinct returns the last two parts of a path, or "" if they are not unique.
func distinct(path string) string {
	parts := strings.Split(path, "/")
	tail := "/" + strings.Join(parts[max(len(parts)-2, 0):], "/")
	if strings.HasSuffix(tail, "/mcp.json") && !strings.HasPrefix(tail, "/.") || strings.HasPrefix(tail, "/.config/") {
		return ""
	}
	return tail
}

type reading struct {
	machine *Machine
	client  *Client
	dialect *dialect
	dir     string            // of the file
	inputs  map[string]string // defaults of VS Code's inputs

	server     *Server
	perProject bool
}

func read(m *Machine, c *Client, p place) FileServers { return readBy(m, c, p, decode, nil) }

func readNamed(m *Machine, p place) FileServers {
	return readBy(m, nil, p, decodeNamed, func(doc map[string]any) []item { return entriesAlone(doc, p) })
}

// readBy reads a file. without finds entries in a file without a section for servers.
func readBy(m *Machine, c *Client, p place, decode func(format, []byte) (map[string]any, error), without func(map[string]any) []item) FileServers {
	f := FileServers{Client: c, File: p.path}
	text, err := readFile(p.path)
	var doc map[string]any
	if err == nil {
		if doc, err = decode(p.dialect.format, text); err != nil {
			err = &BrokenError{err}
		}
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s cannot be read: %w", p.path, err)
		} else if _, link := os.Lstat(p.path); link == nil {
			err = fmt.Errorf("%s is a broken link", p.path)
		}
		f.Err = err
		return f
	}
	r := &reading{machine: m, client: c, dir: filepath.Dir(p.path), inputs: defaults(doc)}
	entries, none, err := p.dialect.entries(doc)
	if err != nil {
		f.Err = fmt.Errorf("%s cannot be read: %w", p.path, &BrokenError{err})
		return f
	}
	if none && without != nil {
		entries = without(doc)
		none = len(entries) == 0
	}
	f.None = none
	r.entries(&f, entries, disabledNames(doc))
	if p.unread != "" {
		for _, s := range f.Servers {
			f.Skipped = append(f.Skipped, Skipped{s.OriginalName, "is in a file that " + p.unread})
		}
		f.Servers = nil
	}
	if p.dialect.projects != "" {
		of, _ := doc[p.dialect.projects].(map[string]any)
		for _, folder := range slices.Sorted(maps.Keys(of)) {
			project, _ := of[folder].(map[string]any)
			servers, _ := project["mcpServers"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(servers)) {
				f.Skipped = append(f.Skipped, Skipped{name, "belongs to the project " + short(folder) + " only"})
			}
		}
	}
	return f
}

type item struct {
	name    string
	value   any
	dialect *dialect // of its section
}

const maxServers = 1000

// forms returns the newest first.
func (d *dialect) forms() []*dialect { return append(slices.Clone(d.also), d) }

// formOf prefers the form with Goblin's entry, then the newest with entries, then one
// with an empty section. The default is the dialect itself.
func (d *dialect) formOf(doc map[string]any) *dialect {
	var filled, there *dialect
	for _, form := range d.forms() {
		list, none, err := form.at(doc)
		if err != nil || none {
			continue
		}
		if slices.ContainsFunc(list, func(it item) bool { return it.name == EntryName }) {
			return form
		}
		there = cmp.Or(there, form)
		if len(list) > 0 {
			filled = cmp.Or(filled, form)
		}
	}
	return cmp.Or(filled, there, d)
}

// entries returns the servers in all forms. none reports that the file has no section for
// them.
func (d *dialect) entries(doc map[string]any) (list []item, none bool, err error) {
	none = true
	for _, form := range d.forms() {
		part, missing, err := form.at(doc)
		if err != nil {
			return nil, false, err
		}
		none = none && missing
		list = append(list, part...)
	}
	if len(list) > maxServers {
		return nil, false, fmt.Errorf("more than %d servers", maxServers)
	}
	return list, none, nil
}

// at returns the servers in one form. none reports that the section is missing.
func (d *dialect) at(doc map[string]any) (list []item, none bool, err error) {
	var at any = doc
	for i, key := range d.section {
		inner, ok := at.(map[string]any)
		switch {
		case !ok:
			return nil, false, fmt.Errorf("%q is not a mapping", d.section[0])
		case i > 0 && isEntry(inner[key]): // a server named like the section
			return nil, true, nil
		}
		if at = inner[key]; at == nil {
			_, there := inner[key]
			return nil, !there, nil
		}
	}
	switch at := at.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(at)) {
			if !d.isSection(name, at[name]) && !(strings.HasPrefix(name, "//") || strings.HasPrefix(name, "$")) {
				list = append(list, item{name, at[name], d})
			}
		}
		if len(list) == 0 && len(at) > 0 { // only sections of other forms
			return nil, slices.ContainsFunc(slices.Collect(maps.Keys(at)), func(name string) bool { return d.isSection(name, at[name]) }), nil
		}
	case []any:
		seen := map[string]bool{}
		for _, v := range at {
			keys, _ := v.(map[string]any)
			name, _ := keys["name"].(string)
			if seen[name] {
				return nil, false, fmt.Errorf("duplicate entry %q", short(name))
			}
			seen[name] = true
			list = append(list, item{name, v, d})
		}
	default:
		return nil, false, fmt.Errorf("%q is neither a mapping nor a list", strings.Join(d.section, "."))
	}
	return list, false, nil
}

// isSection reports whether a key among the servers is the section of another form.
func (d *dialect) isSection(name string, value any) bool {
	_, isMap := value.(map[string]any)
	return isMap && !isEntry(value) && slices.ContainsFunc(d.also, func(form *dialect) bool {
		return slices.Equal(form.section, append(slices.Clone(d.section), name))
	})
}

// isEntry returns false for a mapping under these keys: it is a server named command,
// type or url.
func isEntry(value any) bool {
	entry, _ := value.(map[string]any)
	for _, key := range []string{"command", "type", "url"} {
		switch entry[key].(type) {
		case nil, map[string]any:
		default:
			return true
		}
	}
	return false
}

// entriesAlone also accepts a file that is a single entry.
func entriesAlone(doc map[string]any, p place) []item {
	if reaches(doc) {
		name := strings.TrimSuffix(filepath.Base(p.path), filepath.Ext(p.path))
		return []item{{name, doc, p.dialect}}
	}
	var list []item
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if reaches(doc[name]) {
			list = append(list, item{name, doc[name], p.dialect})
		}
	}
	if len(list) > maxServers {
		return nil
	}
	return list
}

// reaches reports whether a value has a command or a URL in any spelling.
func reaches(value any) bool {
	entry, ok := value.(map[string]any)
	if !ok {
		return false
	}
	out, _, _ := config.Translate(entry, func(string) bool { return true })
	for _, key := range []string{"command", "url"} {
		switch out[key].(type) {
		case nil, map[string]any:
		default:
			return true
		}
	}
	return false
}

func defaults(doc map[string]any) map[string]string {
	of := map[string]string{}
	sets := []any{doc["inputs"]}
	if inner, ok := doc["mcp"].(map[string]any); ok {
		sets = append(sets, inner["inputs"])
	}
	for _, set := range sets {
		list, _ := set.([]any)
		for _, v := range list {
			input, _ := v.(map[string]any)
			id, _ := input["id"].(string)
			if def, ok := input["default"].(string); ok && input["password"] != true {
				of[id] = def
			}
		}
	}
	return of
}

// disabledNames returns a function that reports whether Gemini CLI excludes a server.
func disabledNames(doc map[string]any) func(name string) bool {
	inner, _ := doc["mcp"].(map[string]any)
	excluded := append(texts(inner["excluded"]), texts(doc["excludeMCPServers"])...)
	allowed, restricts := cmp.Or(inner["allowed"], doc["allowMCPServers"]).([]any)
	return func(name string) bool {
		return slices.Contains(excluded, name) || restricts && !slices.Contains(texts(allowed), name)
	}
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func (r *reading) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(r.server.Notes, note) {
		r.server.Notes = append(r.server.Notes, note)
	}
}

func (r *reading) noteLoss(format string, args ...any) {
	r.note(format, args...)
	r.server.Partial = true
}

func (r *reading) needs(name, what string) {
	if r.server.Needs == nil {
		r.server.Needs = make(map[string]string)
	}
	r.server.Needs[name] = what
}
