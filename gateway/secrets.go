package gateway

import (
	"net/url"
	"strconv"
	"strings"

	"goblin/gateway/config"
)

// shortestSecret is how many bytes a secret has at least, as the config's mask
// has it.
const shortestSecret = 6

// journalled is how much of a body the journal of traffic keeps.
const journalled = 64 << 10

// secrets masks what goes into the journal of traffic. Most texts hold no
// secret, and all pass here, so that is found out fast and without memory of
// its own: by the last two bytes of a window as wide as the shortest secret,
// which tell how far it can move on (Wu and Manber, 1994). The time does not
// grow with the number of secrets. nil masks nothing.
type secrets struct {
	redact  func(string) string
	width   int                 // of the window
	longest int                 // bytes
	shift   [1 << 16]uint8      // by two bytes: how far the window may move
	heads   map[uint16][]string // secrets by the last two bytes of their first width
}

// newSecrets finds what redact, the mask of cfg, masks.
func newSecrets(cfg *config.Config, redact func(string) string) *secrets {
	values := secretValues(cfg)
	if len(values) == 0 {
		return nil
	}
	s := &secrets{redact: redact, width: 128, heads: make(map[uint16][]string)}
	for v := range values {
		s.width, s.longest = min(s.width, len(v)), max(s.longest, len(v))
	}
	for i := range s.shift {
		s.shift[i] = uint8(s.width - 1)
	}
	for v := range values {
		for i := 1; i < s.width; i++ {
			p := &s.shift[pair(v[i-1], v[i])]
			*p = min(*p, uint8(s.width-1-i))
		}
		last := pair(v[s.width-2], v[s.width-1])
		s.heads[last] = append(s.heads[last], v)
	}
	return s
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// secretValues are the texts that the mask of cfg replaces.
func secretValues(cfg *config.Config) map[string]bool {
	found := make(map[string]bool)
	add := func(values ...string) {
		for _, v := range values {
			if len(v) < shortestSecret {
				continue
			}
			quoted := strconv.Quote(v)
			for _, form := range []string{v, quoted[1 : len(quoted)-1], url.QueryEscape(v), url.PathEscape(v)} {
				found[form] = true
			}
		}
	}
	add(cfg.Gateway.AuthToken)
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		for _, v := range s.Env {
			add(v)
		}
		for _, v := range s.Headers {
			_, token, _ := strings.Cut(v, " ")
			add(v, strings.TrimSpace(token))
		}
		u, err := url.Parse(s.URL)
		if err != nil {
			continue
		}
		add(u.RawQuery)
		for _, values := range u.Query() {
			add(values...)
		}
		if u.User != nil {
			password, _ := u.User.Password()
			add(u.User.String(), password, u.User.Username())
		}
	}
	return found
}

// in reports whether a secret may be in a text.
func in[T ~string | ~[]byte](s *secrets, text T) bool {
	for i := s.width - 1; i < len(text); {
		last := pair(text[i-1], text[i])
		if n := s.shift[last]; n > 0 {
			i += int(n)
			continue
		}
		rest := text[i-s.width+1:]
		for _, v := range s.heads[last] {
			if len(rest) >= len(v) && string(rest[:len(v)]) == v {
				return true
			}
		}
		i++
	}
	return false
}

// text masks a name.
func (s *secrets) text(t string) string {
	if s == nil || !in(s, t) {
		return t
	}
	return s.redact(t)
}

// body masks what the journal keeps of a body. What it returns is body itself,
// or cut to what was masked.
func (s *secrets) body(body []byte) []byte {
	if s == nil {
		return body
	}
	// The cut must not leave the beginning of a secret.
	window := body[:min(len(body), journalled+s.longest)]
	if !in(s, window) {
		return body
	}
	masked := s.redact(string(window))
	if len(window) < len(body) {
		masked = masked[:max(0, len(masked)-s.longest)]
	}
	return []byte(masked)
}
