package config

import (
	"net/url"
	"slices"
	"strings"
)

var (
	// secretFlag is stricter than secretKey: flags are named after all that a
	// program does (--author, --primary-key).
	secretFlag = pattern(`(?i)(?:^|api|access|private|secret|auth|client|signing|encryption|service|account|license)[-_]?key$|token|secret|passw|passphrase|(?:^|[-_])(?:pass|pwd|pat|auth)$|authorization|credential|cookie|bearer|dsn$|connection[-_]?string`)
	// token matches keys and tokens by the shapes that services give them, wherever they
	// stand.
	token = pattern(`^(?:sk|pk|rk)[-_](?:[a-zA-Z0-9]+[-_])*[A-Za-z0-9_-]{16,}$|^gh[pousr]_[A-Za-z0-9]{16,}$|^github_pat_\w{16,}$|^glpat-[\w-]{16,}$|^xox[abeprs]-[\w-]{10,}$|^AKIA[A-Z0-9]{12,}$|^AIza[\w-]{20,}$|^eyJ[\w-]+\.[\w-]+\.[\w-]*$|^hf_\w{16,}$|^npm_\w{16,}$`)
	// assigned is a flag, a variable or a header with its value.
	assigned = pattern(`^-{0,2}([A-Za-z][A-Za-z0-9_.-]*)(=|:\s*)(.+)$`)
)

// longPart is how many bytes a part of a path, or of a query, has that is a
// secret by its looks, and manyDigits how many of them are digits.
const (
	longPart   = 20
	manyDigits = 4
)

// SecretsOfArgs are the values in arguments of a program, or parts of those, that look
// secret, as [Mask] judges it.
func SecretsOfArgs(args []string) (secrets []string) {
	add := func(name, value string) {
		key := "token"
		if secretNever().MatchString(name) {
			key = name
		}
		if !secretFlag().MatchString(name) || !LooksSecret(key, value) {
			return
		}
		secrets = append(secrets, value)
		if scheme, token, ok := strings.Cut(value, " "); ok && !strings.Contains(scheme, "=") { // of a header
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
	return slices.DeleteFunc(secrets, func(s string) bool { return s == "" }) // which is in every text
}

// pathSecrets are the parts of a URL's path that look random.
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

// LooksRandom reports whether a text looks as made by a machine, such as a token.
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
	return len(part) >= longPart && digits >= manyDigits && letters > 0 && !strings.ContainsAny(part, ". ")
}
