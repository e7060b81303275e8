package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"goblin/registry/definition"
	"goblin/registry/rawjson"
)

// Settings returns the part of a config that shapes the catalog of clients. It is JSON in
// the form of a config file. It contains no command, argument of a command, environment,
// URL, header, login or path of this machine. Servers therefore have neither command nor
// url. Secrets and all texts in fixed arguments are hidden.
func Settings(cfg *Config) json.RawMessage {
	w := &settingsWriter{mask: NewMask(cfg)}
	return w.object(func(o *settingsObject) {
		o.value("servers", w.object(func(o *settingsObject) {
			for i := range cfg.Servers {
				o.value(cfg.Servers[i].Name, w.server(&cfg.Servers[i]))
			}
		}))
		if len(cfg.Profiles) > 0 {
			o.value("profiles", w.object(func(o *settingsObject) {
				for i := range cfg.Profiles {
					o.value(cfg.Profiles[i].Name, w.profile(&cfg.Profiles[i]))
				}
			}))
		}
		if len(cfg.Clients) > 0 {
			o.value("clients", w.object(func(o *settingsObject) {
				for _, rule := range cfg.Clients {
					o.text(rule.Glob, rule.Profile)
				}
			}))
		}
		o.value("gateway", w.gateway(&cfg.Gateway))
	})
}

// settingsWriter writes members in the order of the config, which decides for clients.
type settingsWriter struct{ mask *Mask }

type settingsObject struct {
	*settingsWriter
	raw []byte
}

func (w *settingsWriter) object(fill func(o *settingsObject)) []byte {
	o := &settingsObject{w, []byte{'{'}}
	fill(o)
	return append(o.raw, '}')
}

func (o *settingsObject) value(name string, value []byte) {
	o.raw = rawjson.AppendMember(o.raw, rawjson.Quote(name), value)
}

func (o *settingsObject) text(name, text string) {
	o.value(name, rawjson.Quote(o.mask.String(text)))
}

// plain writes a number, a boolean or a list of names.
func (o *settingsObject) plain(name string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("config: settings: " + err.Error()) // impossible: only numbers, booleans and strings
	}
	o.value(name, raw)
}

func (o *settingsObject) texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	hidden := make([]string, len(list))
	for i, s := range list {
		hidden[i] = o.mask.String(s)
	}
	o.plain(name, hidden)
}

func (o *settingsObject) filter(name string, f Filter) {
	if !f.IsEmpty() {
		o.value(name, o.object(func(o *settingsObject) {
			o.texts("allow", f.Allow)
			o.texts("deny", f.Deny)
		}))
	}
}

func (o *settingsObject) metaTools(m MetaTools) {
	const name = "meta_tools"
	switch {
	case m.Unset:
	case m.Auto:
		o.text(name, "auto")
	case len(m.Names) > 0:
		o.plain(name, m.Names)
	default:
		o.plain(name, m.All)
	}
}

func (o *settingsObject) maxResult(limit int64) {
	switch {
	case limit < 0:
		o.text("max_result", "off")
	case limit > 0:
		o.plain("max_result", limit)
	}
}

func (w *settingsWriter) gateway(g *Gateway) []byte {
	return w.object(func(o *settingsObject) {
		o.text("namespace", string(g.Namespace))
		o.plain("max_name", g.MaxName)
		o.plain("page_size", g.PageSize)
		o.metaTools(g.MetaTools)
		o.plain("meta_tools_above", g.MetaToolsAbove)
	})
}

func (w *settingsWriter) server(s *Server) []byte {
	return w.object(func(o *settingsObject) {
		o.texts("tags", s.Tags)
		if s.Disabled {
			o.plain("disabled", true)
		}
		o.text("isolation", string(s.Isolation))
		if !s.ForwardMeta {
			o.plain("forward_meta", false)
		}
		o.filter("tools", s.Tools)
		o.filter("prompts", s.Prompts)
		o.filter("resources", s.Resources)
		if s.OpenResources {
			o.plain("open_resources", true)
		}
		if s.Overrides != nil {
			o.value("overrides", w.overrides(s.Overrides))
		}
		o.maxResult(s.MaxResult)
	})
}

func (w *settingsWriter) profile(p *Profile) []byte {
	return w.object(func(o *settingsObject) {
		o.texts("servers", p.Servers)
		o.filter("tools", p.Tools)
		o.filter("prompts", p.Prompts)
		o.filter("resources", p.Resources)
		o.metaTools(p.MetaTools)
		o.text("expose", string(p.Expose))
		if p.Namespace != "" {
			o.text("namespace", string(p.Namespace))
		}
		o.maxResult(p.MaxResult)
		if len(p.Overrides) > 0 {
			o.value("overrides", w.object(func(o *settingsObject) {
				for _, server := range slices.Sorted(maps.Keys(p.Overrides)) {
					o.value(server, w.overrides(p.Overrides[server]))
				}
			}))
		}
	})
}

func (w *settingsWriter) overrides(set *definition.Set) []byte {
	return w.object(func(o *settingsObject) {
		for _, kind := range []struct {
			name string
			all  map[string]*definition.Override
		}{{"tools", set.Tools}, {"prompts", set.Prompts}, {"resources", set.Resources}} {
			if len(kind.all) == 0 {
				continue
			}
			o.value(kind.name, w.object(func(o *settingsObject) {
				for _, name := range slices.Sorted(maps.Keys(kind.all)) {
					o.value(name, w.override(kind.all[name]))
				}
			}))
		}
	})
}

func (w *settingsWriter) override(v *definition.Override) []byte {
	return w.object(func(o *settingsObject) {
		if name := v.Name + v.Label; name != "" { // only one is set
			o.text("name", name)
		}
		if v.Title != nil {
			o.text("title", *v.Title)
		}
		if v.Description != nil {
			o.text("description", *v.Description)
		}
		if len(v.Annotations) > 0 {
			o.value("annotations", w.object(func(o *settingsObject) {
				for _, m := range v.Annotations {
					o.value(m.Name, w.hideTexts(m.Value, w.mask.String))
				}
			}))
		}
		if len(v.Arguments) > 0 {
			o.value("arguments", w.object(func(o *settingsObject) {
				for _, m := range v.Arguments {
					o.value(m.Name, w.hideTexts(m.Value, w.hideFixed))
				}
			}))
		}
	})
}

// hideFixed hides a text of a fixed argument: it may be a path or a literal secret. A
// number or boolean in quotes stays, because it must fit the argument's type.
func (w *settingsWriter) hideFixed(text string) string {
	if rawjson.Valid([]byte(text)) == nil && !strings.ContainsAny(text, `{["`) {
		return w.mask.String(text)
	}
	return masked
}

// hideTexts replaces the texts in a value, and its numbers that are secrets.
func (w *settingsWriter) hideTexts(value []byte, hide func(string) string) []byte {
	switch {
	case rawjson.IsObject(value):
		return w.object(func(o *settingsObject) {
			for name, v := range rawjson.Members(value) {
				o.raw = rawjson.AppendMember(o.raw, name, w.hideTexts(v, hide))
			}
		})
	case rawjson.IsArray(value):
		out := []byte{'['}
		for v := range rawjson.Elements(value) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, w.hideTexts(v, hide)...)
		}
		return append(out, ']')
	}
	if text, ok := rawjson.String(value); ok {
		return rawjson.Quote(hide(text))
	}
	if plain := string(value); w.mask.String(plain) != plain {
		return rawjson.Quote(masked)
	}
	return value
}
