package downstream

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// guard checks Host (against DNS rebinding), Origin and token of each request.
type guard struct {
	h        *HTTP
	loopback bool // check the host
}

func (g *guard) admit(w http.ResponseWriter, r *http.Request) bool {
	if !g.allowsHost(hostOf(r.Host)) {
		http.Error(w, "Forbidden: host not allowed; use a loopback host or add it to gateway.allowed_hosts", http.StatusForbidden)
		return false
	}
	if origins := r.Header.Values("Origin"); len(origins) > 0 {
		if len(origins) > 1 || !g.allowsOrigin(origins[0]) {
			http.Error(w, "Forbidden: origin not allowed; add it to gateway.allowed_origins", http.StatusForbidden)
			return false
		}
		if g.cors(w, r, origins[0]) {
			return false
		}
	}
	if g.h.o.PublicHandlers[r.URL.Path] != nil || g.authorized(r) {
		return true
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="goblin"`)
	http.Error(w, "Unauthorized: send the token of gateway.auth_token as a bearer token", http.StatusUnauthorized)
	return false
}

func (g *guard) authorized(r *http.Request) bool {
	if g.h.o.AuthToken == "" {
		return true
	}
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	// Hashes of equal length keep the timing constant.
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.h.token[:]) == 1
}

// allowsHost reports whether requests for a host are served. On loopback, or with
// AllowedHosts, only those and loopback names are.
func (g *guard) allowsHost(host string) bool {
	if !g.loopback && len(g.h.o.AllowedHosts) == 0 || isLoopback(host) {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	return slices.ContainsFunc(g.h.o.AllowedHosts, func(name string) bool { return strings.EqualFold(name, host) })
}

func (g *guard) allowsOrigin(origin string) bool {
	if slices.Contains(g.h.o.AllowedOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || origin != u.Scheme+"://"+u.Host {
		return false
	}
	return isLoopback(hostOf(u.Host))
}

// cors adds the headers for an allowed origin. It reports whether it answered a
// preflight.
func (g *guard) cors(w http.ResponseWriter, r *http.Request, origin string) (done bool) {
	head := w.Header()
	head.Add("Vary", "Origin")
	head.Set("Access-Control-Allow-Origin", origin)
	head.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	head.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	head.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name"+paramHeaders(r))
	head.Set("Access-Control-Max-Age", "7200")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// paramHeaders returns the Mcp-Param headers of a preflight, whose names depend on the
// tool.
func paramHeaders(r *http.Request) (list string) {
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.TrimSpace(name)
		if _, ok := strings.CutPrefix(strings.ToLower(name), "mcp-param-"); ok && len(list)+len(name) < 4096 {
			list += ", " + name
		}
	}
	return list
}

// "" counts as loopback.
func listensOnLoopback(listen string) bool {
	return listen == "" || isLoopback(hostOf(listen))
}

// hostOf returns the host without port and brackets, or "" if it is invalid.
func hostOf(hostport string) string {
	if host, port, err := net.SplitHostPort(hostport); err == nil {
		if strings.Trim(port, "0123456789") != "" {
			return ""
		}
		return host
	}
	if strings.HasPrefix(hostport, "[") && strings.HasSuffix(hostport, "]") {
		return hostport[1 : len(hostport)-1]
	}
	return hostport
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
