package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"goblin/registry/recording"
	"goblin/registry/termtext"
)

const (
	maxDifferences = 100
	maxShownValue  = 60 // characters
)

// difference is one difference between a recorded and another JSON value. A nil value is
// missing.
type difference struct {
	Path     string `json:"path"`
	Recorded any    `json:"recorded,omitempty"`
	Got      any    `json:"got,omitempty"`
}

type missing struct{}

func (d difference) String() string {
	return fmt.Sprintf("%s: recorded %s, got %s", cmp.Or(d.Path, "the value"), shown(d.Recorded), shown(d.Got))
}

func shown(v any) string {
	if _, none := v.(missing); none {
		return "nothing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return termtext.Cut(termtext.Line(string(text)), maxShownValue)
}

// comparer finds differences of decoded values. Placeholders match any text.
type comparer struct {
	textMatcher
	limit       int // of differences; the comparison stops there
	differences []difference
}

func newComparer(known secrets, limit int, work *int) *comparer {
	return &comparer{textMatcher: textMatcher{known: known, found: secrets{}, work: work}, limit: limit}
}

func (c *comparer) report(path string, recorded, got any) {
	if len(c.differences) < c.limit {
		c.differences = append(c.differences, difference{path, recorded, got})
	}
}

func (c *comparer) compare(path string, recorded, got any) {
	if len(c.differences) == c.limit || !c.spend(len(path)) {
		return
	}
	switch want := recorded.(type) {
	case map[string]any:
		if have, ok := got.(map[string]any); ok {
			c.compareMembers(path, want, have)
			return
		}
	case []any:
		if have, ok := got.([]any); ok {
			c.compareElements(path, want, have)
			return
		}
	case string:
		if have, ok := got.(string); ok && c.match(want, have) {
			return
		}
		if start, end := recording.Placeholder(want); start == 0 && end == len(want) && isScalar(got) {
			return // a number or boolean was hidden
		}
	case json.Number:
		if have, ok := got.(json.Number); ok && normalNumber(want) == normalNumber(have) {
			return
		}
	case nil, bool:
		if want == got {
			return
		}
	}
	c.report(path, recorded, got)
}

func isScalar(v any) bool {
	switch v.(type) {
	case json.Number, bool:
		return true
	}
	return false
}

func (c *comparer) compareMembers(path string, want, have map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got, ok := have[name]; ok {
			c.compare(memberPath(path, name), want[name], got)
		} else {
			c.report(memberPath(path, name), want[name], missing{})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[name]; !ok {
			c.report(memberPath(path, name), missing{}, have[name])
		}
	}
}

func (c *comparer) compareElements(path string, want, have []any) {
	for i := range max(len(want), len(have)) {
		at := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= len(want):
			c.report(at, missing{}, have[i])
		case i >= len(have):
			c.report(at, want[i], missing{})
		default:
			c.compare(at, want[i], have[i])
		}
	}
}

// memberPath appends a name, in the syntax of [goblin/registry/compare.Path].
func memberPath(path, name string) string {
	switch {
	case name == "" || strings.ContainsAny(name, ".[]'\"()*$/ "):
		return path + "['" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(name) + "']"
	case path == "":
		return name
	}
	return path + "." + name
}
