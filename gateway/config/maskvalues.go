package config

import (
	"cmp"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

var (
	secretKey    = pattern(`(?i)key|token|secret|pass|pwd|auth|credential|cookie|bearer|private|signature|_pat$|^pat$|dsn`)
	alwaysSecret = pattern(`(?i)pass|pwd|secret`) // even for numbers and hosts
	plainPath    = pattern(`^(?:~?/|\.\.?/|[A-Za-z]:\\)[^\s[:cntrl:]+=?&@]*$`)
	plainHost    = pattern(`^(?:(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}|localhost)(?::\d{1,5})?$`)
)

func configSecrets(cfg *Config) (all []string) {
	if cfg.Gateway.lateToken == nil {
		all = append(all, cfg.Gateway.AuthToken)
	}
	all = append(all, cfg.Search.AuthToken)
	all = append(all, urlSecrets(cfg.Search.Embeddings)...)
	all = append(all, otelSecrets(&cfg.OTel)...)
	all = append(all, variableSecrets(cfg.variables)...)
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		for _, v := range serverSecrets(s) {
			if !s.IsReference(v) && !bareVariable().MatchString(v) { // variable names are not secret
				all = append(all, v)
			}
		}
		all = append(all, variableSecrets(s.Variables)...)
	}
	return all
}

func variableSecrets(variables map[string]string) (all []string) {
	for name, v := range variables {
		if LooksSecret(name, v) || !ordinary(v) {
			all = append(all, v)
		}
	}
	return all
}

// envSecrets also returns the parts of a URL, which servers may print separately. A
// password equal to the user name is not masked, since that would hide the name
// everywhere.
func envSecrets(v string) []string {
	whole, user, password := userOf(v)
	if password == "" || password == user {
		return []string{v}
	}
	return []string{v, whole, password}
}

// headerSecrets returns the value of a header, with and without its scheme.
func headerSecrets(v string) []string {
	if scheme, token, ok := strings.Cut(v, " "); ok && !strings.Contains(scheme, "=") {
		return []string{v, strings.TrimSpace(token)}
	}
	return []string{v}
}

func serverSecrets(s *Server) (all []string) {
	for name, v := range s.Env {
		if slices.Contains(s.FromEnv, name) || LooksSecret(name, v) {
			all = append(all, envSecrets(v)...)
		}
	}
	for _, v := range s.Headers {
		all = append(all, headerSecrets(v)...)
	}
	all = append(all, s.OAuth.ClientSecret)
	all = append(all, urlSecrets(s.URL)...)
	all = append(all, pathSecrets(s.URL)...)
	return append(all, SecretsOfArgs(s.Args)...)
}

// LooksSecret reports whether the name and value of a variable or header look secret, by
// the rules of [Mask].
func LooksSecret(key, value string) bool {
	whole, _, _ := userOf(value)
	switch {
	case whole != "":
		return true
	case !secretKey().MatchString(key) || plainPath().MatchString(value):
		return false
	case alwaysSecret().MatchString(key):
		return true
	}
	return !ordinary(value)
}

// ordinary reports whether a value is a path, number, boolean, address or host.
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

// userOfURL matches the user and password of a URL that Go cannot parse.
var userOfURL = pattern(`^[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*|[^/?#:@]*:[^@]*)@`)

// A part of a path or query looks random with this many bytes and digits.
const (
	minRandom = 20
	minDigits = 4
)

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

// userSecrets returns the user with the password of a URL, and the password, or the user
// without one. Both are empty if the URL has no user.
func userSecrets(text string) []string {
	whole, user, password := userOf(text)
	return []string{whole, cmp.Or(password, user)}
}

// userOf returns the user and the password of a URL, and both as written in whole. It
// returns empty texts for other input. Some programs accept URLs that Go rejects, for
// example with "^", "%" or "#" in a password.
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

func pathSecrets(text string) (secrets []string) {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return nil
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if looksRandom(part) {
			secrets = append(secrets, part)
		}
	}
	return secrets
}

// LooksRandom reports whether a text looks like a generated token.
func LooksRandom(text string) bool {
	return token().MatchString(text) || !strings.ContainsAny(text, "/@") && looksRandom(text)
}

func looksRandom(part string) bool {
	digits, letters := 0, 0
	for _, c := range part {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			letters++
		}
	}
	return len(part) >= minRandom && digits >= minDigits && letters > 0 && !strings.ContainsAny(part, ". ")
}

var (
	// secretFlag is stricter than secretKey, because flags have arbitrary names
	// (--author, --primary-key).
	secretFlag = pattern(`(?i)(?:^|api|access|private|secret|auth|client|signing|encryption|service|account|license)[-_]?key$|token|secret|passw|passphrase|(?:^|[-_])(?:pass|pwd|pat|auth)$|authorization|credential|cookie|bearer|dsn$|connection[-_]?string`)
	// token matches the formats of services' keys and tokens.
	token    = pattern(`^(?:sk|pk|rk)[-_](?:[a-zA-Z0-9]+[-_])*[A-Za-z0-9_-]{16,}$|^gh[pousr]_[A-Za-z0-9]{16,}$|^github_pat_\w{16,}$|^glpat-[\w-]{16,}$|^xox[abeprs]-[\w-]{10,}$|^AKIA[A-Z0-9]{12,}$|^AIza[\w-]{20,}$|^eyJ[\w-]+\.[\w-]+\.[\w-]*$|^hf_\w{16,}$|^npm_\w{16,}$`)
	assigned = pattern(`^-{0,2}([A-Za-z][A-Za-z0-9_.-]*)(=|:\s*)(.+)$`)
)

// SecretsOfArgs returns the arguments of a program, or parts of them, that look secret by
// the rules of [Mask].
func SecretsOfArgs(args []string) (secrets []string) {
	add := func(name, value string) {
		key := "token"
		if alwaysSecret().MatchString(name) {
			key = name
		}
		if !secretFlag().MatchString(name) || !LooksSecret(key, value) {
			return
		}
		secrets = append(secrets, value)
		if scheme, token, ok := strings.Cut(value, " "); ok && !strings.Contains(scheme, "=") { // a header
			secrets = append(secrets, strings.TrimSpace(token))
		}
	}
	for i, arg := range args {
		if token().MatchString(arg) {
			secrets = append(secrets, arg)
		}
		if parts := assigned().FindStringSubmatch(arg); parts != nil {
			add(parts[1], parts[3])
			arg = parts[3] // perhaps a URL
		} else if strings.HasPrefix(arg, "-") && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			add(strings.TrimLeft(arg, "-"), args[i+1])
		}
		for _, text := range []string{args[i], arg} {
			secrets = append(secrets, userSecrets(text)...)
			u, err := url.Parse(text)
			if err != nil || u.Host == "" {
				continue
			}
			for name, values := range u.Query() {
				for _, v := range values {
					if looksRandom(v) {
						secrets = append(secrets, v)
					}
					add(name, v)
				}
			}
			secrets = append(secrets, pathSecrets(text)...)
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return s == "" }) // "" would match every text
}
