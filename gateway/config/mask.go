package config

import (
	"cmp"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// shortest is how many bytes a value must have to be masked. Shorter ones
// ("1", "true", "debug") are no secrets, and masking them would garble what is
// told.
const shortest = 6

const masked = "[hidden]"

// Mask hides the secrets of a config: headers (those without their scheme,
// too), the auth token, users and queries of URLs, and of env
//
//   - what came out of a variable, other than those that every child gets
//     (HOME, USER, …), and
//   - what stands in the file itself if its key looks secret: one with KEY,
//     TOKEN, SECRET, PASS, AUTH, CREDENTIAL, COOKIE or the like in it, in any
//     case. A path is none (PASS_FILE), nor a host, a number or a boolean
//     (AUTH_HOST, MAX_TOKENS), unless the key has PASS or SECRET. A URL with a
//     user in it is a secret under any key,
//
// and likewise of args: what came out of a variable, if it could be a secret,
// and what stands behind or in a flag, a variable or a header that looks secret
// (--token X, API_KEY=X, Authorization: X), in URLs, and what has the form of a
// service's tokens (sk-…, ghp_…), and of arguments that overrides decide. Of the path of a
// server's URL, what came out of a variable, and parts that are long and have
// digits, as random ones do.
//
// All other values of env are ordinary: folders and names that texts and URIs
// are made of. Secrets have six bytes or more. They are found as they are, as
// Go and URLs quote them, and in the ways in which JSON is escaped, also
// within JSON in a text of JSON.
//
// All texts pass here, and most hold no secret, so that is found out fast and
// without memory: by the last two bytes of a window as wide as the shortest
// secret, which tell how far it can move on (Wu and Manber, 1994). The time
// does not grow with the number of secrets.
//
// A Mask only grows: what a config held that was edited since may still be on
// its way. The nil Mask hides nothing. Any goroutine may use it.
type Mask struct {
	mu     sync.Mutex // held while the next table is made
	secret atomic.Pointer[secrets]
}

// secrets is an index of the texts that a Mask replaces. It is immutable; nil is nothing.
type secrets struct {
	forms   map[string]bool
	width   int                 // of the window
	longest int                 // bytes of a form
	shift   [1 << 16]uint8      // by two bytes: how far the window may move
	heads   map[uint16][]string // by the last two bytes of their first width, the longest first
}

// NewMask makes the mask of a config.
func NewMask(cfg *Config) *Mask {
	m := new(Mask)
	m.Add(cfg)
	return m
}

// envSecrets are a secret variable, and what is secret in a URL, which the server may write in
// another way. A password that is the user's name, as for trying, would be hidden wherever
// that stands.
func envSecrets(v string) []string {
	whole, user, password := userOf(v)
	if password == "" || password == user {
		return []string{v}
	}
	return []string{v, whole, password}
}

// serverSecrets returns the secrets in the definition of a server, except its variables.
func serverSecrets(s *Server) (all []string) {
	for name, v := range s.Env {
		if slices.Contains(s.FromEnv, name) || LooksSecret(name, v) {
			all = append(all, envSecrets(v)...)
		}
	}
	for _, v := range s.Headers {
		all = append(all, v)
		if scheme, token, ok := strings.Cut(v, " "); ok && !strings.Contains(scheme, "=") {
			all = append(all, strings.TrimSpace(token))
		}
	}
	all = append(all, s.OAuth.ClientSecret)
	all = append(all, urlSecrets(s.URL)...)
	all = append(all, pathSecrets(s.URL)...)
	return append(all, SecretsOfArgs(s.Args)...)
}

// Add hides the secrets of another config, too.
func (m *Mask) Add(cfg *Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.secret.Load()
	found := map[string]bool{}
	if known != nil {
		maps.Copy(found, known.forms)
	}
	add := func(values ...string) {
		for _, v := range values {
			if len(v) >= shortest {
				addForms(found, v)
			}
		}
	}
	if cfg.Gateway.lateToken == nil {
		add(cfg.Gateway.AuthToken)
	}
	add(cfg.Search.AuthToken)
	ofVariables := func(vars map[string]string) {
		for name, v := range vars {
			if LooksSecret(name, v) || !ordinary(v) {
				add(v)
			}
		}
	}
	ofVariables(cfg.variables)
	add(urlSecrets(cfg.Search.Embeddings)...)
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		for _, v := range serverSecrets(s) {
			if !s.IsReference(v) && !bareVariable().MatchString(v) { // its name may be shown
				add(v)
			}
		}
		ofVariables(s.Variables)
	}
	if len(found) > 0 && (known == nil || len(found) > len(known.forms)) {
		m.secret.Store(newSecrets(found))
	}
}

// Hide hides texts, too, that are known to be secrets.
func (m *Mask) Hide(texts ...string) {
	if m == nil || len(texts) == 0 {
		return
	}
	s := Server{Name: "hidden", Headers: make(map[string]string)}
	for i, text := range texts {
		s.Headers[strconv.Itoa(i)] = text
	}
	m.Add(&Config{Servers: []Server{s}})
}

// HideServer hides the secrets of a server whose references were resolved, or were until one
// failed.
func (m *Mask) HideServer(s Resolved) {
	m.Hide(s.Secrets...)
	if m != nil && s.Server != nil && len(s.Secrets) > 0 {
		m.Add(&Config{Servers: []Server{*s.Server}})
	}
}

