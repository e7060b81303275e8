package keymap

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// textPlaces are the places where characters are text, and multilinePlaces those with
// multi-line text.
const (
	textPlaces      = InFilter | InForm | InPalette | InHelp | InSearch | InValues | InQuery | InLine | InSampling | InNewServer
	multilinePlaces = InForm | InSampling
)

const scrollPlaces = InSubscriptions | InClients | InSetup | InMistakes | InCompare | InApproval

func dialogActions() []Action {
	return slices.Concat(formActions(), listActions(), callListActions(), ruleActions(), questionActions())
}

func formActions() []Action {
	return []Action{
		{"filter.keep", []string{"enter"}, InFilter},
		{"filter.clear", []string{"esc", "ctrl+c"}, InFilter},
		{"filter.earlier", []string{"up"}, InFilter},
		{"filter.later", []string{"down"}, InFilter},
		{"filter.half-down", []string{"pgdown", "ctrl+d"}, InFilter},
		{"filter.half-up", []string{"pgup"}, InFilter},
		{"form.next", []string{"tab"}, InForm},
		{"form.previous", []string{"shift+tab"}, InForm},
		{"form.up", []string{"up"}, InForm},
		{"form.down", []string{"down"}, InForm},
		{"form.enter", []string{"enter"}, InForm},
		{"form.toggle", []string{" "}, InForm},
		{"form.left", []string{"left"}, InForm},
		{"form.right", []string{"right"}, InForm},
		{"form.empty", []string{"delete", "backspace"}, InForm},
		{"form.complete", []string{"ctrl+@"}, InForm},
		{"form.lines", []string{"ctrl+j"}, InForm},
		{"form.submit", []string{"ctrl+s"}, InForm},
		{"form.save-call", []string{"ctrl+w"}, InForm},
		{"form.raw", []string{"ctrl+e"}, InForm},
		{"form.last", []string{"ctrl+r"}, InForm},
		{"form.add", []string{"ctrl+n"}, InForm},
		{"form.remove", []string{"ctrl+x"}, InForm},
		{"form.move-up", []string{"shift+up"}, InForm},
		{"form.move-down", []string{"shift+down"}, InForm},
		{"form.members", []string{"ctrl+t"}, InForm},
		{"form.schema-down", []string{"pgdown"}, InForm},
		{"form.schema-up", []string{"pgup"}, InForm},
		{"form.cancel", []string{"esc", "ctrl+c"}, InForm},
		{"palette.run", []string{"enter"}, InPalette},
		{"palette.complete", []string{"tab"}, InPalette},
		{"palette.up", []string{"up"}, InPalette},
		{"palette.down", []string{"down"}, InPalette},
		{"palette.row-up", []string{"ctrl+p", "shift+tab"}, InPalette},
		{"palette.row-down", []string{"ctrl+n"}, InPalette},
		{"palette.page-up", []string{"pgup"}, InPalette},
		{"palette.page-down", []string{"pgdown"}, InPalette},
		{"palette.earlier", []string{"ctrl+up"}, InPalette},
		{"palette.later", []string{"ctrl+down"}, InPalette},
		{"palette.close", []string{"esc", "ctrl+c"}, InPalette},
		{"help.down", []string{"down"}, InHelp},
		{"help.up", []string{"up"}, InHelp},
		{"help.half-down", []string{"ctrl+d"}, InHelp},
		{"help.half-up", []string{"ctrl+u"}, InHelp},
		{"help.page-down", []string{"pgdown", "ctrl+f"}, InHelp},
		{"help.page-up", []string{"pgup", "ctrl+b"}, InHelp},
		{"help.top", []string{"home"}, InHelp},
		{"help.bottom", []string{"end"}, InHelp},
		{"help.back", []string{"esc"}, InHelp},
		{"help.close", []string{"?", "enter", "ctrl+c"}, InHelp},
	}
}

