package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"goblin/gateway/config"
	"goblin/gateway/configedit"
)

// Change is a planned change of a client's file.
type Change struct {
	File          string
	Before, After []byte
	Deletes       bool     // the file exists only for Goblin's entry
	Removed       []string // other servers that are removed
	Backup        string   // the copy without Goblin, once it exists
	Secrets       int      // plain-text secrets in that copy
	Note          string

	file    *configedit.File
	place   place
	machine Machine
	client  *Client
	state   string
	own     map[string]any // Goblin's entry
	first   []byte         // the text without Goblin
	old     *record        // of the previous change, or nil
	undo    *record        // nil for an uninstall
}

// IsEmpty reports whether nothing changes.
func (ch *Change) IsEmpty() bool { return bytes.Equal(ch.Before, ch.After) && !ch.Deletes }

// RemovesGoblin reports whether the change removes Goblin.
func (ch *Change) RemovesGoblin() bool { return ch.undo == nil }

// ErrNone reports that a client's file has no entry for Goblin.
var ErrNone = errors.New("has no Goblin entry")

// Install plans to add Goblin's entry to the client's file and to remove the servers in
// replaced. state is Goblin's state directory.
func (c *Client) Install(m Machine, state, command string, args, replaced []string) (*Change, error) {
	p, err := c.target(&m, false)
	if err != nil {
		return nil, err
	}
	f, doc, err := edit(p)
	if err != nil {
		return nil, err
	}
	ch := c.change(m, p, f, state)
	var old record
	if ch.first, old, err = p.first(ch.old, f, doc); err != nil {
		return nil, err
	}
	form := p.dialect.formOf(doc)
	if err := c.writable(form, append([]string{command}, args...)...); err != nil {
		return nil, err
	}
	wanted, err := form.replaceSameName(f, doc, form.keys(command, args))
	if err != nil {
		return nil, err
	}
	list, _, _ := p.dialect.entries(doc) // the error was checked above
	out := slices.Clone(old.Taken)
	for _, name := range replaced {
		ch.Removed = append(ch.Removed, name)
		for _, it := range list {
			entry, ok := it.value.(map[string]any)
			if !ok || it.name != name {
				continue
			}
			if err := it.dialect.drop(f, name); err != nil {
				return nil, err
			}
			t := takenEntry{Name: name, Entry: entry, Section: it.dialect.section}
			out = append(slices.DeleteFunc(out, t.replaces), t)
		}
	}
	if wanted != nil {
		if err := form.put(f, EntryName, wanted); err != nil {
			return nil, err
		}
	}
	ch.After = f.Text()
	ch.own = form.keys(command, args)
	switch {
	case p.dialect == gemini && disabledNames(doc)(EntryName):
		ch.Note = "Gemini CLI ignores it while \"mcp\" in that file excludes it or allows only others"
	case p.dialect == amazonQ:
		ch.Note = amazonQTools(doc)
	}
	ch.undo = difference(ch.first, ch.After)
	ch.undo.Was, ch.undo.Prior = digest(ch.Before), ch.old.onlyOwnEntry()
	ch.undo.Path, ch.undo.Existed, ch.undo.Taken = f.RealPath(), old.Existed, out
	return ch, nil
}

func (c *Client) change(m Machine, p place, f *configedit.File, state string) *Change {
	return &Change{File: p.path, Before: f.Text(), file: f, place: p, machine: m, client: c, state: state, old: readRecord(state, f.RealPath(), f.Text())}
}

// first returns the text before Goblin's first change, if it is known, and the related
// parts of the record.
func (p place) first(rec *record, f *configedit.File, doc map[string]any) ([]byte, record, error) {
	old := record{Existed: !f.IsNew()}
	if rec != nil {
		old.Taken = rec.Taken
		if rec.Sum == digest(f.Text()) {
			old.Existed = rec.Existed
		}
	}
	if entry, there := p.dialect.formOf(doc).goblin(doc); rec == nil || !there || !isOwnEntry(entry) {
		return f.Text(), old, nil
	}
	bare, doc, err := edit(p)
	if err != nil {
		return nil, old, err
	}
	if _, _, err := p.dialect.restore(bare, doc, rec); err != nil {
		return nil, old, err
	}
	return bare.Text(), old, nil
}