func newSecrets(found map[string]bool) *secrets {
	m := &secrets{forms: found, width: 128, heads: make(map[uint16][]string)}
	for v := range found {
		m.width, m.longest = min(m.width, len(v)), max(m.longest, len(v))
	}
	for i := range m.shift {
		m.shift[i] = uint8(m.width - 1)
	}
	for v := range found {
		for i := 1; i < m.width; i++ {
			p := &m.shift[pairOf(v[i-1], v[i])]
			*p = min(*p, uint8(m.width-1-i))
		}
		last := pairOf(v[m.width-2], v[m.width-1])
		m.heads[last] = append(m.heads[last], v)
	}
	for _, values := range m.heads {
		slices.SortFunc(values, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
		})
	}
	return m
}

func pairOf(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

var (
	secretKey   = pattern(`(?i)key|token|secret|pass|pwd|auth|credential|cookie|bearer|private|signature|_pat$|^pat$|dsn`)
	secretNever = pattern(`(?i)pass|pwd|secret`) // not even a number
	plainPath   = pattern(`^(?:~?/|\.\.?/|[A-Za-z]:\\)[^\s[:cntrl:]+=?&@]*$`)
	userOfURL   = pattern(`^[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*|[^/?#:@]*:[^@]*)@`)
	plainHost   = pattern(`^(?:(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}|localhost)(?::\d{1,5})?$`)
)

// LooksSecret reports whether a variable, or a header, holds a secret by its name and its
// value, as [Mask] judges it.
func LooksSecret(key, value string) bool {
	whole, _, _ := userOf(value)
	switch {
	case whole != "":
		return true
	case !secretKey().MatchString(key) || plainPath().MatchString(value):
		return false
	case secretNever().MatchString(key):
		return true
	}
	return !ordinary(value)
}

// ordinary reports a path, a number, a boolean, an address or a host.
func ordinary(value string) bool {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return true
	}
	if _, err := strconv.ParseBool(value); err == nil {
		return true
	}
	if _, err := netip.ParseAddr(value); err == nil {
		return true
	}
	_, err := netip.ParseAddrPort(value)
	return err == nil || plainHost().MatchString(value) || plainPath().MatchString(value)
}

func urlSecrets(text string) []string {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return nil
	}
	secrets := []string{u.RawQuery}
	for _, values := range u.Query() {
		secrets = append(secrets, values...)
	}
	return append(secrets, userSecrets(text)...)
}

// userSecrets are what stands before the host of a URL, and the password in that, or else
// the user; empty texts if there is nothing.
func userSecrets(text string) []string {
	whole, user, password := userOf(text)
	return []string{whole, cmp.Or(password, user)}
}

// userOf is what stands before the host of a URL, and the parts of it; nothing of another
// text. Programs take URLs that Go does not, with "^", "%" or "#" in a password, say.
func userOf(text string) (whole, user, password string) {
	u, err := url.Parse(text)
	switch {
	case err == nil && u.User == nil:
		return "", "", ""
	case err == nil:
		password, _ = u.User.Password()
		return u.User.String(), u.User.Username(), password
	}
	m := userOfURL().FindStringSubmatch(text)
	if m == nil {
		return "", "", ""
	}
	user, password, _ = strings.Cut(m[1], ":")
	return m[1], user, password
}

// next finds the first place in text, from a byte on, that is to be hidden: a
// secret, or several that overlap. start is -1 when there is none.
func next[T ~string | ~[]byte](m *secrets, text T, from int) (start, end int) {
	start = -1
	for i := from + m.width - 1; i < len(text) && (start < 0 || i-m.width+1 < end); {
		last := pairOf(text[i-1], text[i])
		if n := m.shift[last]; n > 0 {
			i += int(n)
			continue
		}
		at := i - m.width + 1
		rest := text[at:]
		for _, v := range m.heads[last] {
			if len(rest) >= len(v) && string(rest[:len(v)]) == v {
				if start < 0 {
					start = at
				}
				end = max(end, at+len(v))
				break
			}
		}
		i++
	}
	return start, end
}

// now returns the current index.
func (m *Mask) now() *secrets {
	if m == nil {
		return nil
	}
	return m.secret.Load()
}

// String is s with the secrets hidden; s itself when it holds none.
func (m *Mask) String(s string) string {
	hidden := m.now()
	if hidden == nil {
		return s
	}
	if start, _ := next(hidden, s, 0); start < 0 {
		return s
	}
	return string(m.Head([]byte(s), len(s)))
}

// Head is the first n bytes of text with the secrets hidden, those too that
// only begin there. What holds none is not copied.
func (m *Mask) Head(text []byte, n int) []byte {
	head := text[:min(len(text), n)]
	hidden := m.now()
	if hidden == nil {
		return head
	}
	// A secret that the cut divides is found by what follows.
	seen := text[:min(len(text), n+hidden.longest)]
	start, end := next(hidden, seen, 0)
	if start < 0 || start >= len(head) {
		return head
	}
	out := make([]byte, 0, len(head)+len(masked))
	from := 0
	for ; start >= 0 && start < len(head); start, end = next(hidden, seen, end) {
		out = append(out, head[from:start]...)
		out = append(out, masked...)
		from = min(end, len(head))
	}
	return append(out, head[from:]...)
}

// Writer hides the secrets in each text that is written to w. A secret that is
// split over two writes is not found; loggers write whole lines.
func (m *Mask) Writer(w io.Writer) io.Writer {
	if m == nil {
		return w
	}
	return maskWriter{m, w}
}

type maskWriter struct {
	mask *Mask
	w    io.Writer
}

func (m maskWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(m.w, m.mask.String(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
