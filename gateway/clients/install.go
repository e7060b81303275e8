package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"goblin/gateway/config"
	"goblin/gateway/configedit"
)

// Change plans the new content of a client's file.
type Change struct {
	File          string
	Before, After []byte
	Deletes       bool     // the file was made for the entry, and goes with it
	Took          []string // other servers that are taken out
	Backup        string   // where the old bytes are, once it is made
	Note          string

	file    *configedit.File
	dialect *dialect
	state   string
	own     []string // the lines of Goblin's entry by itself
	undo    *record  // nil for one that is undone
}

// Same reports that there is nothing to change.
func (ch *Change) Same() bool { return bytes.Equal(ch.Before, ch.After) && !ch.Deletes }

// ErrNone says that a client has no entry of Goblin.
var ErrNone = errors.New("has no entry of Goblin")

// Install puts Goblin's entry, this command line, into the file of a client, and takes out
// the servers named in took. state is Goblin's folder for what it remembers.
func (c *Client) Install(m Machine, state, command string, args, took []string) (*Change, error) {
	p, err := c.target(&m)
	if err != nil {
		return nil, err
	}
	f, held, err := edit(p)
	if err != nil {
		return nil, err
	}
	ch := &Change{File: p.path, Before: f.Text(), file: f, dialect: p.dialect, state: state}
	first, old, err := p.first(state, f, held)
	if err != nil {
		return nil, err
	}
	wanted, err := p.dialect.makeWay(f, held, p.dialect.keys(command, args))
	if err != nil {
		return nil, err
	}
	list, _ := section(held, p.dialect) // it could be read just now
	out := slices.Clone(old.Taken)
	for _, name := range took {
		if err := p.dialect.drop(f, name); err != nil {
			return nil, err
		}
		ch.Took = append(ch.Took, name)
		for _, it := range list {
			if entry, ok := it.value.(map[string]any); ok && it.name == name {
				out = append(slices.DeleteFunc(out, func(t takenEntry) bool { return t.Name == name }), takenEntry{name, entry})
			}
		}
	}
	if wanted != nil {
		if err := p.dialect.put(f, EntryName, wanted); err != nil {
			return nil, err
		}
	}
	ch.After = f.Text()
	if _, text, err := c.Snippet(m, command, args); err == nil {
		for line := range strings.Lines(string(text)) {
			ch.own = append(ch.own, bare(line))
		}
	}
	if p.dialect == gemini && off(held)(EntryName) {
		ch.Note = "Gemini CLI leaves it out as long as \"mcp\" in that file excludes it, or allows others only"
	}
	ch.undo = difference(first, ch.After)
	ch.undo.Path, ch.undo.Existed, ch.undo.Taken = f.Real(), old.Existed, out
	return ch, nil
}