// replaceSameName removes an outdated entry of Goblin. It returns the entry to add,
// including the user's additions, or nil if the existing one is up to date.
func (d *dialect) replaceSameName(f *configedit.File, doc, wanted map[string]any) (map[string]any, error) {
	entry, there := d.goblin(doc)
	switch {
	case !there:
		return wanted, nil
	case !isOwnEntry(entry):
		return nil, fmt.Errorf("%s has an entry %q that Goblin did not write; rename or remove it", f.Path(), EntryName)
	}
	if command, _, _ := entry.commandLine(); command == "" { // it uses HTTP
		return wanted, d.drop(f, EntryName)
	}
	all := maps.Clone(map[string]any(entry))
	same := true
	for key, on := range map[string]any{"disabled": false, "enabled": true, "isActive": true} {
		if v, ok := all[key]; ok && v != on { // it was disabled
			all[key], same = on, false
		}
	}
	for _, key := range []string{"command", "args", "cmd"} {
		if v, ok := wanted[key]; ok {
			same = same && reflect.DeepEqual(generic(v), generic(all[key]))
			all[key] = v
		}
	}
	if same {
		return nil, nil
	}
	return all, d.drop(f, EntryName)
}

// Uninstall plans to remove Goblin's entry from the client's file. This restores the
// original bytes unless the file was edited later. It returns ErrNone if there is no
// entry.
func (c *Client) Uninstall(m Machine, state string) (*Change, error) {
	p, err := c.target(&m, true)
	if err != nil {
		return nil, err
	}
	f, doc, err := edit(p)
	if err != nil {
		return nil, err
	}
	ch := c.change(m, p, f, state)
	rec := ch.old
	entry, there := p.dialect.formOf(doc).goblin(doc)
	switch {
	case f.IsNew(), !there && (rec == nil || len(rec.Taken) == 0):
		return nil, fmt.Errorf("%s %w", p.path, ErrNone)
	case there && !isOwnEntry(entry):
		return nil, fmt.Errorf("%s has an entry %q that Goblin did not write; remove it by hand if you don't want it", p.path, EntryName)
	}
	if ch.Deletes, ch.Note, err = p.dialect.restore(f, doc, rec); err != nil {
		return nil, err
	}
	ch.After = f.Text()
	return ch, nil
}

// restore removes Goblin's entry and adds the removed servers again. It restores unedited
// parts byte for byte. deletes reports that the file was created for Goblin. note names
// servers that could not be restored.
func (d *dialect) restore(f *configedit.File, doc map[string]any, rec *record) (deletes bool, note string, err error) {
	before := f.Text()
	if rec != nil {
		if was, ok := rec.undo(before); ok {
			f.SetText(was)
			return !rec.Existed, "", nil
		}
	}
	if rec != nil && len(rec.New) > 0 && bytes.Count(before, rec.New) == 1 {
		if after := bytes.Replace(before, rec.New, rec.Old, 1); rec.isOf(d, before, after) {
			f.SetText(after)
			return false, "", nil
		}
	}
	list, _, err := d.entries(doc)
	if err != nil {
		return false, "", err
	}
	form := d.formOf(doc)
	if rec != nil {
		for _, t := range rec.Taken {
			if slices.ContainsFunc(list, func(it item) bool { return it.name == t.Name && t.isOf(it.dialect) }) {
				continue
			}
			to := form
			for _, other := range d.forms() {
				if len(t.Section) > 0 && t.isOf(other) {
					to = other
				}
			}
			if err := to.put(f, t.Name, t.Entry); err != nil {
				note = "the servers that --replace removed are in " + rec.Backup
			}
		}
	}
	if _, there := form.goblin(doc); there {
		err = form.drop(f, EntryName)
	}
	return false, note, err
}

