// Package keymap lists the UI's actions with their keys and applies the user's changes.
//
// It also defines the places of actions, the spelling of keys, and conflicts. It knows
// neither the config nor the UI.
package keymap

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Place is a set of panes, dialogs and other focuses where keys work.
type Place uint64

// Values of [Place].
const (
	InServers Place = 1 << iota
	InTools
	InPrompts
	InResources
	InLogs
	InUsage
	InSaved
	InHome
	InDetail // the detail has the focus

	InFilter // typing a filter
	InForm
	InPalette
	InHelp
	InSubscriptions
	InClients
	InSearch // typing the filter of a list in a dialog
	InValues
	_
	InPast
	InView
	InQuery
	InLine
	InConfirm
	InAddress
	InSampling
	InLogin
	InSetup
	InMistakes
	InSnippets
	InCompare
	InRules
	InNewServer
	InMenu
	InApproval

	InLists   = InServers | InTools | InPrompts | InResources | InLogs | InUsage | InSaved | InHome
	InCatalog = InTools | InPrompts | InResources
	Anywhere  = InLists | InDetail
)

// Places returns the panes in the order of the documentation.
func Places() []Place {
	return []Place{InServers, InTools, InPrompts, InResources, InLogs, InUsage, InSaved, InHome, InDetail}
}

var placeNames = [...]string{
	"Servers", "Tools", "Prompts", "Resources", "Logs", "Usage", "Saved", "Home", "Detail",
	"the filter line", "forms", "the palette", "the help", "the subscriptions", "the clients",
	"a dialog's filter", "value lists", "an exchange", "last calls", "the profile chooser",
	"the JSON query", "a line of text", "confirmations", "URLs to open",
	"sampling answers", "logins", "the setup", "the config mistakes", "the copy menu", "a comparison", "the breakpoints", "new servers", "the menu of a row", "approvals",
}