func listActions() []Action {
	return []Action{
		{"scroll.down", []string{"j", "down"}, scrollPlaces},
		{"scroll.up", []string{"k", "up"}, scrollPlaces},
		{"scroll.half-down", []string{"ctrl+d"}, scrollPlaces | InPast},
		{"scroll.half-up", []string{"ctrl+u"}, scrollPlaces | InPast},
		{"scroll.page-down", []string{"pgdown", "ctrl+f", " "}, scrollPlaces | InPast},
		{"scroll.page-up", []string{"pgup", "ctrl+b"}, scrollPlaces | InPast},
		{"scroll.top", []string{"g", "home"}, scrollPlaces | InPast},
		{"scroll.bottom", []string{"G", "end"}, scrollPlaces | InPast},
		{"subscriptions.visit", []string{"enter"}, InSubscriptions},
		{"subscriptions.toggle", []string{"s"}, InSubscriptions},
		{"subscriptions.filter", []string{"/"}, InSubscriptions},
		{"subscriptions.sort", []string{"o"}, InSubscriptions},
		{"subscriptions.sort-column", []string{"O"}, InSubscriptions},
		{"subscriptions.copy", []string{"y"}, InSubscriptions},
		{"subscriptions.back", []string{"esc"}, InSubscriptions},
		{"subscriptions.close", []string{"w", "q", "ctrl+c"}, InSubscriptions},
		{"clients.traffic", []string{"enter", "i"}, InClients},
		{"clients.disconnect", []string{"D"}, InClients},
		{"clients.filter", []string{"/"}, InClients},
		{"clients.sort", []string{"o"}, InClients},
		{"clients.sort-column", []string{"O"}, InClients},
		{"clients.back", []string{"esc"}, InClients},
		{"clients.close", []string{"0", "q", "ctrl+c"}, InClients},
		{"search.keep", []string{"enter"}, InSearch},
		{"search.clear", []string{"esc", "ctrl+c"}, InSearch},
		{"search.down", []string{"down"}, InSearch},
		{"search.up", []string{"up"}, InSearch},
		{"values.tick", []string{" "}, InValues},
		{"values.all", []string{"*"}, InValues},
		{"values.apply", []string{"enter"}, InValues},
		{"values.none", []string{"delete", "ctrl+x"}, InValues},
		{"values.close", []string{"esc", "ctrl+c"}, InValues},
		{"values.up", []string{"up", "ctrl+p"}, InValues},
		{"values.down", []string{"down", "ctrl+n"}, InValues},
		{"values.page-up", []string{"pgup"}, InValues},
		{"values.page-down", []string{"pgdown"}, InValues},
		{"add.choose", []string{"enter"}, InNewServer},
		{"add.mark", []string{" "}, InNewServer},
		{"add.mark-all", []string{"*"}, InNewServer},
		{"add.other", []string{"tab"}, InNewServer},
		{"add.copy", []string{"ctrl+y"}, InNewServer},
		{"add.close", []string{"esc", "ctrl+c"}, InNewServer},
		{"add.up", []string{"up", "ctrl+p"}, InNewServer},
		{"add.down", []string{"down", "ctrl+n"}, InNewServer},
		{"add.page-up", []string{"pgup"}, InNewServer},
		{"add.page-down", []string{"pgdown"}, InNewServer},
		{"mistakes.edit", []string{"enter", "E"}, InMistakes},
		{"mistakes.copy", []string{"c"}, InMistakes},
		{"mistakes.close", []string{"esc", "q", "!", "ctrl+c"}, InMistakes},
		{"query.copy", []string{"enter"}, InQuery},
		{"query.down", []string{"down"}, InQuery},
		{"query.up", []string{"up"}, InQuery},
		{"query.page-down", []string{"pgdown"}, InQuery},
		{"query.page-up", []string{"pgup"}, InQuery},
		{"query.close", []string{"esc", "ctrl+c"}, InQuery},
		{"line.go", []string{"enter"}, InLine},
		{"line.close", []string{"esc", "ctrl+c"}, InLine},
	}
}

// callListActions are the actions of lists of calls, comparisons and snippets.
func callListActions() []Action {
	return []Action{
		{"past.down", []string{"j", "down"}, InPast},
		{"past.up", []string{"k", "up"}, InPast},
		{"past.zoom", []string{"F"}, InPast},
		{"past.call", []string{"c", "enter"}, InPast},
		{"past.copy", []string{"y"}, InPast},
		{"past.copy-content", []string{"Y"}, InPast},
		{"past.compare", []string{"v"}, InPast},
		{"past.save-call", []string{"ctrl+w"}, InPast},
		{"past.break", []string{"b"}, InPast},
		{"past.path", []string{"|"}, InPast},
		{"past.subscribe", []string{"s"}, InPast},
		{"past.close", []string{"esc", "q", "h", "left", "H", "ctrl+c"}, InPast},
		{"compare.next", []string{"n"}, InCompare},
		{"compare.previous", []string{"N"}, InCompare},
		{"compare.ignore", []string{"i"}, InCompare},
		{"compare.ignored", []string{"I"}, InCompare},
		{"compare.unified", []string{"u"}, InCompare},
		{"compare.swap", []string{"s"}, InCompare},
		{"compare.run", []string{"r"}, InCompare},
		{"compare.right", []string{"}", "right", "l", "shift+right"}, InCompare},
		{"compare.left", []string{"{", "left", "h", "shift+left"}, InCompare},
		{"compare.close", []string{"esc", "q", "ctrl+c"}, InCompare},
		{"view.down", []string{"j", "down"}, InView},
		{"view.up", []string{"k", "up"}, InView},
		{"view.choose", []string{"enter"}, InView},
		{"view.close", []string{"esc", "q", "h", "left", "V", "ctrl+c"}, InView},
		{"snippets.down", []string{"j", "down"}, InSnippets},
		{"snippets.up", []string{"k", "up"}, InSnippets},
		{"snippets.copy", []string{"enter", "y", "Y"}, InSnippets},
		{"snippets.save", []string{"W"}, InSnippets},
		{"snippets.close", []string{"esc", "q", "h", "left", "ctrl+c"}, InSnippets},
	}
}