// target returns the file with Goblin's entry, or the first existing file, or the file to
// create. unread includes files that the client no longer reads.
func (c *Client) target(m *Machine, unread bool) (place, error) {
	var there []place
	var first place
	for _, p := range c.places(m) {
		if p.dialect.old {
			continue
		}
		if first.path == "" && !p.only {
			first = p
		}
		text, err := readFile(p.path)
		if err != nil {
			if _, err := os.Lstat(p.path); err == nil && !p.only {
				there = append(there, p)
			}
			continue
		}
		if doc, err := decode(p.dialect.format, text); err == nil && (unread || p.unread == "") {
			if _, ok := p.dialect.formOf(doc).goblin(doc); ok {
				return p, nil
			}
		}
		if !p.only {
			there = append(there, p)
		}
	}
	switch {
	case len(there) > 0:
		return there[0], nil
	case first.path == "":
		return first, fmt.Errorf("cannot find the files of %s; set HOME", c.Title)
	}
	return first, nil
}

// ConfigFile returns the path of the file for Goblin's entry, or "" if it is unknown.
func (c *Client) ConfigFile(m Machine) string {
	p, _ := c.target(&m, false)
	return p.path
}

func edit(p place) (*configedit.File, map[string]any, error) {
	if info, err := os.Stat(p.path); err == nil && !isOwned(info) {
		return nil, nil, fmt.Errorf("%s belongs to another user and is unchanged", p.path)
	}
	f, err := configedit.OpenForeign(p.path, p.dialect.format == inJSON, p.dialect.section...)
	if err != nil {
		return nil, nil, err
	}
	text := f.Text()
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil, nil, fmt.Errorf("%s is UTF-16, which Goblin cannot write; save it as UTF-8", p.path)
	}
	doc, err := decoded(p.dialect, text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is unchanged: %w", p.path, err)
	}
	return f, doc, nil
}

func decoded(d *dialect, text []byte) (map[string]any, error) {
	text, err := utf8Of(text)
	if err != nil {
		return nil, err
	}
	return decode(d.format, text)
}

func (d *dialect) goblin(doc map[string]any) (entryKeys, bool) {
	list, _, err := d.at(doc)
	if err != nil {
		return nil, false
	}
	for _, it := range list {
		if it.name == EntryName {
			entry, _ := it.value.(map[string]any)
			return entry, true
		}
	}
	return nil, false
}

func (d *dialect) delete(doc map[string]any, name string) {
	outer, key := d.outer(doc)
	switch all := outer[key].(type) {
	case map[string]any:
		delete(all, name)
	case []any:
		outer[key] = slices.DeleteFunc(all, func(v any) bool {
			entry, _ := v.(map[string]any)
			return entry["name"] == name
		})
	}
}

func (d *dialect) outer(doc map[string]any) (outer map[string]any, key string) {
	last := len(d.section) - 1
	for _, key := range d.section[:last] {
		doc, _ = doc[key].(map[string]any)
	}
	return doc, d.section[last]
}

func (d *dialect) tidy(doc map[string]any) map[string]any {
	outer, key := d.outer(doc)
	switch all := outer[key].(type) {
	case map[string]any:
		if len(all) == 0 {
			delete(outer, key)
		}
	case []any:
		if len(all) == 0 {
			delete(outer, key)
		}
	case nil:
		delete(outer, key)
	}
	return doc
}

// isOwnEntry reports whether an entry named goblin starts Goblin or connects to it.
func isOwnEntry(entry entryKeys) bool {
	command, args, problem := entry.commandLine()
	return problem == "" && (config.IsSelf(command, args) || command == "" && ownURL(entry.address()))
}

func (d *dialect) keys(command string, args []string) map[string]any {
	all := map[string]any{"command": command, "args": args}
	if d.list {
		all["name"] = EntryName
	}
	if d.entry != nil {
		for key, v := range d.entry(command, args) {
			if v == nil {
				delete(all, key)
			} else {
				all[key] = v
			}
		}
	}
	return all
}

