package clientconfig

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"goblin/gateway/config"
	"goblin/gateway/secrets"
	"goblin/registry/secrettext"
)

// Secret is a value to move out of a file, and its name in the keyring.
type Secret struct{ Name, Value string }

// SplitSecrets returns the server's entry with references instead of secret-looking
// values, and these values. Existing references stay. name returns the final name for a
// wanted name.
func (s *Server) SplitSecrets(name func(wanted, value string) string) (map[string]any, []Secret) {
	x := &split{server: s.Name, name: name}
	out := maps.Clone(s.Keys)
	if env, ok := out["env"].(map[string]string); ok {
		out["env"] = x.named(env, func(key, v string) string { return x.refer(key, v) })
	}
	if headers, ok := out["headers"].(map[string]string); ok {
		out["headers"] = x.named(headers, x.header)
	}
	if args, ok := out["args"].([]string); ok {
		out["args"] = x.within(args)
	}
	if address, ok := out["url"].(string); ok {
		out["url"] = x.within([]string{address})[0]
	}
	if oauth, ok := out["oauth"].(map[string]any); ok {
		if v, ok := oauth["client_secret"].(string); ok && !refers(v) {
			oauth = maps.Clone(oauth)
			oauth["client_secret"] = x.refer("client_secret", v)
			out["oauth"] = oauth
		}
	}
	return out, x.found
}

type split struct {
	server string
	name   func(wanted, value string) string
	found  []Secret
}

func (x *split) refer(what, value string) string {
	value = strings.ReplaceAll(value, "$${", "${")
	wanted := x.server + "." + what
	if !secrets.ValidName(wanted) {
		wanted = x.server + "." + config.MakeName(what, func(string) bool { return false })
	}
	called := x.name(wanted, value)
	for n := 2; slices.ContainsFunc(x.found, func(s Secret) bool { return s.Name == called && s.Value != value }); n++ {
		called = x.name(fmt.Sprintf("%s-%d", wanted, n), value)
	}
	x.found = append(x.found, Secret{called, value})
	return "${keyring:" + called + "}"
}

func (x *split) named(values map[string]string, replace func(key, value string) string) map[string]string {
	out := maps.Clone(values)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if v := values[key]; v != "" && !refers(v) && secrettext.Looks(key, v) {
			out[key] = replace(key, v)
		}
	}
	return out
}

// header keeps the scheme, as in "Bearer TOKEN".
func (x *split) header(key, value string) string {
	if scheme, token, ok := strings.Cut(value, " "); ok && !strings.ContainsAny(scheme, "=;") {
		return scheme + " " + x.refer(key, strings.TrimSpace(token))
	}
	return x.refer(key, value)
}

func (x *split) within(args []string) []string {
	args = slices.Clone(args)
	all := secrettext.OfArgs(args)
	for _, secret := range all {
		if _, token, ok := strings.Cut(secret, " "); ok && slices.Contains(all, token) {
			continue // "Bearer TOKEN": only TOKEN is secret
		}
		for i, arg := range args {
			at, raw := written(arg, secret)
			switch {
			case raw == "" || refers(raw):
			case len(secret) < minDistinct:
				args[i] = arg[:at] + x.refer(argName(args, i, at), raw) + arg[at+len(raw):]
			default:
				args[i] = strings.ReplaceAll(arg, raw, x.refer(argName(args, i, at), raw))
			}
		}
	}
	return args
}

// minDistinct is in bytes. A shorter text may occur in another one by chance.
const minDistinct = 6

// written returns the position and form of a secret in an argument, including URL
// encodings. raw is "" if there is none or the match may be chance.
func written(arg, secret string) (at int, raw string) {
	if at = strings.Index(arg, secret); at >= 0 && len(secret) >= minDistinct {
		return at, secret
	}
	if before, ok := strings.CutSuffix(arg, secret); ok && (before == "" || strings.HasSuffix(before, "=")) {
		return len(before), secret
	}
	for at = 0; at < len(arg); {
		end := at + strings.IndexAny(arg[at:]+"&", "&=?/#@:")
		if text, err := url.QueryUnescape(arg[at:end]); err == nil && text == secret && end > at {
			return at, arg[at:end]
		}
		at = end + 1
	}
	return -1, ""
}

// WithSecrets returns an entry of Goblin's config with keyring references replaced by the
// values from get.
func WithSecrets(entry map[string]any, get func(name string) (string, error)) map[string]any {
	var replace func(v any) any
	replace = func(v any) any {
		switch v := v.(type) {
		case string:
			return keyringReference().ReplaceAllStringFunc(v, func(reference string) string {
				value, err := get(keyringReference().FindStringSubmatch(reference)[1])
				if err != nil {
					return reference
				}
				return strings.ReplaceAll(value, "${", "$${")
			})
		case []any:
			out := make([]any, len(v))
			for i := range v {
				out[i] = replace(v[i])
			}
			return out
		case map[string]any:
			out := make(map[string]any, len(v))
			for key := range v {
				out[key] = replace(v[key])
			}
			return out
		}
		return v
	}
	out, _ := replace(generic(entry)).(map[string]any)
	return out
}

var keyringReference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{keyring:([^{}]+)\}`) })

// labelled matches a flag, a variable, a header or a query parameter.
var labelled = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)(?:=|:\s+(?:[A-Za-z]+ )?)$`)
})

func argName(args []string, i, at int) string {
	if label := labelled().FindStringSubmatch(args[i][:at]); label != nil {
		return label[1]
	}
	if i > 0 && strings.HasPrefix(args[i-1], "-") && at == 0 {
		if name := strings.TrimLeft(args[i-1], "-"); name != "" && !strings.ContainsAny(name, ":/= ${}") {
			return name
		}
	}
	return fmt.Sprintf("arg%d", i+1)
}

func refers(text string) bool {
	return strings.Contains(strings.ReplaceAll(text, "$${", ""), "${")
}

// subject matches a package, a file, an address or a command, but not "=", which ends
// base64 values.
var subject = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\s[:cntrl:]=-][^\s[:cntrl:]=]*$`) })

// Summary describes a server in a few words without secrets: its program and first
// argument, or its URL without the path.
func (s *Server) Summary() string {
	if address, ok := s.Keys["url"].(string); ok {
		scheme, rest, _ := strings.Cut(address, "://")
		host, _, _ := strings.Cut(rest, "/")
		host, _, _ = strings.Cut(host, "?")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			host = host[at+1:]
		}
		return scheme + "://" + host
	}
	command, _ := s.Keys["command"].(string)
	words := []string{command[strings.LastIndexAny(command, `/\`)+1:]}
	args, _ := s.Keys["args"].([]string)
	hidden := secrettext.OfArgs(args)
	for _, arg := range args {
		secret := slices.ContainsFunc(hidden, func(secret string) bool { return strings.Contains(arg, secret) })
		if !secret && subject().MatchString(arg) && !secrettext.IsRandom(arg) {
			words = append(words, arg)
			break
		}
	}
	return strings.Join(words, " ")
}
