//go:build e2e

package logins

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// realm is an authorization server and the MCP servers that trust it.
type realm struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	life     time.Duration // of access tokens
	meta     func(e2e.Obj) // changes the metadata
	answer   func(e2e.Obj) // changes the answers with tokens
	redirect func(url.Values)
	odd      map[string]http.HandlerFunc // by path: replaces the answer
	names    func(e2e.Obj)               // changes the servers' metadata
	secrets  []string                    // secrets and proofs of clients
	status   int                         // status of token requests that fail; 0: they succeed
	scope    string                      // that servers require
	bare     bool                        // servers do not name the scope
	clients  map[string]string           // id → redirect
	codes    map[string]url.Values
	access   map[string]time.Time // expiry
	uses     map[string]int       // of access tokens
	most     int                  // uses of one token; 0: unlimited
	void     bool                 // servers accept no token
	refresh  map[string]bool
	devices  map[string]bool   // whether the user has entered the code
	granted  map[string]string // scope by access token
	n        int
	asked    map[string]int // by name
	revoked  []string
	seen     []string // Authorization headers of servers
}

func newRealm(t *testing.T) *realm {
	r := &realm{
		t: t, life: time.Hour, clients: map[string]string{}, codes: map[string]url.Values{}, access: map[string]time.Time{},
		refresh: map[string]bool{}, devices: map[string]bool{}, granted: map[string]string{}, uses: map[string]int{}, asked: map[string]int{}, scope: "use",
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", r.metadata)
	mux.HandleFunc("POST /register", r.register)
	mux.HandleFunc("GET /authorize", r.authorize)
	mux.HandleFunc("POST /token", r.token)
	mux.HandleFunc("POST /device", r.device)
	mux.HandleFunc("GET /enter", func(w http.ResponseWriter, req *http.Request) {
		r.set(func() { r.devices[req.FormValue("code")] = true })
		_, _ = io.WriteString(w, "You can close this page")
	})
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.proof(req)
		r.revoked = append(r.revoked, req.FormValue("token"))
		delete(r.access, req.FormValue("token"))
		delete(r.refresh, req.FormValue("token"))
	})
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		odd := r.odd[req.URL.Path]
		r.mu.Unlock()
		if odd != nil {
			odd(w, req)
			return
		}
		mux.ServeHTTP(w, req)
	}))
	t.Cleanup(r.server.Close)
	return r
}

func (r *realm) count(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[what]
}

func (r *realm) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func respond(w http.ResponseWriter, status int, body e2e.Obj) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (r *realm) metadata(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := e2e.Obj{
		"issuer": r.server.URL, "authorization_endpoint": r.server.URL + "/authorize", "token_endpoint": r.server.URL + "/token",
		"device_authorization_endpoint": r.server.URL + "/device",
		"registration_endpoint":         r.server.URL + "/register", "revocation_endpoint": r.server.URL + "/revoke",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"none"}, "authorization_response_iss_parameter_supported": true,
	}
	if r.meta != nil {
		r.meta(o)
	}
	respond(w, http.StatusOK, o)
}

