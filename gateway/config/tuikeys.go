package config

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"goblin/registry/keymap"
)

const maxActionKeys = 8

func actionKeys() kind[map[string][]string] {
	return kind[map[string][]string]{
		schema: func(map[string][]string) object {
			one := object{"type": []string{"string", "integer"}}
			return object{
				"type": []string{"object", "null"}, "propertyNames": object{"enum": keymap.IDs()},
				"additionalProperties": object{"anyOf": []any{one, object{"type": "array", "maxItems": maxActionKeys, "items": one}}},
			}
		},
		read: readActionKeys,
	}
}

func readActionKeys(r *reader, at keyPath, n *yaml.Node, dst *map[string][]string) {
	changed := make(map[string][]string)
	lines := make(map[[2]string]*yaml.Node) // by action and key
	for _, p := range r.pairs(at, n) {
		id := p.key.Value
		if !slices.Contains(keymap.IDs(), id) {
			if len(r.errs) <= maxProblems {
				r.fail(p.key, "unknown action %s%s%s", quoteKey(id), at.in(), didYouMean(id, "known:", keymap.SuggestIDs(id)))
			}
			continue
		}
		written := []*yaml.Node{p.val}
		if p.val.Kind == yaml.SequenceNode {
			written = p.val.Content
		}
		if len(written) > maxActionKeys {
			r.fail(p.val, "%s has %d keys; the maximum is %d", at.key(id), len(written), maxActionKeys)
			continue
		}
		all := []string{}
		for _, w := range written {
			key, ok := r.keyName(at.key(id), id, target(w))
			if ok && !slices.Contains(all, key) {
				all, lines[[2]string{id, key}] = append(all, key), w
			}
		}
		if len(all) > 0 || len(written) == 0 { // otherwise all are wrong and reported
			changed[id] = all
		}
	}
	for _, c := range keymap.Conflicts(changed) {
		if c.Default {
			r.warn(lines[[2]string{c.Action, c.Key}], "%s has the key %s, so %s has it no longer in %s; give one of them another key",
				at.key(c.Action), quote(keymap.FormatKey(c.Key)), quote(c.Other), c.Where)
			continue
		}
		r.fail(lines[[2]string{c.Action, c.Key}], "%s has the key %s, which %s already uses in %s; choose another",
			at.key(c.Action), quote(keymap.FormatKey(c.Key)), quote(c.Other), c.Where)
	}
	if len(changed) > 0 {
		*dst = changed
	}
}

// keyName does not expand variables.
func (r *reader) keyName(at keyPath, action string, n *yaml.Node) (key string, ok bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		r.fail(n, "%s must be a key or a list of keys, not %s", at, describe(n))
		return "", false
	case isNull(n):
		r.fail(n, `%s is empty; write [] for no keys, or "~" for the key ~`, at)
		return "", false
	}
	key, why := keymap.ParseKey(n.Value)
	if why == "" {
		why = keymap.TextKeyReason(action, key)
	}
	if why != "" {
		r.fail(n, "%s: %s %s", at, quote(n.Value), why)
		return "", false
	}
	return key, true
}
