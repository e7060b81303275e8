package clientconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"goblin/gateway/atomicfile"
	"goblin/gateway/state"
)

// maxRecord allows two client files in base64, in bytes.
const maxRecord = 4 * maxFile

// record undoes a change. It contains the old and the new bytes of the changed range.
type record struct {
	Path    string `json:"path"`
	Existed bool   `json:"existed"`
	Sum     string `json:"sum"` // hash of the file after the change
	At      int    `json:"at"`
	Old     []byte `json:"old"`
	New     []byte `json:"new"`
	Backup  string `json:"backup"`
	// Was is the hash of the file before the change.
	Was string `json:"was,omitempty"`
	// Prior is the previous record. It applies if the file still has the hash Was: a
	// process may stop between writing the record and the file.
	Prior *record `json:"prior,omitempty"`
	// Taken lists the removed servers in the client's format.
	Taken []takenEntry `json:"taken,omitempty"`
}

type takenEntry struct {
	Name    string         `json:"name"`
	Entry   map[string]any `json:"entry"`
	Section []string       `json:"section,omitempty"`
}

// isOf reports whether the entry belonged to a form's section. Older records don't say.
func (t takenEntry) isOf(d *dialect) bool {
	return len(t.Section) == 0 || slices.Equal(t.Section, d.section)
}

func (t takenEntry) replaces(o takenEntry) bool {
	return t.Name == o.Name && (len(o.Section) == 0 || slices.Equal(t.Section, o.Section))
}

// isOf reports whether before and after differ only by the inserted entry.
func (r *record) isOf(d *dialect, before, after []byte) bool {
	was, errWas := decoded(d, before)
	is, errIs := decoded(d, after)
	if errWas != nil || errIs != nil {
		return false
	}
	if len(r.Taken) > 0 {
		_, there := d.formOf(is).goblin(is)
		return !there
	}
	form := d.formOf(was)
	form.delete(was, EntryName)
	return reflect.DeepEqual(form.tidy(was), form.tidy(is))
}

// writeRecord saves undo information. undo restores the previous record.
func (ch *Change) writeRecord() (undo func() error, err error) {
	undo = func() error { return nil }
	path := recordPath(ch.state, ch.file.RealPath())
	if path == "" {
		return undo, nil
	}
	ch.undo.Backup = ch.Backup
	text, err := json.Marshal(ch.undo)
	old, missing := state.Read(path, maxRecord)
	if err == nil {
		err = atomicfile.Write(path, text)
	}
	if err != nil {
		return undo, fmt.Errorf("save undo information: %w", err)
	}
	if missing != nil {
		return ch.removeRecord, nil
	}
	return func() error { return atomicfile.Write(path, old) }, nil
}

// recordCopy reduces the record of an undone change to the copy's path and the servers
// that were not restored.
func (ch *Change) recordCopy() error {
	path := recordPath(ch.state, ch.file.RealPath())
	if path == "" {
		return nil
	}
	left := record{Path: ch.file.RealPath(), Existed: true, Backup: ch.Backup}
	if ch.Note != "" {
		left.Taken = ch.old.Taken
	}
	text, err := json.Marshal(left)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, text)
}

func (ch *Change) removeRecord() error {
	path := recordPath(ch.state, ch.file.RealPath())
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func recordPath(folder, real string) string {
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, "clients", digest([]byte(real))[:32]+".json")
}

// readRecord returns the record of the last change of a file with this text, or nil.
func readRecord(folder, real string, text []byte) *record {
	path := recordPath(folder, real)
	if path == "" {
		return nil
	}
	written, err := state.Read(path, maxRecord)
	var r record
	if err != nil || json.Unmarshal(written, &r) != nil || r.Path != real {
		return nil
	}
	if r.Was != "" && r.Was == digest(text) { // the change was never written, or was reverted
		return r.Prior
	}
	return &r
}

func (r *record) onlyOwnEntry() *record {
	if r == nil {
		return nil
	}
	copied := *r
	copied.Was, copied.Prior = "", nil
	return &copied
}

func digest(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

func difference(before, after []byte) *record {
	at := 0
	for at < len(before) && at < len(after) && before[at] == after[at] {
		at++
	}
	end := 0
	for end < len(before)-at && end < len(after)-at && before[len(before)-1-end] == after[len(after)-1-end] {
		end++
	}
	return &record{
		Sum: digest(after), At: at,
		Old: slices.Clone(before[at : len(before)-end]), New: slices.Clone(after[at : len(after)-end]),
	}
}

// undo returns the text before the change if text is its result.
func (r *record) undo(text []byte) (before []byte, ok bool) {
	if r.Sum != digest(text) || r.At < 0 || r.At > len(text) {
		return nil, false
	}
	rest, ok := bytes.CutPrefix(text[r.At:], r.New)
	return slices.Concat(text[:r.At], r.Old, rest), ok
}
