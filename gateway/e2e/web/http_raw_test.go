//go:build e2e

package web

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// raw sends bytes and gives the status of the first answer.
func raw(s *e2e.Web, text string) int {
	s.T.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.Base, "http://"))
	require.NoError(s.T, err)
	defer conn.Close()
	require.NoError(s.T, conn.SetDeadline(time.Now().Add(e2e.Patience)))
	_, err = conn.Write([]byte(text))
	require.NoError(s.T, err)
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(s.T, err, text)
	_ = got.Body.Close()
	return got.StatusCode
}

func TestH01_H05_OddRequestsMeetTheSameGuards(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"] = "right-token"
	s := w.Serve()
	const token = "Authorization: Bearer right-token\r\n"
	for request, want := range map[string]int{
		"GET /metrics HTTP/1.0\r\n" + token + "\r\n":                                                                403, // no Host
		"GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n":                          403,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n" + token + "\r\n":                       400,
		"GET /metrics HTTP/1.1\r\nHost: localhost.\r\n" + token + "\r\n":                                            403,
		"GET /metrics HTTP/1.1\r\nHost: 2130706433\r\n" + token + "\r\n":                                            403,
		"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n" + token + "\r\n":                                             403,
		"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                             401,
		"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                          401,
		"GET /metrics/ HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                         401,
		"GET //metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n":                                            404,
		"GET /METRICS HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n":                                             404,
		"GET /healthz/../metrics HTTP/1.1\r\nHost: localhost\r\n\r\n":                                               401,
		"GET /%6detrics HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                        401,
		"GET /metrics?access_token=right-token HTTP/1.1\r\nHost: localhost\r\n\r\n":                                 401,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + token + token + "\r\n":                                     401,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer right-token x\r\n\r\n":                   401,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "Origin: http://localhost\r\nOrigin: null\r\n\r\n": 403,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "Origin: \r\n\r\n":                                 403,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "X: " + strings.Repeat("x", 100_000) + "\r\n\r\n":  431,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n":                                             200,
	} {
		require.Equal(t, want, raw(s, request), "%.200q", request)
	}
}