// String lists the places in words.
func (p Place) String() string {
	var all []string
	for i, name := range placeNames {
		if p&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	switch n := len(all); n {
	case 0:
		return "nowhere"
	case 1:
		return all[0]
	default:
		return strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
}

// Action is an action with its keys, in Bubble Tea's spelling. The first key is shown.
type Action struct {
	ID    string
	Keys  []string
	Where Place
}

// quitAction has a fixed key, so that the UI can always be closed.
const quitAction = "interrupt"

const quitKey = "ctrl+c"

// Actions returns all actions with their default keys. Ids of dialog actions begin with
// the dialog's name and a dot.
func Actions() []Action { return append(paneActions(), dialogActions()...) }

//nolint:funlen // one table
func paneActions() []Action {
	return []Action{
		{"servers", []string{"1"}, Anywhere},
		{"tools", []string{"2"}, Anywhere},
		{"prompts", []string{"3"}, Anywhere},
		{"resources", []string{"4"}, Anywhere},
		{"logs", []string{"5"}, Anywhere},
		{"usage", []string{"6"}, Anywhere},
		{"saved", []string{"7"}, Anywhere},
		{"home", []string{"9"}, Anywhere},
		{"clients", []string{"0"}, Anywhere},
		{"mistakes", []string{"!"}, Anywhere},
		{"break", []string{"b"}, Anywhere},
		{"rules", []string{"B"}, Anywhere},
		{"next", []string{"tab"}, Anywhere},
		{"previous", []string{"shift+tab"}, Anywhere},
		{"down", []string{"j", "down"}, Anywhere},
		{"up", []string{"k", "up"}, Anywhere},
		{"half-down", []string{"ctrl+d"}, Anywhere},
		{"half-up", []string{"ctrl+u"}, Anywhere},
		{"page-down", []string{"ctrl+f", "pgdown"}, Anywhere},
		{"page-up", []string{"ctrl+b", "pgup"}, Anywhere},
		{"top", []string{"g", "home"}, Anywhere},
		{"bottom", []string{"G", "end"}, Anywhere},
		{"next-row", []string{"J"}, InDetail},
		{"previous-row", []string{"K"}, InDetail},
		{"open", []string{"enter"}, InLists},
		{"enlarge", []string{"enter"}, InDetail},
		{"detail", []string{"right"}, InLists},
		{"detail-vi", []string{"l"}, InLists &^ InServers},
		{"back", []string{"esc", "h", "left"}, Anywhere},
		{"filter", []string{"/"}, Anywhere},
		{"next-match", []string{"n"}, Anywhere},
		{"previous-match", []string{"N"}, Anywhere},
		{"only-matches", []string{"&"}, InDetail},
		{"line", []string{"#"}, InLists | InDetail},
		{"server-facet", []string{"f"}, InCatalog | InServers},
		{"mime-facet", []string{"m"}, InResources},
		{"sort", []string{"o"}, InLists},
		{"sort-column", []string{"O"}, InLists},
		{"mark", []string{" "}, InCatalog},
		{"mark-all", []string{"*"}, InCatalog | InLogs},
		{"subscribe", []string{"s"}, InResources | InDetail},
		{"subscribed", []string{"S"}, InResources},
		{"seen", []string{"v"}, InCatalog},
		{"subscriptions", []string{"w"}, Anywhere},
		{"templates", []string{"t"}, InResources},
		{"call", []string{"c"}, InCatalog | InLogs | InSaved | InDetail},
		{"repeat", []string{"."}, InCatalog | InDetail},
		{"past", []string{"H"}, InCatalog | InDetail},
		{"cancel", []string{"X"}, Anywhere},
		{"answer", []string{"a"}, Anywhere},
		{"reload", []string{"r"}, Anywhere},
		{"enable", []string{"x"}, InServers},
		{"switch", []string{"x"}, InCatalog | InUsage},
		{"view", []string{"V"}, InCatalog},
		{"remove", []string{"D"}, InServers | InSaved},
		{"edit-server", []string{"ctrl+e"}, InServers | InDetail},
		{"config", []string{"ctrl+o"}, Anywhere},
		{"log-in", []string{"l"}, InServers | InDetail},
		{"approve", []string{"A"}, InServers | InTools | InSaved | InHome},
		{"copy", []string{"y"}, Anywhere},
		{"copy-content", []string{"Y"}, Anywhere},
		{"pager", []string{"e"}, Anywhere},
		{"editor", []string{"E"}, Anywhere},
		{"save", []string{"W"}, Anywhere},
		{"inspect", []string{"i"}, Anywhere},
		{"tab-left", []string{"["}, InLogs | InUsage | InDetail},
		{"tab-right", []string{"]"}, InLogs | InUsage | InDetail},
		{"follow", []string{"f"}, InLogs},
		{"method-facet", []string{"m"}, InLogs},
		{"level", []string{"L"}, InLogs},
		{"shown", []string{"S"}, InLogs},
		{"pause", []string{" "}, InLogs},
		{"fit", []string{"z"}, InLogs},
		{"range", []string{"t"}, InLogs},
		{"compare", []string{"v"}, InLogs | InSaved | InDetail},
		{"run-folder", []string{"R"}, InSaved},
		{"variables", []string{"V"}, InSaved},
		{"rename", []string{"m"}, InSaved},
		{"duplicate", []string{"d"}, InSaved},
		{"new-call", []string{"C"}, InSaved},
		{"save-call", []string{"ctrl+w"}, Anywhere},
		{"compare-definition", []string{"C"}, InTools | InPrompts},
		{"palette", []string{":", "ctrl+p"}, Anywhere},
		{"help", []string{"?"}, Anywhere},
		{"clear", nil, Anywhere},
		{"leave", []string{"q"}, InDetail},
		{"interrupt", []string{"ctrl+c"}, Anywhere},
		{"quit", []string{"q"}, InLists},
		{"fold", []string{"-"}, Anywhere},
		{"unfold", []string{"+", "="}, Anywhere},
		{"fold-node", []string{"z"}, InDetail},
		{"query", []string{"|"}, Anywhere},
		{"wrap", []string{"\\"}, Anywhere},
		{"sideways", []string{"}", "shift+right"}, Anywhere},
		{"sideways-back", []string{"{", "shift+left"}, Anywhere},
		{"place", []string{"P"}, Anywhere},
		{"widen", []string{"F"}, Anywhere},
		{"larger-detail", []string{"<"}, Anywhere},
		{"smaller-detail", []string{">"}, Anywhere},
		{"mouse", []string{"M"}, Anywhere},
		{"theme", []string{"T"}, Anywhere},
	}
}

// removedIDs are actions of earlier versions. Configs may still have them.
var removedIDs = []string{
	"exchange.other", "exchange.copy", "exchange.command", "exchange.call", "exchange.item", "exchange.query", "exchange.wrap",
	"exchange.right", "exchange.left", "exchange.pager", "exchange.editor", "exchange.save", "exchange.save-call", "exchange.close",
}

// IDs returns the ids of the actions whose keys can be changed, and those of earlier
// versions.
func IDs() []string {
	var all []string
	for _, a := range Actions() {
		if a.ID != quitAction {
			all = append(all, a.ID)
		}
	}
	return append(all, removedIDs...)
}

// SuggestIDs returns the ids that an unknown one could mean: those of the same dialog, or
// those of panes.
func SuggestIDs(id string) []string {
	of := func(id string) string { before, _, _ := strings.Cut(id+".", "."); return before }
	dialog := strings.Contains(id, ".") && slices.ContainsFunc(dialogActions(), func(a Action) bool { return of(a.ID) == of(id) })
	return slices.DeleteFunc(IDs(), func(known string) bool {
		if dialog {
			return of(known) != of(id)
		}
		return strings.Contains(known, ".") && !strings.Contains(id, ".")
	})
}

// Map holds actions by id.
type Map map[string]Action

// Rebind returns the actions with changed keys, by id. An empty list removes all keys. An
// action with C-c by default keeps it. Other actions lose the default keys that a changed
// one has, so that new defaults never break a config.
func Rebind(changed map[string][]string) Map {
	m := make(Map)
	for _, a := range applyChanges(changed) {
		m[a.ID] = a
	}
	for _, c := range Conflicts(changed) {
		if a := m[c.Other]; c.Default {
			a.Keys = slices.DeleteFunc(slices.Clone(a.Keys), func(key string) bool { return key == c.Key })
			m[c.Other] = a
		}
	}
	return m
}

func applyChanges(changed map[string][]string) []Action {
	all := Actions()
	for i := range all {
		keys, ok := changed[all[i].ID]
		if !ok || all[i].ID == quitAction {
			continue
		}
		stays := slices.Contains(all[i].Keys, quitKey)
		all[i].Keys = slices.Clone(keys)
		if stays {
			all[i].Keys = append(all[i].Keys, quitKey)
		}
	}
	return all
}

// In returns the ids of a place's actions by key.
func (m Map) In(p Place) map[string]string {
	by := make(map[string]string)
	for id, a := range m {
		if a.Where&p == p {
			for _, key := range a.Keys {
				by[key] = id
			}
		}
	}
	return by
}

// Conflict is a key with two actions in one place. Action is a changed one.
type Conflict struct {
	Key, Action, Other string
	Where              Place
	Default            bool // Other is unchanged
}

// Conflicts returns the conflicts that changes cause.
func Conflicts(changed map[string][]string) []Conflict {
	var found []Conflict
	all := applyChanges(changed)
	for i := range all {
		if _, ok := changed[all[i].ID]; !ok {
			continue
		}
		for j := range all {
			_, other := changed[all[j].ID]
			where := all[i].Where & all[j].Where
			if where == 0 || i == j || other && j > i { // report the later changed action
				continue
			}
			for _, key := range all[i].Keys {
				if slices.Contains(all[j].Keys, key) {
					found = append(found, Conflict{key, all[i].ID, all[j].ID, where, !other})
				}
			}
		}
	}
	return found
}

var keyNames = map[string]string{
	"enter": "enter", "return": "enter", "tab": "tab", "esc": "esc", "escape": "esc", "space": " ",
	"backspace": "backspace", "delete": "delete", "del": "delete", "insert": "insert", "ins": "insert",
	"up": "up", "down": "down", "left": "left", "right": "right", "home": "home", "end": "end",
	"pgup": "pgup", "pageup": "pgup", "pgdown": "pgdown", "pgdn": "pgdown", "pagedown": "pgdown",
	"f1": "f1", "f2": "f2", "f3": "f3", "f4": "f4", "f5": "f5", "f6": "f6",
	"f7": "f7", "f8": "f8", "f9": "f9", "f10": "f10", "f11": "f11", "f12": "f12",
}

// KeyNames returns the names of keys without a character.
func KeyNames() []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(keyNames)) {
		if keyNames[key] == key || key == "space" {
			all = append(all, key)
		}
	}
	return all
}

