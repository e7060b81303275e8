package e2e

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// raw sends bytes and gives the status of the first answer.
func (s *web) raw(text string) int {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	require.NoError(s.t, err)
	defer conn.Close()
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = conn.Write([]byte(text))
	require.NoError(s.t, err)
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(s.t, err, text)
	_ = got.Body.Close()
	return got.StatusCode
}

func TestH01_H05_OddRequestsMeetTheSameGuards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["auth_token"] = "right-token"
	s := w.serve()
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
		require.Equal(t, want, s.raw(request), "%.200q", request)
	}
}
