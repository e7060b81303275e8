package downstream_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	"goblin/registry/rawjson"
)

const mostProjects = 256

// projects tests an endpoint for stateless clients in simulated time. "whoami" of h
// returns the session of a request.
func projects(t *testing.T, test func(t *testing.T, h *script, at func(path, method, members string) *httptest.ResponseRecorder)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newScript()
		e := downstream.NewHTTP(downstream.HTTPOptions{
			Options: downstream.Options{Handler: h}, AuthToken: "t",
			ResolveProject: func(path string) (string, error) {
				if strings.Contains(path, "nope") {
					return "", errors.New(path + " does not exist")
				}
				return strings.TrimRight(path, "/"), nil
			},
		})
		defer e.Close()
		test(t, h, func(path, method, members string) *httptest.ResponseRecorder {
			time.Sleep(time.Second) // later than the last use of the others, which are idle again
			return stateless(e.Handler(), path, "192.0.2.7:1", method, modern(members))
		})
	})
}

// named returns the path of a project.
func named(n int) string { return "/mcp?project=/p" + number(n) }

func TestWhatCannotBeAProjectTakesNoPlace(t *testing.T) {
	projects(t, func(t *testing.T, h *script, at func(path, method, members string) *httptest.ResponseRecorder) {
		for n := range mostProjects + 1 {
			answer := at("/mcp?project=/nope"+number(n), "whoami", "")
			require.Equal(t, http.StatusBadRequest, answer.Code)
			require.Contains(t, answer.Body.String(), `"id":1,"error":{`)
			require.Contains(t, answer.Body.String(), "/nope"+number(n)+" does not exist")
		}
		require.Empty(t, h.opened)
		require.Equal(t, 200, at("/mcp", "whoami", "").Code)
		one := at(named(1), "whoami", "")
		require.Equal(t, 200, one.Code)
		require.Equal(t, one.Body.String(), at(named(1)+"//", "whoami", "").Body.String(), "one folder, regardless of the spelling")
		require.Len(t, h.opened, 2)
		<-h.opened
		require.Equal(t, downstream.Location{Folder: "/p1", IsProject: true}, (<-h.opened).Location())
	})
}

func TestTheProjectThatWasIdleForLongestMakesRoom(t *testing.T) {
	projects(t, func(t *testing.T, h *script, at func(path, method, members string) *httptest.ResponseRecorder) {
		whose := func(path string) string {
			answer := at(path, "whoami", "")
			require.Equal(t, 200, answer.Code, answer.Body.String())
			return answer.Body.String()
		}
		plain := whose("/mcp")
		var first []string
		for n := range mostProjects {
			first = append(first, whose(named(n)))
		}
		require.Equal(t, first[0], whose(named(0)))
		require.Empty(t, h.closed)
		whose(named(mostProjects))
		synctest.Wait()
		require.Len(t, h.closed, 1)
		require.Contains(t, first[1], (<-h.closed).ID(), "it was idle longest")
		require.Equal(t, first[0], whose(named(0)))
		require.Equal(t, first[2], whose(named(2)))
		require.Equal(t, plain, whose("/mcp"), "requests without a project evict nothing")
		require.NotEqual(t, first[1], whose(named(1)), "it starts again")
	})
}

func TestProjectsWithRequestsUnderWayStay(t *testing.T) {
	projects(t, func(t *testing.T, h *script, at func(path, method, members string) *httptest.ResponseRecorder) {
		goOn := make(chan struct{})
		h.handle = func(x *downstream.Request) {
			switch x.Method() {
			case "tools/call":
				asking(x)
			case "block":
				<-goOn
			}
			_ = x.Reply([]byte(`{}`))
		}
		// This project has no connected client, but its client must return.
		var demand message
		require.NoError(t, json.Unmarshal(at(named(0), "tools/call", `"name":"t"`).Body.Bytes(), &demand))
		_, state := demanded(t, demand)
		var busy sync.WaitGroup
		for n := range mostProjects - 1 {
			busy.Go(func() { at(named(n+1), "block", "") })
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, h.opened, mostProjects)

		refused := at(named(mostProjects), "echo", "")
		require.Equal(t, http.StatusServiceUnavailable, refused.Code)
		require.Contains(t, refused.Body.String(), "Too many projects in use by requests without a session (limit 256)")
		require.Equal(t, 200, at("/mcp", "echo", "").Code, "concerns only requests that name a project")
		require.Equal(t, 200, at(named(1), "echo", "").Code, "and of these only new projects")
		require.Empty(t, h.closed)

		back := at(named(0), "tools/call", `"name":"t","inputResponses":{"input-1":{"action":"accept"}},"requestState":`+state)
		require.Equal(t, `{"action":"accept"}`, string(rawjson.Path(back.Body.Bytes(), "result")), back.Body.String())
		require.Equal(t, 200, at(named(mostProjects), "echo", "").Code, "the returned one is idle now")
		close(goOn)
		busy.Wait()
	})
}