// Entry is Goblin's command line in a client's file.
type Entry struct {
	File    string
	Command string
	Args    []string
	Err     error // reading the file failed
}

// Installed returns Goblin's entry in the client's files. ok is false if there is none.
func (c *Client) Installed(m Machine) (e Entry, ok bool) {
	for _, p := range c.places(&m) {
		text, err := readFile(p.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var doc map[string]any
		if err == nil {
			doc, err = decode(p.dialect.format, text)
		}
		if err != nil {
			return Entry{File: p.path, Err: err}, true
		}
		if entry, there := p.dialect.formOf(doc).goblin(doc); there && isOwnEntry(entry) && p.unread == "" {
			e.File = p.path
			e.Command, e.Args, _ = entry.commandLine()
			return e, true
		}
	}
	return e, false
}

// MissingGoblin returns the clients on the machine without and with Goblin in their
// config. A client counts as present if a config file or its folder exists.
func MissingGoblin(m Machine) (without, with []string) {
	for _, c := range All {
		if _, ok := c.Installed(m); ok {
			with = append(with, c.Name)
		} else if c.present(&m) {
			without = append(without, c.Name)
		}
	}
	return without, with
}

func (c *Client) present(m *Machine) bool {
	home := m.home()
	return slices.ContainsFunc(c.places(m), func(p place) bool {
		if _, err := os.Stat(p.path); err == nil {
			return true
		}
		folder := filepath.Dir(p.path)
		_, err := os.Stat(folder)
		return err == nil && folder != home && folder != filepath.Join(home, ".config")
	})
}

// Snippet returns Goblin's entry as a separate text, and the path of the file it belongs
// in.
func (c *Client) Snippet(m Machine, command string, args []string) (file string, text []byte, err error) {
	p, err := c.target(&m, false)
	if err != nil {
		return "", nil, err
	}
	form := p.dialect
	if text, err := readFile(p.path); err == nil {
		if doc, err := decode(form.format, text); err == nil {
			form = form.formOf(doc)
		}
	}
	if err := c.writable(form, append([]string{command}, args...)...); err != nil {
		return "", nil, err
	}
	f, err := configedit.OpenForeign(p.path+".of-goblin", form.format == inJSON, form.section...)
	if err != nil {
		return "", nil, err
	}
	if err := form.put(f, EntryName, form.keys(command, args)); err != nil {
		return "", nil, err
	}
	return p.path, f.Text(), nil
}

// ServedNames returns the names of the client's servers that Goblin's config, entries,
// also contains. It omits partly imported servers and names that also belong to a server
// that Goblin does not run.
func (c *Client) ServedNames(m Machine, entries []map[string]any) (names []string) {
	f, served := c.compare(m, entries)
	for i := range f.Servers {
		name := f.Servers[i].OriginalName
		other := func(s Server) bool { return s.OriginalName == name && (s.Partial || !served(&s)) }
		if slices.ContainsFunc(f.Servers, other) || slices.ContainsFunc(f.Skipped, func(l Skipped) bool { return l.Name == name }) {
			continue
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// PartlyServed returns the names of servers that Goblin runs with only part of the
// client's settings.
func (c *Client) PartlyServed(m Machine, entries []map[string]any) (names []string) {
	f, served := c.compare(m, entries)
	for i := range f.Servers {
		if s := &f.Servers[i]; s.Partial && served(s) {
			names = append(names, s.OriginalName)
		}
	}
	return names
}

// compare reads the client's file. served reports whether entries contains a server.
func (c *Client) compare(m Machine, entries []map[string]any) (f FileServers, served func(s *Server) bool) {
	served = func(s *Server) bool {
		return slices.ContainsFunc(entries, func(entry map[string]any) bool { return Equal(entry, s.Keys) })
	}
	p, err := c.target(&m, false)
	if err != nil {
		return f, served
	}
	return read(&m, c, p), served // Install reports its errors
}