// ruleActions are the actions of the list of rules and stopped requests.
func ruleActions() []Action {
	return []Action{
		{"rules.down", []string{"j", "down"}, InRules},
		{"rules.up", []string{"k", "up"}, InRules},
		{"rules.half-down", []string{"ctrl+d"}, InRules},
		{"rules.half-up", []string{"ctrl+u"}, InRules},
		{"rules.page-down", []string{"pgdown", "ctrl+f"}, InRules},
		{"rules.page-up", []string{"pgup", "ctrl+b"}, InRules},
		{"rules.top", []string{"g", "home"}, InRules},
		{"rules.bottom", []string{"G", "end"}, InRules},
		{"rules.open", []string{"enter", "e"}, InRules},
		{"rules.send", []string{"s"}, InRules},
		{"rules.deny", []string{"d"}, InRules},
		{"rules.answer", []string{"r"}, InRules},
		{"rules.fail", []string{"f"}, InRules},
		{"rules.remember", []string{"m"}, InRules},
		{"rules.next", []string{"!", "]"}, InRules},
		{"rules.copy", []string{"y"}, InRules},
		{"rules.add", []string{"a"}, InRules},
		{"rules.toggle", []string{" "}, InRules},
		{"rules.remove", []string{"D"}, InRules},
		{"rules.clear", []string{"C"}, InRules},
		{"rules.other", []string{"tab", "shift+tab", "l", "right"}, InRules},
		{"rules.zoom", []string{"F"}, InRules},
		{"rules.close", []string{"esc", "q", "h", "left", "B", "ctrl+c"}, InRules},
		{"menu.run", []string{"enter"}, InMenu},
		{"menu.down", []string{"j", "down"}, InMenu},
		{"menu.up", []string{"k", "up"}, InMenu},
		{"menu.close", []string{"esc", "q", "ctrl+c"}, InMenu},
	}
}

func questionActions() []Action {
	return []Action{
		{"confirm.yes", []string{"y", "Y"}, InConfirm},
		{"confirm.no", []string{"n", "N", "esc", "q", "ctrl+c"}, InConfirm},
		{"confirm.good", []string{"g"}, InConfirm},
		{"confirm.always", []string{"a"}, InConfirm},
		{"confirm.down", []string{"down", "j", "pgdown"}, InConfirm},
		{"confirm.up", []string{"up", "k", "pgup"}, InConfirm},
		{"approval.approve", []string{"y"}, InApproval},
		{"approval.leave", []string{"n"}, InApproval},
		{"approval.stop", []string{"q", "esc", "ctrl+c"}, InApproval},
		{"address.copy", []string{"y", "o"}, InAddress},
		{"address.accept", []string{"enter"}, InAddress},
		{"address.decline", []string{"d"}, InAddress},
		{"address.cancel", []string{"esc", "q", "ctrl+c"}, InAddress},
		{"sampling.send", []string{"ctrl+s"}, InSampling},
		{"sampling.page-down", []string{"pgdown"}, InSampling},
		{"sampling.page-up", []string{"pgup"}, InSampling},
		{"sampling.reject", []string{"esc", "ctrl+c"}, InSampling},
		{"login.cancel", []string{"esc", "q", "ctrl+c"}, InLogin},
		{"login.copy", []string{"y"}, InLogin},
		{"login.paste", []string{"p"}, InLogin},
		{"setup.entry", []string{"y"}, InSetup},
		{"setup.example", []string{"Y"}, InSetup},
		{"setup.close", []string{"esc", "enter", "q", "ctrl+c"}, InSetup},
	}
}

// TextKeyReason returns the reason why an action cannot have a key: where the action
// works, the key types or edits text. It returns "" for other keys and for the action's
// defaults.
func TextKeyReason(action, key string) (why string) {
	all := Actions()
	i := slices.IndexFunc(all, func(a Action) bool { return a.ID == action })
	if i < 0 || slices.Contains(all[i].Keys, key) {
		return ""
	}
	where := all[i].Where & textPlaces
	r, size := utf8.DecodeRuneInString(key)
	switch {
	case where == 0:
	case size == len(key) && unicode.IsPrint(r):
		return "types text in " + where.String() + "; use ctrl+ with a letter, or a key such as f5"
	case slices.Contains(editKeys, key), where&multilinePlaces != 0 && slices.Contains(multilineEditKeys, key):
		return "edits text in " + where.String() + "; use ctrl+ with a letter, or a key such as f5"
	}
	return ""
}

var (
	editKeys          = []string{"backspace", "delete", "left", "right", "home", "end"}
	multilineEditKeys = []string{"enter", "up", "down"}
)
