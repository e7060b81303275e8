package report

import "strings"

// Reload is the outcome of reloading an edited config.
type Reload struct {
	// Added, Changed and Removed are servers.
	Added, Removed []string
	Changed        []ServerChange
	Applied        []string // other settings that apply now, such as "rules"
	Later          []string // settings that apply at the daemon's next start
	Invalid        bool     // nothing was applied; the registry has the mistakes
	Restored       bool     // the file was missing, and has its former text again
}

// ServerChange is a server with its changed keys. Without keys, the value of a variable
// changed.
type ServerChange struct {
	Server string
	Keys   []string
}

// Empty reports whether nothing changed.
func (r *Reload) Empty() bool {
	return len(r.Added)+len(r.Removed)+len(r.Changed)+len(r.Applied)+len(r.Later) == 0
}

// String describes the outcome in one line: "reloaded: + web, ~ odd (args), - old". Names
// are untrusted.
func (r *Reload) String() string {
	switch {
	case r.Invalid:
		return "config not reloaded"
	case r.Restored:
		return "the editor removed the file; its former text was restored"
	case r.Empty():
		return "no changes"
	}
	var all []string
	for _, name := range r.Added {
		all = append(all, "+ "+name)
	}
	for _, c := range r.Changed {
		text := "~ " + c.Server
		if len(c.Keys) > 0 {
			text += " (" + strings.Join(c.Keys, ", ") + ")"
		}
		all = append(all, text)
	}
	for _, name := range r.Removed {
		all = append(all, "- "+name)
	}
	all = append(all, r.Applied...)
	text := "reloaded: " + strings.Join(all, ", ")
	switch later := strings.Join(r.Later, ", "); {
	case later == "":
	case len(all) == 0:
		text = "applies after a restart of the daemon (goblin stop): " + later
	default:
		text += "; after a restart of the daemon (goblin stop): " + later
	}
	return text
}

// ServerEntry is a server's entry in the config file, for a form.
type ServerEntry struct {
	Server, File string // File is an absolute path
	Fields       []ServerField
	Others       []string // keys in the file without a field
	Original     []byte   // the file as read; may contain secrets, so never drawn
}

// ServerField is a value that a form offers. A mapping has a field for each member, and a
// list for further ones.
type ServerField struct {
	Path    []string // a key, or a key and a name in its mapping
	Help    string
	Options []string // of a text with few values
	List    bool
	Flag    bool
	// Value is the value as written, with secrets hidden: a text, bool, []string, or nil.
	Value any
}

// Name returns the path with dots.
func (f *ServerField) Name() string { return strings.Join(f.Path, ".") }

// ServerEdit is a change of an entry.
type ServerEdit struct {
	Entry   *ServerEntry
	Values  []ServerValue // changed ones
	Keyring bool          // store new secrets, and write references
}

// ServerValue is a new value; nil removes it. Hidden parts stand for the values in the
// file.
type ServerValue struct {
	Path  []string
	Value any
}

// EditPreview describes what saving an edit does. It contains no secrets.
type EditPreview struct {
	Diff    []string // changed lines of the file
	Secrets []string // new values that look secret, by path
	Place   string   // where secrets would be stored
	Keyring bool     // Place is the system's keyring
	Starts  bool     // the server starts differently
}

// FileChangedError reports that the file changed since it was read.
type FileChangedError struct {
	File string
	Diff []string // without secrets
}

func (e *FileChangedError) Error() string { return e.File + " was changed by another program" }
