// Package serverentry reads and changes a server's entry in the config file for a form.
//
// The form gets values as written, without secrets. An [Editor] has no state and may be
// used concurrently. It does not start servers.
package serverentry

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"goblin/gateway/clientconfig"
	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/secrets"
	"goblin/registry/report"
	"goblin/registry/secrettext"
)

const (
	hidden      = "[hidden]"
	hiddenStart = "[hidden"
	newSecret   = "[new value, hidden]"
)

// The mappings of an entry that have a field for each member.
var mappings = []string{"env", "headers"}

var (
	localKeys  = []string{"command", "args", "env", "cwd"}
	remoteKeys = []string{"url", "headers"}
	sharedKeys = []string{"disabled", "tags", "timeout", "call_timeout", "startup_timeout", "start", "idle_timeout", "isolation"}
	// startKeys decide how a server starts.
	startKeys = []string{"command", "args", "env", "cwd", "url", "headers"}
)

// Editor edits entries of one config file.
type Editor struct {
	Path  string         // absolute
	Store *secrets.Store // nil: secrets cannot be stored
}

// file is the parsed config.
type file struct {
	*configedit.File
	cfg  *config.Config
	mask *config.Mask
}

// open returns a [config.Errors] for a file with mistakes.
func (e *Editor) open() (*file, error) {
	f, err := configedit.Open(e.Path)
	if err != nil {
		return nil, err
	}
	if f.IsNew() {
		return nil, fmt.Errorf("%s no longer exists", e.Path)
	}
	cfg, err := config.Parse(e.Path, f.Text(), os.LookupEnv)
	if err != nil {
		return nil, err
	}
	return &file{f, cfg, config.NewMask(cfg)}, nil
}

// Read returns a server's entry.
func (e *Editor) Read(server string) (*report.ServerEntry, error) {
	f, err := e.open()
	if err != nil {
		return nil, err
	}
	keys := f.Keys(server)
	if keys == nil {
		return nil, fmt.Errorf("server %q has no entry of its own in %s; edit the file", server, filepath.Base(e.Path))
	}
	out := &report.ServerEntry{Server: server, File: e.Path, Original: f.Text()}
	offered := slices.Concat(localKeys, sharedKeys)
	if keys["url"] != nil {
		offered = slices.Concat(remoteKeys, sharedKeys)
	}
	shown := make(map[string]bool)
	for _, key := range offered {
		if fields, ok := f.fields(server, key, keys[key]); ok {
			out.Fields, shown[key] = append(out.Fields, fields...), true
		}
	}
	for _, spelling := range []string{"enabled", "isActive"} {
		shown[spelling] = true // see "disabled"
	}
	for key := range keys {
		if !shown[key] {
			out.Others = append(out.Others, key)
		}
	}
	slices.Sort(out.Others)
	return out, nil
}

// fields returns the fields of a value. It reports false for a value that a form cannot
// show.
func (f *file) fields(server, key string, value any) ([]report.ServerField, bool) {
	help, options := config.ServerKey(key)
	if first, _, ok := strings.Cut(help, ". "); ok {
		help = first + "." // a form has little space
	}
	field := report.ServerField{Path: []string{key}, Help: help, Options: options}
	switch {
	case slices.Contains(mappings, key):
		all, ok := value.(map[string]any)
		if !ok && value != nil {
			return nil, false
		}
		var fields []report.ServerField
		for _, name := range slices.Sorted(maps.Keys(all)) {
			text, ok := scalarText(all[name])
			if !ok {
				return nil, false
			}
			fields = append(fields, report.ServerField{Path: []string{key, name}, Value: f.hide(name, text)})
		}
		field.List = true // further ones
		return append(fields, field), true
	case key == "disabled":
		s, ok := f.cfg.Server(server)
		field.Flag, field.Value = true, ok && s.Disabled
	case key == "args" || key == "tags":
		field.List = true
		list, ok := texts(value)
		if !ok {
			return nil, false
		}
		if value != nil {
			field.Value = f.hideAll(list)
		}
	case value != nil:
		text, ok := scalarText(value)
		if !ok {
			return nil, false
		}
		field.Value = f.mask.String(text)
	}
	return []report.ServerField{field}, true
}

