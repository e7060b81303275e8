package config

import (
	"errors"
	"net"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A complaint continues `"key" in server "x" `. It never contains the value, which may be
// secret.

func noNUL(s string) string {
	if strings.ContainsRune(s, 0) {
		return "contains a NUL character"
	}
	return ""
}

func programComplaint(s string) string {
	if strings.TrimSpace(s) == "" {
		return "is empty; name a program"
	}
	return noNUL(s)
}

func envNameComplaint(s string) string {
	if s == "" || strings.ContainsAny(s, "=\x00") {
		return "is not a valid environment variable name"
	}
	return ""
}

func keepEnvName(r *reader, at keyPath, key *yaml.Node) bool {
	if c := envNameComplaint(key.Value); c != "" {
		r.fail(key, "%s %s", at, c)
		return false
	}
	return true
}

func urlComplaint(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "is not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must begin with http:// or https://"
	case u.Hostname() == "":
		return "has no host"
	case u.Fragment != "":
		return `must not have a "#" part`
	}
	return portComplaint(u.Port())
}

func embeddingsComplaint(s string) string {
	if s == "" {
		return ""
	}
	if u, err := url.Parse(s); err == nil && u.RawQuery != "" {
		return `must not have a "?" part`
	}
	return urlComplaint(s)
}

// registryComplaint accepts a URL to which paths can be appended.
func registryComplaint(s string) string {
	if strings.Contains(s, "?") {
		return `must not have a "?" part`
	}
	return urlComplaint(s)
}

func portComplaint(port string) string {
	if port == "" {
		return ""
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "has an invalid port; use 0 to 65535"
	}
	return ""
}

func originComplaint(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" || s != u.Scheme+"://"+u.Host {
		return `must be an origin such as "https://app.example.com", without a path`
	}
	return portComplaint(u.Port())
}

func hostComplaint(s string) string {
	if s == "" || strings.Trim(s, ".") == "" || strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-._:", c)
	}) || strings.ContainsRune(s, ':') && net.ParseIP(s) == nil {
		return `must be a host name such as "goblin.example.com", without scheme, port or path`
	}
	return ""
}

func hostName() kind[string] {
	k := text(hostComplaint)
	read := k.read
	k.read = func(r *reader, at keyPath, n *yaml.Node, dst *string) {
		read(r, at, n, dst)
		*dst = strings.TrimSuffix(*dst, ".")
	}
	return k
}

func rootComplaint(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "file" || !strings.HasPrefix(u.Path, "/") {
		return `must be a URI such as "file:///home/me/project"`
	}
	return ""
}

func tokenComplaint(s string) string {
	if strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "must be visible ASCII characters without spaces"
	}
	return ""
}

func listenComplaint(s string) string {
	const want = `must be host:port such as "127.0.0.1:7331"`
	host, port, err := net.SplitHostPort(s)
	if err != nil || port == "" || strings.ContainsAny(host, " /@") {
		return want
	}
	return portComplaint(port)
}

// isLoopback reports whether a listen address is reachable from this machine only. Names
// other than localhost may resolve to any address.
func isLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// CheckListen checks an HTTP listen address and its token from the command line. An
// address that other machines can reach requires a token.
func CheckListen(listen, token string) error {
	if c := listenComplaint(listen); c != "" {
		return errors.New("listen address " + quote(listen) + " " + c)
	}
	if !isLoopback(listen) && token == "" {
		return errors.New("listen address " + quote(listen) + " " + needsToken)
	}
	return nil
}

const needsToken = `can be reached from other machines, so gateway.auth_token is required; set it or listen on 127.0.0.1`

// transportHeaders lists headers that the transport sets itself. Files of other clients
// often contain some.
var transportHeaders = []string{
	"Accept", "Connection", "Content-Length", "Content-Type", "Host", "Last-Event-Id",
	"Mcp-Protocol-Version", "Mcp-Session-Id", "Transfer-Encoding",
}

func keepHeaderName(r *reader, at keyPath, key *yaml.Node) bool {
	name := key.Value
	if name == "" || strings.ContainsFunc(name, func(c rune) bool { return !isTokenChar(c) }) {
		r.fail(key, "%s is not a valid HTTP header name", at)
		return false
	}
	if slices.Contains(transportHeaders, textproto.CanonicalMIMEHeaderKey(name)) {
		r.warn(key, "%s is ignored because Goblin sets it", at)
		return false
	}
	return true
}

func isTokenChar(c rune) bool {
	return c < 0x7f && c > ' ' && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}

func headerValueComplaint(s string) string {
	if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		return "contains a line break or another control character"
	}
	return ""
}
