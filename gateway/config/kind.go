package config

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"goblin/registry/suggest"
	"goblin/registry/termtext"
)

// object is a JSON object in a schema.
type object = map[string]any

// kind reads a type of values and describes it. read reports a wrong value and leaves dst
// unchanged. schema gets the default.
type kind[V any] struct {
	schema func(def V) object
	read   func(r *reader, at keyPath, n *yaml.Node, dst *V)
}

// reference matches a variable, which the schema accepts instead of any text.
const reference = `\$\{`

// text reads a string that complain accepts. A complaint continues "<place> " and does
// not contain the value.
func text(complain func(string) string) kind[string] { return textual(complain, false) }

// loose also accepts numbers and booleans.
func loose(complain func(string) string) kind[string] { return textual(complain, true) }

func textual(complain func(string) string, loose bool) kind[string] {
	return kind[string]{
		schema: func(def string) object {
			s := object{"type": "string"}
			if loose {
				s["type"] = []string{"string", "number", "boolean"}
			}
			if def != "" {
				s["default"] = def
			}
			return s
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *string) {
			s, ok := r.text(at, n, loose)
			if !ok {
				return
			}
			if c := complain(s); c != "" && !r.late {
				r.reject(at, n, c)
				return
			}
			*dst = s
		},
	}
}

// path reads a file name. "~/" stands for the home directory, and a relative path starts
// at the config's directory. With program, a bare name is left to the search path.
func path(program bool) kind[string] {
	complain := noNUL
	if program {
		complain = programComplaint
	}
	k := text(complain)
	read := k.read
	k.read = func(r *reader, at keyPath, n *yaml.Node, dst *string) {
		var s string
		read(r, at, n, &s)
		switch {
		case s == "", r.late, program && !strings.ContainsRune(s, '/') && !strings.ContainsRune(s, filepath.Separator):
			*dst = s
			return
		case strings.HasPrefix(s, projectVariable) && r.server != nil && r.server.perProject:
			*dst = s
			return
		case s == "~" || strings.HasPrefix(s, "~/"):
			home := homeOf(r.ask)
			if home == "" {
				r.reject(at, n, `begins with "~", but HOME is not set`)
				return
			}
			s = filepath.Join(home, s[1:])
		case !filepath.IsAbs(s):
			s = filepath.Join(r.dir, s)
		}
		*dst = filepath.Clean(s)
	}
	return k
}

func flag() kind[bool] {
	return kind[bool]{
		schema: func(def bool) object { return object{"type": "boolean", "default": def} },
		read: func(r *reader, at keyPath, n *yaml.Node, dst *bool) {
			if b, ok := boolean(n); ok {
				*dst = b
				return
			}
			r.fail(n, "%s must be true or false, not %s", at, describe(n))
		},
	}
}

func boolean(n *yaml.Node) (value, ok bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		return false, false
	}
	b, err := strconv.ParseBool(strings.ToLower(n.Value))
	return b, err == nil
}

func count(low, high int) kind[int] {
	return kind[int]{
		schema: func(def int) object {
			return object{"type": "integer", "minimum": low, "maximum": high, "default": def}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *int) {
			v, ok := integer(n)
			switch {
			case !ok:
				r.fail(n, "%s must be a whole number, not %s", at, describeNumber(n))
			case v < int64(low) || v > int64(high):
				r.fail(n, "%s must be from %d to %d", at, low, high)
			default:
				*dst = int(v)
			}
		},
	}
}

func integer(n *yaml.Node) (int64, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64)
	return v, err == nil
}

func describeNumber(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" {
		return "a fraction"
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" {
		return "one this large"
	}
	return describe(n)
}

// duration must be positive unless zero is true.
func duration(zero bool) kind[time.Duration] { return durationOr(zero, "") }