// modifiable maps modifiers to the named keys that terminals report with them.
var modifiable = map[string][]string{
	"ctrl+":       {"up", "down", "left", "right", "home", "end", "pgup", "pgdown"},
	"shift+":      {"tab", "up", "down", "left", "right", "home", "end"},
	"ctrl+shift+": {"up", "down", "left", "right", "home", "end"},
}

// ParseKey parses a key as users write it: a character, a name, or either with Ctrl or
// Shift (ctrl+d, C-d, shift+tab). It returns Bubble Tea's spelling, or why terminals
// cannot report the key.
func ParseKey(written string) (key, why string) {
	if r, size := utf8.DecodeRuneInString(written); size == len(written) && unicode.IsPrint(r) && r != utf8.RuneError && r != ' ' {
		return written, "" // case-sensitive
	}
	low := strings.ToLower(strings.TrimSpace(written))
	if written == " " {
		low = "space"
	}
	held, low := cutModifiers(low)
	key = low
	if name, ok := keyNames[low]; ok {
		key = name
	}
	switch {
	case strings.HasPrefix(low, "alt+"), strings.HasPrefix(low, "alt-"), strings.HasPrefix(low, "m-"):
		return "", "uses Alt, which terminals send as Esc plus the key"
	case held == "" && keyNames[low] != "", slices.Contains(modifiable[held], key):
		return held + key, ""
	case held == "ctrl+" && key == " ":
		return "ctrl+@", "" // as terminals report it
	case held == "ctrl+" && len(key) == 1 && key[0] >= 'a' && key[0] <= 'z':
		return ctrlLetter(key)
	case held == "shift+" && utf8.RuneCountInString(key) == 1 && key != " ":
		return "", "is a character with Shift; use the resulting character"
	}
	return "", "is not a key that terminals can report; use a character, ctrl+ with a letter, or one of " + strings.Join(KeyNames(), ", ")
}