func scalarText(value any) (string, bool) {
	switch value.(type) {
	case string, bool, int, int64, uint64, float64:
		return fmt.Sprint(value), true
	}
	return "", false
}

func texts(value any) (list []string, ok bool) {
	all, isList := value.([]any)
	for _, v := range all {
		s, ok := scalarText(v)
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, isList || value == nil
}

// hide returns the value of a variable or header as the form shows it.
func (f *file) hide(name, value string) string {
	if secrettext.IsSecret(name, value) {
		return hidden
	}
	return f.mask.String(value)
}

func (f *file) hideAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = f.mask.String(s)
	}
	return out
}

var errHidden = errors.New(`replace "[hidden]" by the new value, or leave the whole value as it was`)

// restore replaces the hidden parts of a submitted value.
func (f *file) restore(server string, v report.ServerValue) (any, error) {
	keys := f.Keys(server)
	switch value := v.Value.(type) {
	case string:
		if !strings.Contains(value, hiddenStart) {
			return value, nil
		}
		old := keys[v.Path[0]]
		name := v.Path[0]
		if inner, ok := old.(map[string]any); ok && len(v.Path) == 2 {
			name, old = v.Path[1], inner[v.Path[1]]
		}
		if text, ok := scalarText(old); ok && f.hide(name, text) == value {
			return text, nil
		}
		return nil, fmt.Errorf("%s: %w", strings.Join(v.Path, "."), errHidden)
	case []string:
		old, _ := texts(keys[v.Path[0]])
		shown := f.hideAll(old)
		out := slices.Clone(value)
		for i, s := range out {
			if !strings.Contains(s, hiddenStart) {
				continue
			}
			at := slices.Index(shown, s)
			if at < 0 {
				return nil, fmt.Errorf("%s, line %d: %w", v.Path[0], i+1, errHidden)
			}
			out[i], shown[at] = old[at], "" // each stands for one
		}
		if len(out) == 0 {
			return nil, nil
		}
		return out, nil
	}
	return v.Value, nil
}

// changed is an edit applied to the file in memory.
type changed struct {
	*file
	secrets []secret
	starts  bool
}

type secret struct{ path, name, value string }

// apply opens the file and changes it without saving. It returns a
// [report.FileChangedError] if the file differs from the entry's.
func (e *Editor) apply(edit report.ServerEdit, tx *secrets.Transaction) (*changed, error) {
	f, err := e.open()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(f.Text(), edit.Entry.Original) {
		return nil, &report.FileChangedError{File: e.Path, Diff: e.difference(edit.Entry.Original, f)}
	}
	c := &changed{file: f}
	server := edit.Entry.Server
	for _, v := range edit.Values {
		value, err := f.restore(server, v)
		if err != nil {
			return nil, err
		}
		ref, found := f.split(server, v.Path, value, tx)
		c.secrets = append(c.secrets, found...)
		if edit.Keyring {
			value = ref
		}
		if disabled, ok := value.(bool); ok {
			err = f.SetDisabled(server, disabled)
		} else {
			err = f.Set(server, value, v.Path...)
		}
		if errors.Is(err, configedit.ErrNone) {
			err = fmt.Errorf("server not found in %s; its name may be spelled differently there", e.Path)
		}
		if err != nil {
			return nil, err
		}
		c.starts = c.starts || slices.Contains(startKeys, v.Path[0])
	}
	if c.cfg, err = config.Parse(e.Path, f.Text(), os.LookupEnv); err != nil {
		return nil, errors.New(config.Texts(err)) // the file itself was valid
	}
	return c, nil
}