// durationOr is like duration. or lists the alternatives, for complaints.
func durationOr(zero bool, or string) kind[time.Duration] {
	return kind[time.Duration]{
		schema: func(def time.Duration) object {
			s := object{"type": "string", "pattern": termtext.DurationPattern + "|" + reference, "examples": []string{"500ms", "30s", "5m"}}
			if zero { // 0 needs no unit
				s["type"], s["minimum"], s["maximum"] = []string{"string", "integer"}, 0, 0
			}
			if def > 0 {
				s["default"] = ShortDuration(def)
			}
			return s
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *time.Duration) {
			if v, ok := integer(n); ok && v == 0 && zero {
				*dst = 0
				return
			}
			if r.lenient && n.Kind == yaml.ScalarNode && isPlain(n.ShortTag()) {
				// The unit is unknown: some clients use seconds, some milliseconds.
				r.warn(n, `%s has no unit and is ignored; write it as "30s"`, at)
				return
			}
			if n.Kind == yaml.ScalarNode && isPlain(n.ShortTag()) {
				r.fail(n, `%s must be a duration with a unit, such as "30s"%s, not %s`, at, or, describe(n))
				return
			}
			s, ok := r.text(at, n, false)
			if !ok {
				return
			}
			d, ok := termtext.ParseDuration(s)
			switch {
			case !ok && r.lenient && r.server != nil:
				r.warn(n, `%s is not a duration and is ignored; write it as "30s"`, at)
			case !ok:
				r.reject(at, n, `must be a duration such as "500ms", "30s" or "5m"`+or+`, not `+quote(n.Value))
			case d == 0 && !zero:
				r.reject(at, n, "must be more than 0")
			default:
				*dst = d
			}
		},
	}
}

func durationOrOff() kind[time.Duration] {
	some := durationOr(false, ", or off")
	return kind[time.Duration]{
		schema: func(def time.Duration) object {
			s := some.schema(def)
			s["pattern"] = termtext.DurationPattern + "|^off$|" + reference
			return s
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *time.Duration) {
			if n.Kind == yaml.ScalarNode && n.Value == "off" {
				*dst = Never
				return
			}
			some.read(r, at, n, dst)
		},
	}
}

func isNumber(n *yaml.Node) bool {
	tag := n.ShortTag()
	return n.Kind == yaml.ScalarNode && (tag == "!!int" || tag == "!!float")
}

const (
	day         = 24 * time.Hour
	daysPattern = `^([1-9][0-9]{0,3}d|off)$`
)

var daysSyntax = pattern(daysPattern)

func days() kind[time.Duration] {
	return kind[time.Duration]{
		schema: func(def time.Duration) object {
			return object{"type": "string", "pattern": daysPattern + "|" + reference, "default": strconv.Itoa(int(def/day)) + "d"}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *time.Duration) {
			if n.ShortTag() == "!!bool" && n.Value == "off" || n.Value == "false" {
				*dst = 0
				return
			}
			s, ok := r.text(at, n, isNumber(n))
			switch {
			case !ok:
			case !daysSyntax().MatchString(s):
				r.reject(at, n, `must be days such as "30d", or off, not `+quote(n.Value))
			case s == "off":
				*dst = 0
			default:
				count, _ := strconv.Atoi(strings.TrimSuffix(s, "d")) // cannot fail: daysSyntax matched
				*dst = time.Duration(count) * day
			}
		},
	}
}

// ShortDuration formats d without zero units: 1m, not 1m0s.
func ShortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// maxSize is far above real memory and far below an overflow.
const maxSize = 1 << 40

func size(low int64) kind[int64] {
	return kind[int64]{
		schema: func(def int64) object {
			return object{"default": termtext.ExactSize(def), "anyOf": []any{
				object{"type": "string", "pattern": termtext.SizePattern + "|" + reference, "examples": []string{"64KiB", "128MiB"}},
				object{"type": "integer", "minimum": low, "maximum": int64(maxSize)},
			}}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *int64) {
			v, ok := integer(n)
			if !ok {
				if n.Kind == yaml.ScalarNode && isPlain(n.ShortTag()) {
					r.fail(n, `%s must be a size such as "64KiB" or "128MiB", not %s`, at, describeNumber(n))
					return
				}
				var s string
				if s, ok = r.text(at, n, false); !ok {
					return
				}
				if v, ok = termtext.ParseSize(s); !ok {
					r.reject(at, n, `must be a size such as "64KiB" or "128MiB", not `+quote(n.Value))
					return
				}
			}
			if v < low || v > maxSize {
				r.reject(at, n, "must be from "+termtext.ExactSize(low)+" to "+termtext.ExactSize(maxSize))
				return
			}
			*dst = v
		},
	}
}

// sizeOrOff reads a number of bytes, or off as -1.
func sizeOrOff(low int64) kind[int64] {
	some := size(low)
	return kind[int64]{
		schema: func(int64) object {
			s := some.schema(0)
			delete(s, "default")
			s["anyOf"] = append([]any{object{"enum": []any{"off", false}}}, s["anyOf"].([]any)...)
			return s
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *int64) {
			if b, ok := boolean(n); n.Kind == yaml.ScalarNode && (n.Value == "off" || ok && !b) {
				*dst = -1
				return
			}
			some.read(r, at, n, dst)
		},
	}
}

// option is a word of a choice. Aliases are accepted but not advertised.
type option[V any] struct {
	word    string
	value   V
	aliases []string
}

