package downstream_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"goblin/gateway/downstream"
)

func BenchmarkStreamRoundTrip(b *testing.B) {
	c := dial(b, downstream.Options{Handler: newScript()}, transports["socket"])
	line := request("1", "echo", `{"a":"`+strings.Repeat("x", 100)+`"}`) + "\n"
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.WriteString(c.conn, line); err != nil {
			b.Fatal(err)
		}
		if _, err := c.in.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStreamPipelined(b *testing.B) {
	const window = 64
	c := dial(b, downstream.Options{Handler: newScript()}, transports["socket"])
	room := make(chan struct{}, window)
	go func() {
		for i := range b.N {
			room <- struct{}{}
			if _, err := io.WriteString(c.conn, request(number(i), "echo", `{"a":"x"}`)+"\n"); err != nil {
				return
			}
		}
	}()
	b.ReportAllocs()
	for range b.N {
		if _, err := c.in.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
		<-room
	}
}

// BenchmarkHTTPRoundTrip compares the endpoint with a bare handler of net/http.
func BenchmarkHTTPRoundTrip(b *testing.B) {
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	})
	for _, path := range []string{"/bare", "/mcp"} {
		b.Run(path[1:], func(b *testing.B) {
			c := newSite(b, downstream.HTTPOptions{AuthHandlers: map[string]http.Handler{"/bare": bare}})
			id := c.open()
			b.ReportAllocs()
			for b.Loop() {
				res, err := c.try(b.Context(), "POST "+path, id, request("1", "echo", ""))
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
}
