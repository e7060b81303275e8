package registry

import (
	"maps"
	"slices"

	"goblin/registry/termtext"
)

// SetNotice sets a line without secrets that all UIs show; "" removes it.
func (r *Registry) SetNotice(text string) {
	text = cutString(text, maxField)
	if old := r.notice.Swap(&text); old == nil && text != "" || old != nil && *old != text {
		r.feed.publish(Servers)
	}
}

// Notice returns the text of [Registry.SetNotice].
func (r *Registry) Notice() string {
	if text := r.notice.Load(); text != nil {
		return *text
	}
	return ""
}

// Mistake is a mistake in a rejected config file. Line is 0 for the whole file.
type Mistake struct {
	File string
	Line int
	Text string
}

const maxMistakes = 200

// SetMistakes replaces the mistakes of the edited config, at most 200. They must not
// contain secrets. Nil means that the config is valid.
func (r *Registry) SetMistakes(all []Mistake) {
	all = slices.Clone(all[:min(len(all), maxMistakes)])
	for i := range all {
		all[i].File, all[i].Text = cutString(all[i].File, maxField), cutString(all[i].Text, maxField)
	}
	if old := r.mistakes.Swap(&all); old == nil && len(all) > 0 || old != nil && !slices.Equal(*old, all) {
		r.feed.publish(Servers)
	}
}

// Mistakes returns the mistakes of the edited config. Callers must not modify them.
func (r *Registry) Mistakes() []Mistake {
	if all := r.mistakes.Load(); all != nil {
		return *all
	}
	return nil
}

// SetStyleColors replaces the config's colors of all UIs, by [termtext.StyleNames].
func (r *Registry) SetStyleColors(colors map[string]termtext.StyleColor) {
	colors = maps.Clone(colors)
	if old := r.colors.Swap(&colors); old == nil && len(colors) > 0 || old != nil && !maps.Equal(*old, colors) {
		r.feed.publish(Servers)
	}
}

// StyleColors returns the config's colors. Callers must not modify them.
func (r *Registry) StyleColors() map[string]termtext.StyleColor {
	if colors := r.colors.Load(); colors != nil {
		return *colors
	}
	return nil
}
