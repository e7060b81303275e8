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

// Change plans the new content of a client's file.
type Change struct {
	File          string
	Before, After []byte
	Deletes       bool     // the file was made for the entry, and goes with it
	Removed       []string // other servers that are taken out
	Backup        string   // the copy of the file without Goblin, if there is one once it is made
	Secrets       int      // in that copy, in plain text
	Note          string

	file    *configedit.File
	place   place
	machine Machine
	client  *Client
	state   string
	own     map[string]any // Goblin's entry
	first   []byte         // the text without Goblin
	old     *record        // of the change before, or nil
	undo    *record        // nil for one that is undone
}

// IsEmpty reports that there is nothing to change.
func (ch *Change) IsEmpty() bool { return bytes.Equal(ch.Before, ch.After) && !ch.Deletes }

// RemovesGoblin reports whether the change removes Goblin.
func (ch *Change) RemovesGoblin() bool { return ch.undo == nil }

// ErrNone says that a client has no entry of Goblin.
var ErrNone = errors.New("has no entry of Goblin")

// Install puts Goblin's entry, this command line, into the file of a client, and takes out
// the servers named in took. state is Goblin's folder for what it remembers.
func (c *Client) Install(m Machine, state, command string, args, took []string) (*Change, error) {
	p, err := c.target(&m, false)
	if err != nil {
		return nil, err
	}
	f, held, err := edit(p)
	if err != nil {
		return nil, err
	}
	ch := c.change(m, p, f, state)
	var old record
	if ch.first, old, err = p.first(ch.old, f, held); err != nil {
		return nil, err
	}
	form := p.dialect.formOf(held)
	if err := c.writable(form, append([]string{command}, args...)...); err != nil {
		return nil, err
	}
	wanted, err := form.replaceSameName(f, held, form.keys(command, args))
	if err != nil {
		return nil, err
	}
	list, _, _ := p.dialect.entries(held) // they could be read just now
	out := slices.Clone(old.Taken)
	for _, name := range took {
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
	case p.dialect == gemini && disabledNames(held)(EntryName):
		ch.Note = "Gemini CLI leaves it out as long as \"mcp\" in that file excludes it, or allows others only"
	case p.dialect == amazonQ:
		ch.Note = amazonQTools(held)
	}
	ch.undo = difference(ch.first, ch.After)
	ch.undo.Was, ch.undo.Prior = digest(ch.Before), ch.old.onlyOwnEntry()
	ch.undo.Path, ch.undo.Existed, ch.undo.Taken = f.RealPath(), old.Existed, out
	return ch, nil
}

// change begins a change of a file.
func (c *Client) change(m Machine, p place, f *configedit.File, state string) *Change {
	return &Change{File: p.path, Before: f.Text(), file: f, place: p, machine: m, client: c, state: state, old: readRecord(state, f.RealPath(), f.Text())}
}

// first is the text before Goblin's first change, as far as that can be known, and what is
// remembered of that.
func (p place) first(rec *record, f *configedit.File, held map[string]any) ([]byte, record, error) {
	old := record{Existed: !f.IsNew()}
	if rec != nil {
		old.Taken = rec.Taken
		if rec.Sum == digest(f.Text()) {
			old.Existed = rec.Existed
		}
	}
	if entry, there := p.dialect.formOf(held).goblin(held); rec == nil || !there || !isOwnEntry(entry) {
		return f.Text(), old, nil
	}
	bare, held, err := edit(p)
	if err != nil {
		return nil, old, err
	}
	if _, _, err := p.dialect.restore(bare, held, rec); err != nil {
		return nil, old, err
	}
	return bare.Text(), old, nil
}

// replaceSameName takes Goblin's entry out of a file if it is not as wanted, and gives the one to be
// put in: with what the user added to the old one, or nil if it is as wanted.
func (d *dialect) replaceSameName(f *configedit.File, held, wanted map[string]any) (map[string]any, error) {
	entry, there := d.goblin(held)
	switch {
	case !there:
		return wanted, nil
	case !isOwnEntry(entry):
		return nil, fmt.Errorf("%s has an entry %q that Goblin did not write; rename it there, or take it out", f.Path(), EntryName)
	}
	if command, _, _ := entry.commandLine(); command == "" { // it reaches Goblin over HTTP
		return wanted, d.drop(f, EntryName)
	}
	all := maps.Clone(map[string]any(entry))
	same := true
	for key, on := range map[string]any{"disabled": false, "enabled": true, "isActive": true} {
		if v, ok := all[key]; ok && v != on { // it was turned off
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

// Uninstall takes Goblin's entry out of the file of a client: the bytes of before are back
// if nobody has changed the file since. The error for none is ErrNone.
func (c *Client) Uninstall(m Machine, state string) (*Change, error) {
	p, err := c.target(&m, true)
	if err != nil {
		return nil, err
	}
	f, held, err := edit(p)
	if err != nil {
		return nil, err
	}
	ch := c.change(m, p, f, state)
	rec := ch.old
	entry, there := p.dialect.formOf(held).goblin(held)
	switch {
	case f.IsNew(), !there && (rec == nil || len(rec.Taken) == 0):
		return nil, fmt.Errorf("%s %w", p.path, ErrNone)
	case there && !isOwnEntry(entry):
		return nil, fmt.Errorf("%s has an entry %q that Goblin did not write, so it stays; take it out there if it is not wanted", p.path, EntryName)
	}
	if ch.Deletes, ch.Note, err = p.dialect.restore(f, held, rec); err != nil {
		return nil, err
	}
	ch.After = f.Text()
	return ch, nil
}

// restore takes Goblin's entry out of a file and puts back the servers that were taken out
// for it: to the byte if nobody has changed them since, else by what they say. deletes tells
// that the file was made for Goblin; note is what could not be put back.
func (d *dialect) restore(f *configedit.File, held map[string]any, rec *record) (deletes bool, note string, err error) {
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
	list, _, err := d.entries(held)
	if err != nil {
		return false, "", err
	}
	form := d.formOf(held)
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
				note = "the servers that were taken out with it are in " + rec.Backup
			}
		}
	}
	if _, there := form.goblin(held); there {
		err = form.drop(f, EntryName)
	}
	return false, note, err
}