func choice[V comparable](options ...option[V]) kind[V] {
	words := make([]string, len(options))
	accepted := make(map[string]V)
	var all []string
	for i, o := range options {
		words[i] = o.word
		for _, w := range append([]string{o.word}, o.aliases...) {
			accepted[w] = o.value
			all = append(all, w)
		}
	}
	must := "must be " + words[0]
	if last := len(words) - 1; last > 0 {
		must = "must be " + strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return kind[V]{
		schema: func(def V) object {
			s := object{"anyOf": []any{object{"enum": all}, object{"type": "string", "pattern": reference}}}
			for _, o := range options {
				if o.value == def {
					s["default"] = o.word
				}
			}
			return s
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *V) {
			if n.Kind != yaml.ScalarNode || isPlain(n.ShortTag()) {
				r.fail(n, "%s %s, not %s", at, must, describe(n))
				return
			}
			s, ok := r.text(at, n, false)
			if !ok {
				return
			}
			v, ok := accepted[s]
			if !ok {
				tail := ""
				if word := nearest(n.Value, words); word != "" {
					tail = suggest.DidYouMean(word)
				}
				r.reject(at, n, must+", not "+quote(n.Value)+tail)
				return
			}
			*dst = v
		},
	}
}

func words[V ~string](values ...V) kind[V] {
	options := make([]option[V], len(values))
	for i, v := range values {
		options[i].word, options[i].value = string(v), v
	}
	return choice(options...)
}

func list[V any](item kind[V]) kind[[]V] {
	return kind[[]V]{
		schema: func([]V) object {
			var zero V
			return object{"type": []string{"array", "null"}, "items": item.schema(zero)}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *[]V) {
			if isNull(n) {
				*dst = nil
				return
			}
			if n.Kind != yaml.SequenceNode {
				r.fail(n, "%s must be a list, not %s", at, describe(n))
				return
			}
			var values []V
			for i, c := range n.Content {
				var v V
				item.read(r, at.item(i), target(c), &v)
				values = append(values, v)
			}
			*dst = values
		},
	}
}

// dict reads a mapping whose names the user chooses. An empty one becomes nil. keep may
// report a name and reject it.
func dict[V any](value kind[V], keep func(r *reader, at keyPath, key *yaml.Node) bool) kind[map[string]V] {
	return kind[map[string]V]{
		schema: func(map[string]V) object {
			var zero V
			return object{"type": []string{"object", "null"}, "additionalProperties": value.schema(zero)}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *map[string]V) {
			var values map[string]V
			for _, p := range r.pairs(at, n) {
				if !keep(r, at.key(p.key.Value), p.key) {
					continue
				}
				var v V
				value.read(r, at.key(p.key.Value), p.val, &v)
				if values == nil {
					values = make(map[string]V)
				}
				values[p.key.Value] = v
			}
			*dst = values
		},
	}
}

func section[T any](table func() []field[T]) kind[T] {
	return kind[T]{
		schema: func(def T) object { return tableSchema(table(), &def) },
		read: func(r *reader, at keyPath, n *yaml.Node, dst *T) {
			readTable(r, at, table(), n, dst)
		},
	}
}

func tableSchema[T any](table []field[T], def *T) object {
	keys := object{}
	for _, f := range table {
		if !f.legacy {
			keys[f.name] = f.schema(def)
		}
	}
	return object{"type": []string{"object", "null"}, "additionalProperties": false, "properties": keys}
}

type selection struct {
	All   bool
	Names []string
}

func word(words []string) kind[string] {
	return kind[string]{
		schema: func(string) object {
			return object{"anyOf": []any{object{"enum": words}, object{"type": "string", "pattern": reference}}}
		},
		read: text(func(s string) string {
			if slices.Contains(words, s) {
				return ""
			}
			return "must be a known name, not " + quote(s) + didYouMean(s, "known:", words)
		}).read,
	}
}

func selected(item kind[string]) kind[selection] {
	some := list(item)
	return kind[selection]{
		schema: func(def selection) object {
			return object{"default": def.All, "anyOf": []any{
				object{"type": "boolean"},
				object{"type": "array", "items": item.schema("")},
			}}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *selection) {
			if b, ok := boolean(n); ok {
				*dst = selection{All: b}
				return
			}
			if n.Kind != yaml.SequenceNode {
				r.fail(n, "%s must be true, false or a list of names, not %s", at, describe(n))
				return
			}
			var names []string
			some.read(r, at, n, &names)
			*dst = selection{Names: slices.Compact(names)}
		},
	}
}
