package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"
)

const stateless = "2026-07-28"

// server is the matrix's server. It sends requests to its client if the revision has
// them; otherwise it answers that it needs input.
type server struct {
	*mcp.Server

	once      sync.Once
	cancelled chan struct{} // closed when a call of wait was cancelled
}

func newServer(eras string) *server {
	s := &server{cancelled: make(chan struct{})}
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
	perRequest := mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, // a closed stream cancels
	})
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
	s.tool("era", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.ProtocolVersion() >= stateless {
			return text("modern"), nil
		}
		return text("legacy"), nil
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
		case <-time.After(10 * time.Second):
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

var (
	sampling = &mcp.CreateMessageParams{
		MaxTokens: 9, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "2+2?"}}},
	}
	elicitation = &mcp.ElicitParams{Message: "Your name?", RequestedSchema: &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}}, Required: []string{"name"},
	}}
	roots = &mcp.ListRootsParams{}
)

// asked contains the parts of a request that decide how to ask.
type asked struct {
	revision string
	session  *mcp.ServerSession
	answers  mcp.InputResponseMap
}

// ask returns the answers to questions, or false if the result must ask the client.
func ask(ctx context.Context, a asked, questions mcp.InputRequestMap) (mcp.InputResponseMap, bool, error) {
	if a.revision >= stateless {
		return a.answers, len(a.answers) == len(questions), nil
	}
	answers := mcp.InputResponseMap{}
	var mu sync.Mutex
	all, ctx := errgroup.WithContext(ctx)
	for name, question := range questions {
		all.Go(func() (err error) {
			var answer mcp.InputResponse
			switch q := question.(type) {
			case *mcp.CreateMessageParams:
				answer, err = a.session.CreateMessage(ctx, q)
			case *mcp.ElicitParams:
				answer, err = a.session.Elicit(ctx, q)
			case *mcp.ListRootsParams:
				answer, err = a.session.ListRoots(ctx, q)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[name] = answer
			return err
		})
	}
	return answers, true, all.Wait()
}

// tell returns an answer as text.
func tell(answer mcp.InputResponse) string {
	var words []string
	switch a := answer.(type) {
	case *mcp.CreateMessageResult:
		return tell(&mcp.CreateMessageWithToolsResult{Content: []mcp.Content{a.Content}})
	case *mcp.CreateMessageWithToolsResult:
		for _, c := range a.Content {
			if c, ok := c.(*mcp.TextContent); ok {
				words = append(words, c.Text)
			}
		}
	case *mcp.ElicitResult:
		words = append(words, a.Action)
		if name, ok := a.Content["name"].(string); ok {
			words = append(words, name)
		}
	case *mcp.ListRootsResult:
		for _, r := range a.Roots {
			words = append(words, r.URI)
		}
	}
	return strings.Join(words, " ")
}

func (s *server) addQuestions() {
	s.asks("sample", "model: ", "", mcp.InputRequestMap{"question": sampling})
	s.asks("elicit", "", "", mcp.InputRequestMap{"question": elicitation})
	s.asks("roots", "", "", mcp.InputRequestMap{"question": roots})
	s.asks("both", "", "asked both", mcp.InputRequestMap{"one": roots, "two": sampling})
	question := mcp.InputRequestMap{"question": roots}
	s.AddPrompt(&mcp.Prompt{Name: "ask"}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		answers, ok, err := ask(ctx, asked{req.ProtocolVersion(), req.Session, req.Params.InputResponses}, question)
		if err != nil {
			return nil, err
		}
		if !ok {
			return &mcp.GetPromptResult{InputRequests: question}, nil
		}
		hello := &mcp.TextContent{Text: "Hello, " + tell(answers["question"])}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: hello}}}, nil
	})
	s.AddResource(&mcp.Resource{Name: "asking", URI: "matrix://asking"}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		answers, ok, err := ask(ctx, asked{req.ProtocolVersion(), req.Session, req.Params.InputResponses}, question)
		if err != nil {
			return nil, err
		}
		if !ok {
			return &mcp.ReadResourceResult{InputRequests: question}, nil
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "read for " + tell(answers["question"])}}}, nil
	})
}

// asks adds a tool that asks questions and returns the answers. The client must return
// state with them.
func (s *server) asks(name, before, state string, questions mcp.InputRequestMap) {
	s.tool(name, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answers, ok, err := ask(ctx, asked{req.ProtocolVersion(), req.Session, req.Params.InputResponses}, questions)
		if err != nil {
			return nil, err
		}
		if !ok || req.ProtocolVersion() >= stateless && req.Params.RequestState != state {
			return &mcp.CallToolResult{InputRequests: questions, RequestState: state}, nil
		}
		var words []string
		for _, name := range slices.Sorted(maps.Keys(questions)) {
			words = append(words, tell(answers[name]))
		}
		return text(before + strings.Join(words, " ")), nil
	})
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
