//go:build e2e

package inputs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// The doctor used to wait for 15 s regardless of the config.
func TestADoctorsVisitToASilentServerEndsAtItsStartupTimeout(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	t.Cleanup(web.Close)
	t.Cleanup(func() { close(stop) })
	p := newPatient(t, false, "url: "+web.URL+"/mcp", "startup_timeout: 1s")
	cause, fix, _ := p.doctor().worst(t)
	require.Contains(t, cause, "timeout after 1s")
	require.Contains(t, fix, "raise startup_timeout")
}

// Each row is a fault of gateway/FAULTS.md that stops a server or a part of it.
func TestTheDoctorNamesTheCauseOfEachFaultThatStopsAServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode  string
		conf  e2e.Obj
		cause string
		fix   string
	}{
		"B01 exits at start":             {mode: "crash-start", cause: "exit status 139; output: cannot open the database", fix: "run it yourself to see the full error: env -i "},
		"B02 no program":                 {mode: "dup-ids", conf: e2e.Obj{"command": "no-such-program"}, cause: `"no-such-program" not found in PATH`, fix: "install it"},
		"B04 never answers":              {mode: "hang-init", cause: "did not answer initialize within 1s (startup_timeout)", fix: "raise startup_timeout"},
		"B05 refuses":                    {mode: "fail-init", cause: "refused initialize: no licence", fix: "follow its message"},
		"B06 answers null":               {mode: "null-init", cause: "sent a result that is not an object", fix: "up to date"},
		"B08 an unknown version":         {mode: "bad-version", cause: `speaks protocol revision "9999-99-99" only`, fix: "update the server or Goblin"},
		"B09 a version that is a number": {mode: "wrong-version-type", cause: "answered initialize without a protocolVersion", fix: "up to date"},
		"B12 crashes again and again":    {mode: "crash-loop", cause: "exit status 139; output: bye", fix: "run it yourself"},
		"B20 a list that is too deep":    {mode: "deep-json-list", cause: "nested more than 512 deep", fix: "raise limits.depth under gateway"},
		"B26 a list of a wrong shape":    {mode: "tools-not-array", cause: `tools/list failed: the result has no array "tools"`, fix: "report this to its authors"},
		"B40 refuses connections":        {mode: "http-500", conf: e2e.Obj{"url": "http://127.0.0.1:1/mcp"}, cause: "no connection to 127.0.0.1:1: ", fix: "check that the server runs"},
		"B41 status 500":                 {mode: "http-500", cause: "HTTP 500 Internal Server Error: oops", fix: "is failing"},
		"B42 status 401":                 {mode: "http-401", cause: "login required: HTTP 401 Unauthorized", fix: "goblin login it"},
		"B43 HTML":                       {mode: "http-html", cause: "web page", fix: "url"},
		"B43 no JSON":                    {mode: "http-notjson", cause: `sent no JSON-RPC answer: "no json"`, fix: "url"},
		"B44 never answers":              {mode: "http-silent", cause: "did not answer initialize within 1s (startup_timeout)", fix: "raise startup_timeout"},
		"B45 an event without an end":    {mode: "http-endless", cause: "sent an event over the size limit", fix: "url"},
		"B46 redirects":                  {mode: "http-redirect", cause: "HTTP 307 Temporary Redirect to http://127.0.0.1:", fix: "if you trust that address, set url: http://127.0.0.1:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			limit := "20s"
			if strings.Contains(tt.cause, "within 1s") {
				limit = "1s"
			}
			w.FaultyServer("it", tt.mode, true, e2e.Obj{"startup_timeout": limit}, tt.conf)
			cause, fix, _ := (&patient{World: w}).doctor().worst(t)
			require.Contains(t, cause, tt.cause)
			require.Contains(t, fix, tt.fix)
		})
	}
}
