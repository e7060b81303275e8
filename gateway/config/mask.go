package config

import (
	"cmp"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// shortest is how many bytes a value must have to be masked. Shorter ones
// ("1", "true", "debug") are no secrets, and masking them would garble what is
// told.
const shortest = 6

const masked = "[hidden]"

// Mask hides the secrets of a config: values of env and headers (those without
// their scheme, too), the auth token, users and queries of URLs. The nil Mask
// hides nothing. It is immutable, so any goroutine may use it.
type Mask struct{ replace *strings.Replacer }

// NewMask makes the mask of a config.
func NewMask(cfg *Config) *Mask {
	found := map[string]bool{}
	add := func(values ...string) {
		for _, v := range values {
			if len(v) < shortest {
				continue
			}
			found[v] = true
			// As it stands within a quoted text or a URL.
			quoted := strconv.Quote(v)
			found[quoted[1:len(quoted)-1]] = true
			found[url.QueryEscape(v)] = true
			found[url.PathEscape(v)] = true
		}
	}
	add(cfg.Gateway.AuthToken)
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		for _, v := range s.Env {
			add(v)
		}
		for _, v := range s.Headers {
			add(v)
			if scheme, token, ok := strings.Cut(v, " "); ok && !strings.Contains(scheme, "=") {
				add(strings.TrimSpace(token))
			}
		}
		add(urlSecrets(s.URL)...)
	}
	if len(found) == 0 {
		return nil
	}
	// A Replacer takes the first pair that fits: the longest goes first, so
	// that nothing of it stays.
	values := make([]string, 0, len(found))
	for v := range found {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(values))
	for _, v := range values {
		pairs = append(pairs, v, masked)
	}
	return &Mask{replace: strings.NewReplacer(pairs...)}
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
	if u.User != nil {
		password, _ := u.User.Password()
		secrets = append(secrets, u.User.String(), password)
		if password == "" {
			secrets = append(secrets, u.User.Username())
		}
	}
	return secrets
}

// String is s with the secrets hidden.
func (m *Mask) String(s string) string {
	if m == nil {
		return s
	}
	return m.replace.Replace(s)
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
