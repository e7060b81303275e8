package clients

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
)

// Server is an entry of a client, as one of Goblin's config.
type Server struct {
	Name string // that a config takes
	Was  string // as the client calls it
	Keys map[string]any
	// Notes tell where the result differs from the client's entry.
	Notes []string
	// Needs are variables that somebody has to set, and what for.
	Needs map[string]string
	// From is where it was found: by client, and by file.
	From, Files []string
}

// Left is an entry that is not for Goblin, and why.
type Left struct{ Name, Why string }

// Found lists the servers of one file of a client.
type Found struct {
	Client  *Client // nil for a file of which it is not known
	File    string
	Servers []Server
	Left    []Left
	Err     error // why the file could not be read
}

// Title names the file's program for people.
func (f *Found) Title() string {
	if f.Client == nil {
		return filepath.Base(f.File)
	}
	return f.Client.Title
}

// Read reads the files of a client that are there.
func (c *Client) Read(m Machine) []Found {
	var list []Found
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
		f := read(&m, c, place{path, p.dialect})
		for _, s := range f.Servers {
			f.Left = append(f.Left, Left{s.Was, "is of this project only; --from " + p.path + " takes it"})
		}
		f.Servers, f.Err = nil, nil // nobody asked for them
		if len(f.Left) > 0 {
			list = append(list, f)
		}
	}
	return list
}

// ReadFile reads a file that the user names, whoever's it is.
func ReadFile(m Machine, path string) Found {
	c, d := guess(&m, path)
	return read(&m, c, place{path, d})
}

// guess finds whose dialect a file is in, by its place, else by what is in it.
func guess(m *Machine, path string) (*Client, *dialect) {
	full, err := filepath.Abs(path)
	if err != nil {
		full = path
	}
	full = filepath.ToSlash(full)
	for _, c := range All {
		for _, p := range c.places(m) {
			if known := filepath.ToSlash(p.path); known == full || distinct(known) != "" && strings.HasSuffix(full, distinct(known)) {
				return c, p.dialect
			}
		}
		for _, p := range c.project {
			if strings.HasSuffix(full, "/"+p.path) {
				return c, p.dialect
			}
		}
	}
	text, err := readFile(path)
	if err != nil {
		return nil, unknown
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		return nil, codex
	case ".yaml", ".yml":
		held, _ := decode(inYAML, text)
		if _, ok := held["extensions"]; ok {
			return nil, goose
		}
		if _, ok := held["mcpServers"].([]any); ok {
			return nil, continueYAML
		}
		return nil, &dialect{format: inYAML, section: []string{"mcpServers"}, expands: braces | prefix}
	}
	held, _ := decode(inJSON, text)
	inner, _ := held["mcp"].(map[string]any)
	switch {
	case held["context_servers"] != nil:
		return nil, zed
	case held["mcpServers"] != nil:
	case held["servers"] != nil:
		return nil, vscode
	case inner["servers"] != nil:
		return nil, vscodeSettings
	case held["mcp"] != nil:
		return nil, opencode
	}
	return nil, unknown
}

// distinct are the last two parts of a path, if those are like no other's.
func distinct(path string) string {
	parts := strings.Split(path, "/")
	tail := "/" + strings.Join(parts[max(len(parts)-2, 0):], "/")
	if strings.HasSuffix(tail, "/mcp.json") && !strings.HasPrefix(tail, "/.") || strings.HasPrefix(tail, "/.config/") {
		return ""
	}
	return tail
}

// reading is a file that is being read, and the server in it.
type reading struct {
	machine *Machine
	client  *Client
	dialect *dialect
	dir     string            // of the file
	inputs  map[string]string // the defaults of what VS Code asks for

	server     *Server
	perProject bool
}

func read(m *Machine, c *Client, p place) Found {
	f := Found{Client: c, File: p.path}
	text, err := readFile(p.path)
	var held map[string]any
	if err == nil {
		held, err = decode(p.dialect.format, text)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s cannot be read: %w", p.path, err)
		} else if _, link := os.Lstat(p.path); link == nil {
			err = fmt.Errorf("%s is a link that leads nowhere", p.path)
		}
		f.Err = err
		return f
	}
	r := &reading{machine: m, client: c, dialect: p.dialect, dir: filepath.Dir(p.path), inputs: defaults(held)}
	entries, err := section(held, p.dialect)
	if err != nil {
		f.Err = fmt.Errorf("%s cannot be read: %w", p.path, err)
		return f
	}
	r.entries(&f, entries, off(held))
	if p.dialect.projects != "" {
		of, _ := held[p.dialect.projects].(map[string]any)
		for _, folder := range slices.Sorted(maps.Keys(of)) {
			project, _ := of[folder].(map[string]any)
			servers, _ := project["mcpServers"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(servers)) {
				f.Left = append(f.Left, Left{name, "is of the project " + short(folder) + " only"})
			}
		}
	}
	return f
}

// item is an entry by its name.
type item struct {
	name  string
	value any
}

const maxServers = 1000

// section are the entries of servers, by name.
func section(held map[string]any, d *dialect) ([]item, error) {
	var at any = held
	for _, key := range d.section {
		inner, ok := at.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%q is no mapping", d.section[0])
		}
		if at = inner[key]; at == nil {
			return nil, nil
		}
	}
	var list []item
	switch at := at.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(at)) {
			list = append(list, item{name, at[name]})
		}
	case []any:
		seen := map[string]bool{}
		for _, v := range at {
			keys, _ := v.(map[string]any)
			name, _ := keys["name"].(string)
			if seen[name] {
				return nil, fmt.Errorf("it has two entries named %q", short(name))
			}
			seen[name] = true
			list = append(list, item{name, v})
		}
	default:
		return nil, fmt.Errorf("%q is neither a mapping nor a list", strings.Join(d.section, "."))
	}
	if len(list) > maxServers {
		return nil, fmt.Errorf("it has more than %d servers", maxServers)
	}
	return list, nil
}

// defaults returns the values that VS Code proposes for inputs.
func defaults(held map[string]any) map[string]string {
	of := map[string]string{}
	sets := []any{held["inputs"]}
	if inner, ok := held["mcp"].(map[string]any); ok {
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

// off tells which servers Gemini CLI leaves out.
func off(held map[string]any) func(name string) bool {
	inner, _ := held["mcp"].(map[string]any)
	excluded := append(texts(inner["excluded"]), texts(held["excludeMCPServers"])...)
	allowed, restricts := cmp.Or(inner["allowed"], held["allowMCPServers"]).([]any)
	return func(name string) bool {
		return slices.Contains(excluded, name) || restricts && !slices.Contains(texts(allowed), name)
	}
}

// texts are the texts in a list.
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

func (r *reading) needs(name, what string) {
	if r.server.Needs == nil {
		r.server.Needs = make(map[string]string)
	}
	r.server.Needs[name] = what
}
