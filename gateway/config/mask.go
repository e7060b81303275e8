package config

import (
	"bytes"
	"io"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
)

// minSecret is in bytes. Masking shorter values ("1", "true", "debug") would make texts
// unreadable.
const minSecret = 6

const masked = "[hidden]"

// hashLen is in bytes, of the hash in a placeholder.
const hashLen = 4

// Mask replaces the secrets of configs in texts. A secret is:
//
//   - a header, with and without its scheme, and a token of the config itself;
//   - the user, password and query of a URL, and path segments that came from variables
//     or look random;
//   - a value of env that came from a variable outside of the base set (HOME, USER, …);
//   - a value of env with a secret-looking name (KEY, TOKEN, PASS, AUTH, …). Paths,
//     hosts, numbers and booleans don't count unless the name has PASS or SECRET;
//   - an argument, also in overrides, that came from a variable or has the form of a
//     token (sk-…, ghp_…);
//   - the value of a flag, variable or header in an argument if it looks secret.
//
// Other values of env are never masked: such directories and names are part of ordinary
// texts.
//
// Mask finds a secret verbatim and as quoted by Go, URLs and JSON, including JSON within
// a JSON text. It ignores secrets shorter than six bytes. A Mask never forgets a secret,
// since texts from before a config change may still arrive.
//
// A secret becomes "[hidden]", or "[hidden:0a1b2c3d]" after SetKey: the same hash for the
// same secret in any spelling.
//
// The nil Mask hides nothing. All methods are safe for concurrent use.
type Mask struct {
	mu      sync.Mutex // held while the next matcher is built
	key     []byte     // guarded by mu
	matcher atomic.Pointer[matcher]
}

// NewMask returns the mask of a config.
func NewMask(cfg *Config) *Mask {
	m := new(Mask)
	m.Add(cfg)
	return m
}

// Add adds the secrets of another config.
func (m *Mask) Add(cfg *Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.matcher.Load()
	forms := map[string]string{}
	if known != nil {
		maps.Copy(forms, known.patterns)
	}
	before := len(forms)
	for _, v := range configSecrets(cfg) {
		if len(v) >= minSecret {
			addForms(forms, v)
		}
	}
	if len(forms) > before {
		m.matcher.Store(newMatcher(forms, m.key))
	}
}

// SetKey adds hashes with this key to the placeholders. nil removes them.
func (m *Mask) SetKey(key []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes.Equal(m.key, key) {
		return
	}
	m.key = bytes.Clone(key)
	if known := m.matcher.Load(); known != nil {
		m.matcher.Store(newMatcher(known.patterns, m.key))
	}
}

// AddSecrets adds texts that are known to be secret.
func (m *Mask) AddSecrets(texts ...string) {
	if m == nil || len(texts) == 0 {
		return
	}
	s := Server{Name: "hidden", Headers: make(map[string]string)}
	for i, text := range texts {
		s.Headers[strconv.Itoa(i)] = text
	}
	m.Add(&Config{Servers: []Server{s}})
}

// AddServerSecrets adds the secrets that resolving a server's references found, even if
// it failed later.
func (m *Mask) AddServerSecrets(s Resolved) {
	m.AddSecrets(s.Secrets...)
	if m != nil && s.Server != nil && len(s.Secrets) > 0 {
		m.Add(&Config{Servers: []Server{*s.Server}})
	}
}

func (m *Mask) current() *matcher {
	if m == nil {
		return nil
	}
	return m.matcher.Load()
}

// String returns s with the secrets hidden. Without secrets it returns s itself.
func (m *Mask) String(s string) string {
	secrets := m.current()
	if secrets == nil {
		return s
	}
	if start, _ := find(secrets, s, 0); start < 0 {
		return s
	}
	return string(m.Head([]byte(s), len(s)))
}

// Head returns the first n bytes of text with the secrets hidden, including a secret that
// the cut divides. It does not copy a text without secrets.
func (m *Mask) Head(text []byte, n int) []byte {
	head := text[:min(len(text), n)]
	secrets := m.current()
	if secrets == nil {
		return head
	}
	searched := text[:min(len(text), n+secrets.longest)]
	start, end := find(secrets, searched, 0)
	if start < 0 || start >= len(head) {
		return head
	}
	out := make([]byte, 0, len(head)+len(masked))
	from := 0
	for ; start >= 0 && start < len(head); start, end = find(secrets, searched, end) {
		out = append(out, head[from:start]...)
		out = append(out, secrets.placeholder(searched[start:end])...)
		from = min(end, len(head))
	}
	return append(out, head[from:]...)
}

// Writer returns a writer that hides the secrets in each text written to w. It misses a
// secret that is split over two writes; loggers write whole lines.
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