// split returns a value with references instead of new secrets, and these secrets.
func (f *file) split(server string, path []string, value any, tx *secrets.Transaction) (any, []secret) {
	key, old := path[0], f.Keys(server)[path[0]]
	switch v := value.(type) {
	case string:
		switch {
		case len(path) == 2:
			inner, _ := old.(map[string]any)
			if before, _ := scalarText(inner[path[1]]); v == before || !secrettext.IsSecret(path[1], v) {
				return value, nil
			}
			ref, kept := reference(server, path[1], v, tx)
			return ref, []secret{{strings.Join(path, "."), kept.name, kept.value}}
		case key == "url" && v != old:
			refs, found := splitArgs(server, key, []string{v}, tx)
			return refs[0], found
		}
	case []string:
		if key == "args" {
			refs, found := splitArgs(server, key, v, tx)
			before, _ := texts(old)
			for i, arg := range v {
				if slices.Contains(before, arg) { // the user decided about it earlier
					refs[i] = arg
				}
			}
			all := strings.Join(refs, "\n")
			return refs, slices.DeleteFunc(found, func(s secret) bool { return !strings.Contains(all, "${keyring:"+s.name+"}") })
		}
	}
	return value, nil
}

func splitArgs(server, key string, args []string, tx *secrets.Transaction) (refs []string, found []secret) {
	s := clientconfig.Server{Name: server, Keys: map[string]any{"args": args}}
	keys, all := s.SplitSecrets(tx.FreeName)
	for _, one := range all {
		found = append(found, secret{key, one.Name, one.Value})
	}
	return keys["args"].([]string), found
}

// reference returns the reference to write for a secret. The scheme of a header stays.
func reference(server, name, value string, tx *secrets.Transaction) (ref string, kept secret) {
	scheme := ""
	if before, token, ok := strings.Cut(value, " "); ok && !strings.Contains(before, "=") && token != "" && !strings.Contains(token, " ") {
		scheme, value = before+" ", token
	}
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, server+"."+name)
	kept = secret{name: tx.FreeName(clean[:min(len(clean), 120)], value), value: value}
	return scheme + "${keyring:" + kept.name + "}", kept
}

func (e *Editor) begin() *secrets.Transaction {
	if e.Store == nil {
		return nil
	}
	return e.Store.Begin()
}

// Preview returns the text of a change. An error explains what is wrong with the values.
func (e *Editor) Preview(edit report.ServerEdit) (*report.EditPreview, error) {
	c, err := e.apply(edit, e.begin())
	if err != nil {
		return nil, err
	}
	p := &report.EditPreview{Starts: c.starts && !disabled(c.cfg, edit.Entry.Server), Diff: e.difference(edit.Entry.Original, c.file)}
	for _, s := range c.secrets {
		p.Secrets = append(p.Secrets, s.path)
	}
	p.Secrets = slices.Compact(p.Secrets)
	if e.Store != nil {
		p.Place, p.Keyring = e.Store.Destination()
	}
	return p, nil
}

func disabled(cfg *config.Config, server string) bool {
	s, ok := cfg.Server(server)
	return ok && s.Disabled
}

// Config returns the config with the change, without stored secrets, to try the server.
func (e *Editor) Config(edit report.ServerEdit) (*config.Config, error) {
	edit.Keyring = false
	c, err := e.apply(edit, nil)
	if err != nil {
		return nil, err
	}
	return c.cfg, nil
}

// Save stores the secrets and writes the file. If that fails, the secrets are restored.
func (e *Editor) Save(edit report.ServerEdit) error {
	tx := e.begin()
	c, err := e.apply(edit, tx)
	if err != nil {
		return err
	}
	if edit.Keyring {
		for _, s := range c.secrets {
			if tx == nil {
				return errors.New("secrets cannot be stored here; write ${VAR} and set the variable in env_file")
			}
			if _, err = tx.Set(s.name, s.value); err != nil {
				return errors.Join(fmt.Errorf("store secret %q: %w", s.name, err), tx.Rollback())
			}
		}
	}
	err = c.Save()
	if errors.Is(err, configedit.ErrChanged) {
		if now, openErr := e.open(); openErr == nil {
			err = &report.FileChangedError{File: e.Path, Diff: e.difference(edit.Entry.Original, now)}
		}
	}
	if err != nil && tx != nil {
		err = errors.Join(err, tx.Rollback())
	}
	return err
}
