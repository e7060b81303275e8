package config

import (
	"io"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
)

// minSecret is the length of the shortest masked secret, in bytes. Shorter values ("1", "true",
// "debug") are no secrets, and masking them would make texts unreadable.
const minSecret = 6

// masked replaces each secret.
const masked = "[hidden]"

// Mask replaces the secrets of configs in texts. A secret is:
//
//   - a header, also without its scheme, and a token of the config itself;
//   - the user, the password and the query of a URL, and a part of its path that was a variable
//     or looks random;
//   - a value of env that was a variable, except one that every child gets (HOME, USER, …);
//   - a value of env whose name looks secret (KEY, TOKEN, PASS, AUTH, …), except a path, a host,
//     a number or a boolean, unless the name has PASS or SECRET;
//   - an argument of a command, also in overrides, that was a variable or has the form of a
//     token (sk-…, ghp_…), and the value of a flag, variable or header that looks secret.
//
// All other values of env are ordinary: URIs and texts contain such folders and names.
//
// Mask finds a secret as it is and in the forms in which Go, URLs and JSON quote it, also in
// JSON within a JSON text. It ignores secrets shorter than six bytes. A Mask never forgets a
// secret: texts that were made before a change of the config may still arrive.
//
// The nil Mask hides nothing. All methods may be called concurrently.
type Mask struct {
	mu      sync.Mutex // held while the next matcher is built
	matcher atomic.Pointer[matcher]
}

// NewMask makes the mask of a config.
func NewMask(cfg *Config) *Mask {
	m := new(Mask)
	m.Add(cfg)
	return m
}

// Add also hides the secrets of another config.
func (m *Mask) Add(cfg *Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.matcher.Load()
	forms := map[string]bool{}
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
		m.matcher.Store(newMatcher(forms))
	}
}

// AddSecrets hides texts, too, that are known to be secrets.
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

// AddServerSecrets hides the secrets of a server whose references were resolved, or were until one
// failed.
func (m *Mask) AddServerSecrets(s Resolved) {
	m.AddSecrets(s.Secrets...)
	if m != nil && s.Server != nil && len(s.Secrets) > 0 {
		m.Add(&Config{Servers: []Server{*s.Server}})
	}
}

// current returns the matcher of all secrets, or nil if there are none.
func (m *Mask) current() *matcher {
	if m == nil {
		return nil
	}
	return m.matcher.Load()
}

// String returns s with the secrets hidden. It returns s itself if it contains none.
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

// Head returns the first n bytes of text with the secrets hidden, also a secret that only
// begins there. It does not copy a text without secrets.
func (m *Mask) Head(text []byte, n int) []byte {
	head := text[:min(len(text), n)]
	secrets := m.current()
	if secrets == nil {
		return head
	}
	// A secret that crosses the cut is found with the bytes behind the cut.
	searched := text[:min(len(text), n+secrets.longest)]
	start, end := find(secrets, searched, 0)
	if start < 0 || start >= len(head) {
		return head
	}
	out := make([]byte, 0, len(head)+len(masked))
	from := 0
	for ; start >= 0 && start < len(head); start, end = find(secrets, searched, end) {
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
