package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const stateless = "2026-07-28"

// server is the matrix's server. A legacy one asks its client by requests, as
// programs written for those revisions do; the others answer that they need
// input, which the SDK makes requests of for clients of older revisions.
type server struct {
	*mcp.Server
	legacy bool

	once      sync.Once
	cancelled chan struct{} // closed when a call of wait was cancelled
}

func newServer(eras string) *server {
	s := &server{legacy: eras == "legacy", cancelled: make(chan struct{})}
	accept := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	s.Server = mcp.NewServer(&mcp.Implementation{Name: "matrix", Version: "1.0.0"}, &mcp.ServerOptions{
		SupportedProtocolVersions: slices.DeleteFunc(mcp.SupportedProtocolVersions(), func(v string) bool {
			return eras == "legacy" && v >= stateless || eras == "modern" && v < stateless
		}),
		SubscribeHandler:   accept,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler:  complete,
	})
	s.addTools()
	s.addRest()
	return s
}

func runServer(ctx context.Context, way, eras string) error {
	s := newServer(eras)
	if way == "stdio" {
		return s.Run(ctx, &mcp.StdioTransport{})
	}
	one := func(*http.Request) *mcp.Server { return s.Server }
	sessions := mcp.NewStreamableHTTPHandler(one, nil)
	perRequest := mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{Stateless: true})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "http://%s/mcp\n", ln.Addr())
	return http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if eras == "modern" || eras == "dual" && r.Header.Get("Mcp-Protocol-Version") == stateless {
			perRequest.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	}))
}

type none struct{}

func text(t string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: t}}}
}

// tool adds a tool without arguments.
func (s *server) tool(name string, do func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
	mcp.AddTool(s.Server, &mcp.Tool{Name: name}, func(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		res, err := do(ctx, req)
		return res, nil, err
	})
}

func progress(ctx context.Context, req *mcp.CallToolRequest, n int) error {
	return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: req.Params.GetProgressToken(), Progress: float64(n), Total: 3, Message: fmt.Sprintf("step %d", n),
	})
}

func (s *server) addTools() {
	type words struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s.Server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in words) (*mcp.CallToolResult, any, error) {
		return text("echo: " + in.Text), nil, nil
	})
	s.tool("progress", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for n := range 3 {
			if err := progress(ctx, req, n+1); err != nil {
				return nil, err
			}
		}
		return text("done"), nil
	})
	s.tool("wait", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := progress(ctx, req, 1); err != nil {
			return nil, err
		}
		<-ctx.Done()
		s.once.Do(func() { close(s.cancelled) })
		return nil, ctx.Err()
	})
	s.tool("cancelled", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-s.cancelled:
			return text("cancelled"), nil
		case <-time.After(5 * time.Second):
			return text("not cancelled"), nil
		}
	})
	s.tool("log", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, m := range []mcp.LoggingMessageParams{{Level: "debug", Data: "too fine"}, {Level: "info", Data: "for you"}} {
			if err := req.Session.Log(ctx, &m); err != nil {
				return nil, err
			}
		}
		return text("logged"), nil
	})
	s.tool("touch", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text("touched"), s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "matrix://watched"})
	})
	s.tool("change", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.tool("added", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("added"), nil })
		return text("changed"), nil
	})
	s.addQuestions()
}

func (s *server) addQuestions() {
	s.tool("sample", s.asks(
		&mcp.CreateMessageParams{MaxTokens: 9, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "2+2?"}}}},
		func(answer mcp.InputResponse) string {
			var said []mcp.Content
			switch a := answer.(type) {
			case *mcp.CreateMessageResult:
				said = []mcp.Content{a.Content}
			case *mcp.CreateMessageWithToolsResult:
				said = a.Content
			}
			t := "model:"
			for _, c := range said {
				if c, ok := c.(*mcp.TextContent); ok {
					t += " " + c.Text
				}
			}
			return t
		},
	))
	s.tool("elicit", s.asks(
		&mcp.ElicitParams{Message: "Your name?", RequestedSchema: &jsonschema.Schema{
			Type: "object", Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}}, Required: []string{"name"},
		}},
		func(answer mcp.InputResponse) string {
			a, _ := answer.(*mcp.ElicitResult)
			name, _ := a.Content["name"].(string)
			return strings.TrimSpace(a.Action + " " + name)
		},
	))
	s.tool("roots", s.asks(&mcp.ListRootsParams{}, func(answer mcp.InputResponse) string {
		a, _ := answer.(*mcp.ListRootsResult)
		var uris []string
		for _, r := range a.Roots {
			uris = append(uris, r.URI)
		}
		return strings.Join(uris, " ")
	}))
}

// asks makes a tool that puts a question and tells the answer.
func (s *server) asks(question mcp.InputRequest, tell func(mcp.InputResponse) string) func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, ok := req.Params.InputResponses["question"]
		if !ok && !s.legacy {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"question": question}}, nil
		}
		if s.legacy {
			var err error
			switch q := question.(type) {
			case *mcp.CreateMessageParams:
				answer, err = req.Session.CreateMessage(ctx, q)
			case *mcp.ElicitParams:
				answer, err = req.Session.Elicit(ctx, q)
			case *mcp.ListRootsParams:
				answer, err = req.Session.ListRoots(ctx, q)
			}
			if err != nil {
				return nil, err
			}
		}
		return text(tell(answer)), nil
	}
}

func (s *server) addRest() {
	contents := func(t string) mcp.ResourceHandler {
		return func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			u := req.Params.URI
			if id, ok := strings.CutPrefix(u, "matrix://item/"); ok {
				t = "item " + id
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: u, MIMEType: "text/plain", Text: t}}}, nil
		}
	}
	s.AddResource(&mcp.Resource{Name: "text", URI: "matrix://text"}, contents("the text"))
	s.AddResource(&mcp.Resource{Name: "watched", URI: "matrix://watched"}, contents("watched"))
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "item", URITemplate: "matrix://item/{id}"}, contents(""))
	greet := &mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}}
	s.AddPrompt(greet, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		hello := &mcp.TextContent{Text: "Hello, " + req.Params.Arguments["name"]}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: hello}}}, nil
	})
}

func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	all := []string{"1", "10", "2"}
	if req.Params.Ref.Type == "ref/prompt" {
		all = []string{"Ada", "Alan", "Grace"}
	}
	values := []string{}
	for _, v := range all {
		if strings.HasPrefix(v, req.Params.Argument.Value) {
			values = append(values, v)
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values}}, nil
}