func cutModifiers(low string) (held, key string) {
	for {
		i := slices.IndexFunc(modifierSpellings[:], func(s [2]string) bool { return strings.HasPrefix(low, s[0]) && low != s[0] })
		if i < 0 {
			return held, low
		}
		held, low = held+modifierSpellings[i][1], low[len(modifierSpellings[i][0]):]
	}
}

var modifierSpellings = [...][2]string{
	{"ctrl+", "ctrl+"},
	{"ctrl-", "ctrl+"},
	{"c-", "ctrl+"},
	{"^", "ctrl+"},
	{"shift+", "shift+"},
	{"shift-", "shift+"},
	{"s-", "shift+"},
}

func ctrlLetter(key string) (string, string) {
	switch key {
	case "c":
		return "", "always quits"
	case "i":
		return "", "is Tab in terminals"
	case "m":
		return "", "is Enter in terminals"
	case "z":
		return "", "would suspend Goblin"
	}
	return "ctrl+" + key, ""
}

// FormatKey formats a key for users.
func FormatKey(key string) string {
	switch key {
	case " ":
		return "space"
	case "ctrl+@":
		return "C-space"
	case "delete":
		return "Del"
	case "pgdown":
		return "PgDn"
	case "pgup":
		return "PgUp"
	}
	if rest, ok := strings.CutPrefix(key, "ctrl+"); ok {
		return "C-" + rest
	}
	if rest, ok := strings.CutPrefix(key, "shift+"); ok {
		return "S-" + rest
	}
	return key
}
