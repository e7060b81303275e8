// Package secrettext decides which values of a server's entry look secret.
//
// Masks of texts and forms follow its rules. It keeps no state.
package secrettext

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var (
	secretKey    = pattern(`(?i)key|token|secret|pass|pwd|auth|credential|cookie|bearer|private|signature|_pat$|^pat$|dsn`)
	alwaysSecret = pattern(`(?i)pass|pwd|secret`) // even for numbers and hosts
	plainPath    = pattern(`^(?:~?/|\.\.?/|[A-Za-z]:\\)[^\s[:cntrl:]+=?&@]*$`)
	plainHost    = pattern(`^(?:(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}|localhost)(?::\d{1,5})?$`)
)

// Looks reports whether the name and value of a variable or header look secret.
func Looks(key, value string) bool {
	whole, _, _ := User(value)
	switch {
	case whole != "":
		return true
	case !secretKey().MatchString(key) || plainPath().MatchString(value):
		return false
	case alwaysSecret().MatchString(key):
		return true
	}
	return !IsOrdinary(value)
}

// IsOrdinary reports whether a value is a path, number, boolean, address or host.
func IsOrdinary(value string) bool {
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

// OfURL returns the query of a URL, its values, the user and the password.
func OfURL(text string) []string {
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
	whole, user, password := User(text)
	return []string{whole, cmp.Or(password, user)}
}

// User returns the user and the password of a URL, and both as written in whole. It
// returns empty texts for other input. Some programs accept URLs that Go rejects, for
// example with "^", "%" or "#" in a password.
func User(text string) (whole, user, password string) {
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

// OfPath returns the parts of a URL's path that look generated.
func OfPath(text string) (secrets []string) {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return nil
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if IsRandomPart(part) {
			secrets = append(secrets, part)
		}
	}
	return secrets
}

// IsRandom reports whether a text looks like a generated token.
func IsRandom(text string) bool {
	return token().MatchString(text) || !strings.ContainsAny(text, "/@") && IsRandomPart(text)
}

// IsRandomPart reports whether a part of a path or a query looks generated.
func IsRandomPart(part string) bool {
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

// OfArgs returns the arguments of a program, or parts of them, that look secret.
func OfArgs(args []string) (secrets []string) {
	add := func(name, value string) {
		key := "token"
		if alwaysSecret().MatchString(name) {
			key = name
		}
		if !secretFlag().MatchString(name) || !Looks(key, value) {
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
					if IsRandomPart(v) {
						secrets = append(secrets, v)
					}
					add(name, v)
				}
			}
			secrets = append(secrets, OfPath(text)...)
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return s == "" }) // "" would match every text
}

// IsSecret reports whether the value of a variable or header is a secret in plain text.
func IsSecret(name, value string) bool {
	return isPlain(value) && (Looks(name, value) || IsRandom(value))
}

// isPlain reports whether a value is no reference and not hidden by a mask.
func isPlain(value string) bool {
	return value != "" && !strings.Contains(value, "${") && !strings.Contains(value, "[hidden")
}

// MaskValue returns a function for values of a variable or header, one in each row. It
// returns the index of the secret in a row in bytes, or the row's length.
func MaskValue(name string) func(rows []string, row int) int {
	return func(rows []string, row int) int {
		if IsSecret(name, rows[row]) {
			return 0
		}
		return len(rows[row])
	}
}

// MaskPairs is like [MaskValue] for rows such as "NAME=VALUE".
func MaskPairs(separator string) func(rows []string, row int) int {
	return func(rows []string, row int) int {
		name, value, _ := strings.Cut(rows[row], separator)
		value = strings.TrimLeft(value, " ")
		if IsSecret(strings.TrimSpace(name), value) {
			return len(rows[row]) - len(value)
		}
		return len(rows[row])
	}
}

// MaskArgs is like [MaskValue] for arguments of a program, one in each row, and for URLs.
func MaskArgs(rows []string, row int) int {
	first := len(rows[row])
	for _, secret := range OfArgs(rows[max(row-1, 0) : row+1]) {
		if at := strings.Index(rows[row], secret); at >= 0 && isPlain(secret) {
			first = min(first, at)
		}
	}
	return first
}

// MaskCommand is like [MaskValue] for a command line or a URL in one row.
func MaskCommand(rows []string, row int) int {
	first := len(rows[row])
	for _, secret := range OfArgs(strings.Fields(rows[row])) {
		if at := strings.Index(rows[row], secret); at >= 0 && isPlain(secret) {
			first = min(first, at)
		}
	}
	return first
}