// target is the file that has Goblin's entry, else the first one that is there, else the
// one to be made. With unread, it may be one that the client no longer reads.
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
		if held, err := decode(p.dialect.format, text); err == nil && (unread || p.unread == "") {
			if _, ok := p.dialect.formOf(held).goblin(held); ok {
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
		return first, fmt.Errorf("it is not known where %s has its files: set HOME", c.Title)
	}
	return first, nil
}

// ConfigFile is the file that Goblin's entry would be put into; "" if it is not known.
func (c *Client) ConfigFile(m Machine) string {
	p, _ := c.target(&m, false)
	return p.path
}

// edit opens a file to change it.
func edit(p place) (*configedit.File, map[string]any, error) {
	if info, err := os.Stat(p.path); err == nil && !isOwned(info) {
		return nil, nil, fmt.Errorf("%s belongs to another user; it stays as it is", p.path)
	}
	f, err := configedit.OpenForeign(p.path, p.dialect.format == inJSON, p.dialect.section...)
	if err != nil {
		return nil, nil, err
	}
	text := f.Text()
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil, nil, fmt.Errorf("%s is in UTF-16, which Goblin does not write; save it as UTF-8", p.path)
	}
	held, err := decoded(p.dialect, text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s stays as it is: %w", p.path, err)
	}
	return f, held, nil
}

func decoded(d *dialect, text []byte) (map[string]any, error) {
	text, err := utf8Of(text)
	if err != nil {
		return nil, err
	}
	return decode(d.format, text)
}

// goblin is the entry of Goblin's name.
func (d *dialect) goblin(held map[string]any) (entryKeys, bool) {
	list, _, err := d.at(held)
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

// delete takes an entry out of what a file holds.
func (d *dialect) delete(held map[string]any, name string) {
	outer, key := d.outer(held)
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

// outer returns the mapping around the servers, or nil, and their key in it.
func (d *dialect) outer(held map[string]any) (outer map[string]any, key string) {
	last := len(d.section) - 1
	for _, key := range d.section[:last] {
		held, _ = held[key].(map[string]any)
	}
	return held, d.section[last]
}

// tidy removes an empty section.
func (d *dialect) tidy(held map[string]any) map[string]any {
	outer, key := d.outer(held)
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
	return held
}

// isOwnEntry reports whether an entry of Goblin's name starts Goblin, or reaches it.
func isOwnEntry(entry entryKeys) bool {
	command, args, problem := entry.commandLine()
	return problem == "" && (config.IsSelf(command, args) || command == "" && ownURL(entry.address()))
}

// keys are those of Goblin's entry.
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

// Entry is the command line of Goblin in a file of a client.
type Entry struct {
	File    string
	Command string
	Args    []string
	Err     error // why it could not be looked at
}

// Installed is Goblin's entry in the files of a client; ok is false for none.
func (c *Client) Installed(m Machine) (e Entry, ok bool) {
	for _, p := range c.places(&m) {
		text, err := readFile(p.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var held map[string]any
		if err == nil {
			held, err = decode(p.dialect.format, text)
		}
		if err != nil {
			return Entry{File: p.path, Err: err}, true
		}
		if entry, there := p.dialect.formOf(held).goblin(held); there && isOwnEntry(entry) && p.unread == "" {
			e.File = p.path
			e.Command, e.Args, _ = entry.commandLine()
			return e, true
		}
	}
	return e, false
}

// MissingGoblin returns the clients on a machine whose config files lack Goblin, and those
// whose files have it. A client is on a machine if a config file or its folder exists.
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

// present reports whether a client has a config file or a folder for one.
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

// Snippet is Goblin's entry as a file of its own, and where it belongs.
func (c *Client) Snippet(m Machine, command string, args []string) (file string, text []byte, err error) {
	p, err := c.target(&m, false)
	if err != nil {
		return "", nil, err
	}
	form := p.dialect
	if text, err := readFile(p.path); err == nil {
		if held, err := decode(form.format, text); err == nil {
			form = form.formOf(held)
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

// ServedNames are the names in the file of a client of those servers that are among entries, which
// are those of Goblin's config.
// A server is left out if Goblin did not import all of it. So is one that shares its name
// with an entry that Goblin does not serve.
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

// PartlyServed are the names of those servers that Goblin serves without all that the client's
// entry says.
func (c *Client) PartlyServed(m Machine, entries []map[string]any) (names []string) {
	f, served := c.compare(m, entries)
	for i := range f.Servers {
		if s := &f.Servers[i]; s.Partial && served(s) {
			names = append(names, s.OriginalName)
		}
	}
	return names
}

// compare reads the file of a client; served reports whether a server is among entries.
func (c *Client) compare(m Machine, entries []map[string]any) (f FileServers, served func(s *Server) bool) {
	served = func(s *Server) bool {
		return slices.ContainsFunc(entries, func(entry map[string]any) bool { return Equal(entry, s.Keys) })
	}
	p, err := c.target(&m, false)
	if err != nil {
		return f, served
	}
	return read(&m, c, p), served // Install reports what is wrong with it
}
