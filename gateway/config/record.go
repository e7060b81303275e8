package config

import "go.yaml.in/yaml/v3"

// Record configures recordings of traffic. Edits apply at once.
type Record struct {
	On     bool
	Dir    string // absolute; "" means a folder in the state folder
	Max    int64  // bytes of the folder
	Days   int    // maximum age of a file
	Bodies bool   // record params and answers
}

func recordKeys() []field[Record] {
	return []field[Record]{
		key("dir", "Private folder of the recordings, for one daemon. A relative path starts at the config's folder. Default: a folder of this config in $XDG_STATE_HOME/goblin/recordings.",
			path(false), func(r *Record) *string { return &r.Dir }),
		key("max", "Maximum size of the folder. Then the oldest recordings are removed.",
			size(1<<20), func(r *Record) *int64 { return &r.Max }),
		key("days", "Days until a recording is removed.",
			count(1, 36_500), func(r *Record) *int { return &r.Days }),
		key("bodies", "Record params and answers. Recordings without them cannot be replayed.",
			flag(), func(r *Record) *bool { return &r.Bodies }),
	}
}

// record reads a mapping, or true or false.
func record() kind[Record] {
	some := section(recordKeys)
	return kind[Record]{
		schema: func(def Record) object {
			return object{"anyOf": []any{object{"enum": []any{"off", true, false}}, some.schema(def)}}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *Record) {
			dst.On = true
			if b, ok := boolean(n); ok || n.Kind == yaml.ScalarNode && n.Value == "off" {
				dst.On = b
				return
			}
			if n.Kind == yaml.ScalarNode && !isNull(n) {
				r.fail(n, "%s must be a mapping, true or false, not %s", at, describe(n))
				return
			}
			some.read(r, at, n, dst)
		},
	}
}