// first is the text before Goblin's first change, as far as that can be known, and what is
// remembered of that.
func (p place) first(state string, f *configedit.File, held map[string]any) ([]byte, record, error) {
	old := record{Existed: !f.New()}
	rec := remembered(state, f.Real())
	if rec != nil {
		old.Taken = rec.Taken
		if rec.Sum == sum(f.Text()) {
			old.Existed = rec.Existed
		}
	}
	if entry, there := p.dialect.goblin(held); rec == nil || !there || !ours(entry) {
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

// makeWay takes Goblin's entry out of a file if it is not as wanted, and gives the one to be
// put in: with what the user added to the old one, or nil if it is as wanted.
func (d *dialect) makeWay(f *configedit.File, held, wanted map[string]any) (map[string]any, error) {
	entry, there := d.goblin(held)
	switch {
	case !there:
		return wanted, nil
	case !ours(entry):
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
	p, err := c.target(&m)
	if err != nil {
		return nil, err
	}
	f, held, err := edit(p)
	if err != nil {
		return nil, err
	}
	ch := &Change{File: p.path, Before: f.Text(), file: f, dialect: p.dialect, state: state}
	rec := remembered(state, f.Real())
	entry, there := p.dialect.goblin(held)
	switch {
	case f.New(), !there && (rec == nil || len(rec.Taken) == 0):
		return nil, fmt.Errorf("%s %w", p.path, ErrNone)
	case there && !ours(entry):
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
		if after := bytes.Replace(before, rec.New, rec.Old, 1); rec.fits(d, before, after) {
			f.SetText(after)
			return false, "", nil
		}
	}
	list, err := section(held, d)
	if err != nil {
		return false, "", err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(it item) bool { return it.name == name })
	}
	if rec != nil {
		for _, t := range rec.Taken {
			if has(t.Name) {
				continue
			}
			if err := d.put(f, t.Name, t.Entry); err != nil {
				note = "the servers that were taken out with it are in " + rec.Backup
			}
		}
	}
	if has(EntryName) {
		err = d.drop(f, EntryName)
	}
	return false, note, err
}

// Apply writes a change, with a copy of the old bytes beside the file.
func (ch *Change) Apply(now time.Time) error {
	if ch.Same() {
		return nil
	}
	if !ch.file.New() {
		info, err := os.Stat(ch.file.Real())
		if err != nil {
			return err
		}
		if ch.Backup, err = Backup(ch.file.Real(), ch.Before, info.Mode().Perm(), now); err != nil {
			return fmt.Errorf("keep a copy of %s: %w", ch.File, err)
		}
	}
	forget, err := ch.remember()
	switch {
	case err != nil:
	case ch.Deletes:
		err = ch.delete()
	default:
		err = ch.file.Save()
	}
	if err == nil && ch.undo == nil {
		return ch.forget()
	}
	if err != nil {
		err = errors.Join(err, forget())
		if ch.Backup != "" {
			err = errors.Join(err, os.Remove(ch.Backup))
			ch.Backup = ""
		}
	}
	return err
}

func (ch *Change) delete() error {
	now, err := os.ReadFile(ch.file.Real())
	if err != nil {
		return err
	}
	if !bytes.Equal(now, ch.Before) {
		return fmt.Errorf("%s was changed by somebody else meanwhile; nothing was written: try again", ch.File)
	}
	return os.Remove(ch.file.Real())
}

// Backup writes a copy of a file beside it, named by the time.
func Backup(path string, text []byte, mode fs.FileMode, now time.Time) (string, error) {
	for i := 1; ; i++ {
		name := path + ".goblin-" + now.Format("20060102-150405")
		if i > 1 {
			name += fmt.Sprintf("-%d", i)
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o200)
		if errors.Is(err, fs.ErrExist) && i < 1000 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(text)
		return name, errors.Join(err, f.Close())
	}
}

// target is the file that has Goblin's entry, else the first one that is there, else the
// one to be made.
func (c *Client) target(m *Machine) (place, error) {
	var there []place
	var first place
	for _, p := range c.places(m) {
		if len(p.dialect.section) > 1 {
			continue // of older versions
		}
		if first.path == "" {
			first = p
		}
		text, err := readFile(p.path)
		if err != nil {
			if _, err := os.Lstat(p.path); err == nil {
				there = append(there, p)
			}
			continue
		}
		if held, err := decode(p.dialect.format, text); err == nil {
			if _, ok := p.dialect.goblin(held); ok {
				return p, nil
			}
		}
		there = append(there, p)
	}
	switch {
	case len(there) > 0:
		return there[0], nil
	case first.path == "":
		return first, fmt.Errorf("it is not known where %s has its files: set HOME", c.Title)
	}
	return first, nil
}

// Place is the file that Goblin's entry would be put into; "" if it is not known.
func (c *Client) Place(m Machine) string {
	p, _ := c.target(&m)
	return p.path
}

// edit opens a file to change it.
func edit(p place) (*configedit.File, map[string]any, error) {
	if info, err := os.Stat(p.path); err == nil && !owned(info) {
		return nil, nil, fmt.Errorf("%s belongs to another user; it stays as it is", p.path)
	}
	f, err := configedit.OpenForeign(p.path, p.dialect.section[0], p.dialect.format == inJSON)
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
func (d *dialect) goblin(held map[string]any) (keys, bool) {
	list, err := section(held, d)
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
	switch all := held[d.section[0]].(type) {
	case map[string]any:
		delete(all, name)
	case []any:
		held[d.section[0]] = slices.DeleteFunc(all, func(v any) bool {
			entry, _ := v.(map[string]any)
			return entry["name"] == name
		})
	}
}

// tidy removes an empty section.
func (d *dialect) tidy(held map[string]any) map[string]any {
	switch all := held[d.section[0]].(type) {
	case map[string]any:
		if len(all) == 0 {
			delete(held, d.section[0])
		}
	case []any:
		if len(all) == 0 {
			delete(held, d.section[0])
		}
	case nil:
		delete(held, d.section[0])
	}
	return held
}

// ours reports whether an entry of Goblin's name starts Goblin, or reaches it.
func ours(entry keys) bool {
	command, args, problem := entry.commandLine()
	return problem == "" && (config.Self(command, args) || command == "" && ownURL(entry.address()))
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
		if entry, there := p.dialect.goblin(held); there && ours(entry) {
			e.File = p.path
			e.Command, e.Args, _ = entry.commandLine()
			return e, true
		}
	}
	return e, false
}

// Snippet is Goblin's entry as a file of its own, and where it belongs.
func (c *Client) Snippet(m Machine, command string, args []string) (file string, text []byte, err error) {
	p, err := c.target(&m)
	if err != nil {
		return "", nil, err
	}
	f, err := configedit.OpenForeign(p.path+".of-goblin", p.dialect.section[0], p.dialect.format == inJSON)
	if err != nil {
		return "", nil, err
	}
	if err := p.dialect.put(f, EntryName, p.dialect.keys(command, args)); err != nil {
		return "", nil, err
	}
	return p.path, f.Text(), nil
}

// Served are the names in the file of a client of those servers that are among entries, which
// are those of Goblin's config.
func (c *Client) Served(m Machine, entries []map[string]any) (names []string) {
	p, err := c.target(&m)
	if err != nil {
		return nil
	}
	f := read(&m, c, p) // Install tells what is wrong with it
	for i := range f.Servers {
		s := &f.Servers[i]
		if slices.ContainsFunc(entries, func(entry map[string]any) bool { return Same(entry, s.Keys) }) {
			names = append(names, s.Was)
		}
	}
	return names
}

// Diff shows the lines that change, in the form of diff -u. Of those that are not Goblin's
// own it shows keys and no values: they may be secret.
func (ch *Change) Diff() string {
	before, after := string(ch.Before), string(ch.After)
	text, err := udiff.ToUnified(ch.File, ch.File, before, udiff.Lines(before, after), 0)
	if err != nil { // of edits that do not fit, which they do
		return ""
	}
	var out strings.Builder
	for i, line := range slices.Collect(strings.Lines(text)) {
		if i > 1 && (line[0] == '+' || line[0] == '-') && !slices.Contains(ch.own, bare(line[1:])) {
			line = line[:1] + withoutValue(line[1:])
		}
		out.WriteString(line)
	}
	return out.String()
}

// bare is a line without what may differ around it.
func bare(line string) string { return strings.TrimRight(strings.TrimSpace(line), ",") }

var (
	keyed = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(\s*(?:- )?(?:"[^"\\]*"|[A-Za-z0-9_.-]+)\s*[:=]\s*)(.*?)(\s*)$`)
	})
	signs = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[\s{}\[\],]*$|^\s*\[mcp_servers\.[^\]]*\]\s*$`)
	})
)

// withoutValue is a line with its key only.
func withoutValue(line string) string {
	if signs().MatchString(line) {
		return line
	}
	if m := keyed().FindStringSubmatch(line); m != nil {
		if signs().MatchString(m[2]) {
			return line
		}
		return m[1] + "…" + m[3]
	}
	return strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " \t"))) + "…" + line[len(strings.TrimRight(line, "\r\n")):]
}