func (r *realm) register(w http.ResponseWriter, req *http.Request) {
	var p struct {
		Redirects []string `json:"redirect_uris"`
		Grants    []string `json:"grant_types"`
		Type      string   `json:"application_type"`
	}
	_ = json.NewDecoder(req.Body).Decode(&p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Type != "native" || !slices.Contains(p.Grants, "refresh_token") || len(p.Redirects) != 1 {
		respond(w, http.StatusBadRequest, e2e.Obj{"error": "invalid_client_metadata"})
		return
	}
	r.asked["register"]++
	id := fmt.Sprint("client-", r.asked["register"])
	r.clients[id] = p.Redirects[0]
	respond(w, http.StatusCreated, e2e.Obj{"client_id": id, "redirect_uris": p.Redirects, "token_endpoint_auth_method": "none"})
}

func (r *realm) authorize(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clients[q.Get("client_id")] != q.Get("redirect_uri") || q.Get("code_challenge_method") != "S256" || q.Get("resource") == "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "invalid_client")
		return
	}
	r.n++
	code := fmt.Sprint("code-", r.n, rand.Text())
	r.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {r.server.URL}}
	if r.redirect != nil {
		r.redirect(back)
	}
	http.Redirect(w, req, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (r *realm) token(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[req.FormValue("grant_type")]++
	r.proof(req)
	scope := r.scope
	if r.status != 0 {
		http.Error(w, "<html>out of order</html>", r.status)
		return
	}
	switch req.FormValue("grant_type") {
	case "authorization_code":
		q := r.codes[req.FormValue("code")]
		delete(r.codes, req.FormValue("code"))
		sum := sha256.Sum256([]byte(req.FormValue("code_verifier")))
		if q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || req.FormValue("resource") != q.Get("resource") {
			respond(w, http.StatusBadRequest, e2e.Obj{"error": "invalid_grant"})
			return
		}
		scope = q.Get("scope")
	case "refresh_token":
		if !r.refresh[req.FormValue("refresh_token")] || req.FormValue("resource") == "" {
			r.asked["invalid_grant"]++
			respond(w, http.StatusBadRequest, e2e.Obj{"error": "invalid_grant"})
			return
		}
		delete(r.refresh, req.FormValue("refresh_token")) // they rotate
	case "urn:ietf:params:oauth:grant-type:device_code":
		entered, known := r.devices[strings.TrimPrefix(req.FormValue("device_code"), "device-")]
		if !known || !entered {
			respond(w, http.StatusBadRequest, e2e.Obj{"error": "authorization_pending"})
			return
		}
	case "client_credentials":
		if id, secret, _ := req.BasicAuth(); id+req.FormValue("client_id") != "robot" || secret+req.FormValue("client_secret") != "robot-secret" {
			respond(w, http.StatusUnauthorized, e2e.Obj{"error": "invalid_client"})
			return
		}
	}
	r.n++
	access, refresh := fmt.Sprint("access-", r.n, rand.Text()), fmt.Sprint("refresh-", r.n, rand.Text())
	r.secrets = append(r.secrets, access, refresh)
	for _, sent := range []string{"code", "code_verifier", "client_secret", "device_code"} {
		if v := req.FormValue(sent); v != "" {
			r.secrets = append(r.secrets, v)
		}
	}
	r.access[access], r.refresh[refresh], r.granted[access] = time.Now().Add(r.life), true, scope
	if r.void {
		delete(r.access, access)
	}
	o := e2e.Obj{
		"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": int(r.life.Seconds()), "scope": scope,
	}
	if r.answer != nil {
		r.answer(o)
	}
	respond(w, http.StatusOK, o)
}

// proof counts the authentication methods of clients.
func (r *realm) proof(req *http.Request) {
	for _, how := range []string{"client_assertion", "client_secret"} {
		if req.FormValue(how) != "" {
			r.asked[how]++
		}
	}
}

// device begins a login by device.
func (r *realm) device(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked["device"]++
	r.proof(req)
	if r.clients[req.FormValue("client_id")] == "" || req.FormValue("resource") == "" {
		respond(w, http.StatusUnauthorized, e2e.Obj{"error": "invalid_client"})
		return
	}
	r.n++
	code := fmt.Sprint("GOB-", r.n)
	r.devices[code] = false
	respond(w, http.StatusOK, e2e.Obj{
		"device_code": "device-" + code, "user_code": code, "verification_uri": r.server.URL + "/enter",
		"verification_uri_complete": r.server.URL + "/enter?code=" + code, "expires_in": 600, "interval": 1,
	})
}

// protect puts a server of the world behind the realm.
func (r *realm) protect(w *e2e.World, b *e2e.Backend) {
	target, err := url.Parse(b.Conf["url"].(string))
	require.NoError(r.t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
		p.Out.Header.Del("Authorization")
	}, ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}}
	var front *httptest.Server
	front = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/metadata" {
			o := e2e.Obj{"resource": front.URL + target.Path, "authorization_servers": []string{r.server.URL}}
			r.set(func() {
				if r.names != nil {
					r.names(o)
				}
			})
			respond(rw, http.StatusOK, o)
			return
		}
		header := req.Header.Get("Authorization")
		token := strings.TrimPrefix(header, "Bearer ")
		r.mu.Lock()
		r.seen = append(r.seen, header)
		end, known := r.access[token]
		if r.uses[token]++; r.most > 0 && r.uses[token] > r.most {
			known = false
		}
		scope, named, granted := r.scope, r.scope, r.granted[token]
		if r.bare {
			named = ""
		}
		r.mu.Unlock()
		switch {
		case !known || time.Now().After(end):
			rw.Header().Set("WWW-Authenticate", `Bearer realm="x", resource_metadata="`+front.URL+`/metadata", scope="`+named+`"`)
			http.Error(rw, "no", http.StatusUnauthorized)
		case scope != "" && !slices.Contains(strings.Fields(granted), scope):
			rw.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+named+`"`)
			http.Error(rw, "no", http.StatusForbidden)
		default:
			proxy.ServeHTTP(rw, req)
		}
	}))
	r.t.Cleanup(func() {
		front.CloseClientConnections() // the daemon may outlive the world by a moment
		front.Close()
	})
	b.Conf["url"] = front.URL + target.Path
	w.Env = append(w.Env, "BROWSER=true")
}

var page = regexp.MustCompile(`(?m)^https?://\S+`)

// logIn runs "goblin login" and opens the page as the user.
func (r *realm) logIn(w *e2e.World, server string, visit func(page string), flags ...string) (code int, told string) {
	r.t.Helper()
	p := w.Start(nil, append([]string{"login", server}, flags...)...)
	r.t.Cleanup(func() { p.Signal(syscall.SIGKILL) })
	e2e.Eventually(r.t, "the page", func() bool {
		select {
		case <-p.Exited:
			return true
		default:
			return page.MatchString(p.Stderr.String())
		}
	})
	if found := page.FindString(p.Stderr.String()); found != "" {
		visit(found)
	}
	return p.Ends(e2e.Patience), p.Stderr.String()
}

// succeeds is logIn at the server shop, which must succeed. It returns the command's
// output.
func (r *realm) succeeds(w *e2e.World, visit func(page string), flags ...string) (told string) {
	r.t.Helper()
	code, told := r.logIn(w, "shop", visit, flags...)
	require.Equal(r.t, e2e.ExitOK, code, told)
	return told
}

// visit opens a page as a browser does, and returns the text at its end.
func (r *realm) visit(at string) {
	resp, err := http.Get(at)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	if resp.StatusCode == http.StatusOK {
		require.Contains(r.t, string(text), "You can close this page")
	}
}
