package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const limit = 15 * time.Second

type spec struct {
	Revision  string
	Transport struct {
		URL     string
		Command string
		Args    []string
		Env     map[string]string
	}
	Tool, Prompt, URI string // in front of the names
}

// client performs the steps in one session.
type client struct {
	spec
	*mcp.ClientSession

	mu       sync.Mutex
	asked    map[string]string
	updated  []string
	changed  int
	progress [][]any
	log      [][]any
	news     chan struct{} // capacity one: something above has changed
}

func runClient(ctx context.Context, file string) error {
	c := &client{asked: map[string]string{}, news: make(chan struct{}, 1)}
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &c.spec); err != nil {
		return err
	}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "matrix", Version: "1.0.0"}, c.options())
	sdk.AddRoots(&mcp.Root{URI: "file:///matrix/root", Name: "root"})
	c.ClientSession, err = sdk.Connect(ctx, c.transport(), &mcp.ClientSessionOptions{ProtocolVersion: c.Revision})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if v := c.InitializeResult().ProtocolVersion; v != c.Revision {
		return fmt.Errorf("negotiated %s, not %s", v, c.Revision)
	}
	c.steps(ctx)
	if err := c.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	fmt.Fprintln(os.Stdout, `{"step":"end"}`)
	return nil
}

func (c *client) transport() mcp.Transport {
	if c.Transport.URL != "" {
		return &mcp.StreamableClientTransport{Endpoint: c.Transport.URL}
	}
	cmd := exec.Command(c.Transport.Command, c.Transport.Args...)
	cmd.Stderr = os.Stderr
	for k, v := range c.Transport.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return &mcp.CommandTransport{Command: cmd}
}

// note records a change and wakes the waiters.
func (c *client) note(change func()) {
	c.mu.Lock()
	change()
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
	}
}

func (c *client) until(what string, cond func() bool) error {
	return c.untilWithin(limit, what, cond)
}

func (c *client) untilWithin(limit time.Duration, what string, cond func() bool) error {
	end := time.After(limit)
	for {
		c.mu.Lock()
		ok := cond()
		c.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-c.news:
		case <-end:
			return fmt.Errorf("waited %v for %s", limit, what)
		}
	}
}

func (c *client) options() *mcp.ClientOptions {
	o := &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			question, _ := req.Params.Messages[0].Content.(*mcp.TextContent)
			c.note(func() { c.asked["sampling"] = question.Text })
			return &mcp.CreateMessageResult{Role: "assistant", Model: "none", Content: &mcp.TextContent{Text: "4"}}, nil
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			c.note(func() { c.updated = append(c.updated, req.Params.URI) })
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.note(func() { c.changed++ }) },
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			p := req.Params
			c.note(func() { c.progress = append(c.progress, []any{p.ProgressToken, p.Progress, p.Total, p.Message}) })
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
			c.note(func() { c.log = append(c.log, []any{req.Params.Level, req.Params.Data}) })
		},
	}
	if c.Revision >= "2025-06-18" { // introduced elicitation
		o.ElicitationHandler = func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			c.note(func() { c.asked["elicitation"] = req.Params.Message })
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		}
	}
	return o
}

type saw = map[string]any

func (c *client) steps(ctx context.Context) {
	for _, s := range []struct {
		name string
		do   func(context.Context) (saw, error)
	}{
		{"list", c.list},
		{"read", c.read},
		{"call", c.calls},
		{"subscribe/updated", c.subscribed},
		{"list_changed", c.listChanged},
		{"progress", c.progressed},
		{"cancel", c.cancels},
		{"log", c.logged},
		{"completion", c.completes},
		{"sampling", c.question("sample", "sampling")},
		{"elicitation", c.question("elicit", "elicitation")},
		{"roots", c.question("roots", "")},
		{"several questions", c.question("both", "")},
		{"other requests that ask", c.askedOtherwise},
		{"era", c.question("era", "")},
	} {
		ctx, cancel := context.WithTimeout(ctx, limit)
		got, err := s.do(ctx)
		cancel()
		line := saw{"step": s.name, "saw": got}
		if err != nil {
			var wire *jsonrpc.Error
			line = saw{"step": s.name, "error": saw{"code": 0, "message": err.Error()}}
			if errors.As(err, &wire) {
				line["error"] = saw{"code": wire.Code, "message": wire.Message}
			}
		}
		enc := json.NewEncoder(os.Stdout)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(line); err != nil {
			panic(err)
		}
	}
}

func (c *client) call(ctx context.Context, params *mcp.CallToolParams) (string, error) {
	params.Name = c.Tool + params.Name
	if params.Arguments == nil {
		params.Arguments = saw{}
	}
	res, err := c.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, part := range res.Content {
		if t, ok := part.(*mcp.TextContent); ok {
			lines = append(lines, t.Text)
		}
	}
	said := strings.Join(lines, "\n")
	if res.IsError {
		said += " (an error)"
	}
	return said, nil
}

func (c *client) list(ctx context.Context) (saw, error) {
	var tools, prompts, resources, templates []string
	for t, err := range c.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		tools = append(tools, t.Name)
	}
	for p, err := range c.Prompts(ctx, nil) {
		if err != nil {
			return nil, err
		}
		prompts = append(prompts, p.Name)
	}
	for r, err := range c.Resources(ctx, nil) {
		if err != nil {
			return nil, err
		}
		resources = append(resources, r.URI)
	}
	for t, err := range c.ResourceTemplates(ctx, nil) {
		if err != nil {
			return nil, err
		}
		templates = append(templates, t.URITemplate)
	}
	for _, l := range [][]string{tools, prompts, resources, templates} {
		slices.Sort(l)
	}
	return saw{"tools": tools, "prompts": prompts, "resources": resources, "templates": templates}, nil
}

func (c *client) read(ctx context.Context) (saw, error) {
	contents := [][]string{}
	for _, u := range []string{"matrix://text", "matrix://item/7"} {
		res, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: c.URI + u})
		if err != nil {
			return nil, err
		}
		for _, part := range res.Contents {
			contents = append(contents, []string{part.URI, part.Text})
		}
	}
	return saw{"contents": contents}, nil
}

func (c *client) calls(ctx context.Context) (saw, error) {
	got, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: c.Prompt + "greet", Arguments: map[string]string{"name": "Ada"}})
	if err != nil {
		return nil, err
	}
	hello, _ := got.Messages[0].Content.(*mcp.TextContent)
	said, err := c.call(ctx, &mcp.CallToolParams{Name: "echo", Arguments: saw{"text": "grüße <&>"}})
	return saw{"text": said, "prompt": hello.Text}, err
}

func (c *client) subscribed(ctx context.Context) (saw, error) {
	if err := c.Subscribe(ctx, &mcp.SubscribeParams{URI: c.URI + "matrix://watched"}); err != nil {
		return nil, err
	}
	// In the stateless revision the SDK doesn't report the acknowledgement, so the first
	// updates may arrive too early.
	for try := 1; ; try++ {
		if _, err := c.call(ctx, &mcp.CallToolParams{Name: "touch"}); err != nil {
			return nil, err
		}
		err := c.untilWithin(5*time.Second, "resources/updated", func() bool { return len(c.updated) > 0 })
		if err == nil {
			return saw{"updated": c.updated[0]}, nil
		}
		if c.Revision < stateless || try == 3 {
			return nil, err
		}
	}
}

func (c *client) listChanged(ctx context.Context) (saw, error) {
	c.note(func() { c.changed = 0 })
	if _, err := c.call(ctx, &mcp.CallToolParams{Name: "change"}); err != nil {
		return nil, err
	}
	for n := 1; ; n++ { // the first may belong to an earlier change
		if err := c.until("tools/list_changed", func() bool { return c.changed >= n }); err != nil {
			return nil, err
		}
		all, err := c.list(ctx)
		if err != nil {
			return nil, err
		}
		if tools, _ := all["tools"].([]string); slices.Contains(tools, c.Tool+"added") {
			return saw{"added": true}, nil
		}
	}
}

func (c *client) progressed(ctx context.Context) (saw, error) {
	params := &mcp.CallToolParams{Name: "progress", Meta: mcp.Meta{"progressToken": "p"}}
	said, err := c.call(ctx, params)
	if err != nil {
		return nil, err
	}
	err = c.until("three notifications/progress", func() bool { return len(c.progress) >= 3 })
	return saw{"text": said, "progress": c.progress}, err
}

func (c *client) cancels(ctx context.Context) (saw, error) {
	c.note(func() { c.progress = nil })
	stoppable, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan string, 1)
	go func() {
		_, err := c.call(stoppable, &mcp.CallToolParams{Name: "wait", Meta: mcp.Meta{"progressToken": "w"}})
		if errors.Is(err, context.Canceled) {
			ended <- "given up"
			return
		}
		ended <- fmt.Sprint("answered ", err)
	}()
	if err := c.until("notifications/progress", func() bool { return len(c.progress) > 0 }); err != nil {
		return nil, err
	}
	stop()
	how := <-ended
	said, err := c.call(ctx, &mcp.CallToolParams{Name: "cancelled"})
	return saw{"call": how, "server": said}, err
}

func (c *client) logged(ctx context.Context) (saw, error) {
	params := &mcp.CallToolParams{Name: "log"}
	if c.Revision >= stateless {
		params.Meta = mcp.Meta{mcp.MetaKeyLogLevel: "info"}
	} else if err := c.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		return nil, err
	}
	said, err := c.call(ctx, params)
	if err != nil {
		return nil, err
	}
	err = c.until("notifications/message", func() bool { return len(c.log) > 0 })
	return saw{"text": said, "log": c.log}, err
}

func (c *client) completes(ctx context.Context) (saw, error) {
	got := saw{}
	for name, params := range map[string]*mcp.CompleteParams{
		"prompt": {
			Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: c.Prompt + "greet"},
			Argument: mcp.CompleteParamsArgument{Name: "name", Value: "A"},
		},
		"template": {
			Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: c.URI + "matrix://item/{id}"},
			Argument: mcp.CompleteParamsArgument{Name: "id", Value: "1"},
		},
	} {
		res, err := c.Complete(ctx, params)
		if err != nil {
			return nil, err
		}
		got[name] = res.Completion.Values
	}
	return got, nil
}

// question returns the step that calls a tool with a request to the client.
func (c *client) question(tool, kind string) func(context.Context) (saw, error) {
	return func(ctx context.Context) (saw, error) {
		said, err := c.call(ctx, &mcp.CallToolParams{Name: tool})
		if err != nil {
			return nil, err
		}
		got := saw{"text": said}
		if kind != "" {
			c.mu.Lock()
			defer c.mu.Unlock()
			got["asked"] = nil
			if a, ok := c.asked[kind]; ok {
				got["asked"] = a
			}
		}
		return got, nil
	}
}

func (c *client) askedOtherwise(ctx context.Context) (saw, error) {
	prompt, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: c.Prompt + "ask"})
	if err != nil {
		return nil, err
	}
	hello, _ := prompt.Messages[0].Content.(*mcp.TextContent)
	read, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: c.URI + "matrix://asking"})
	if err != nil {
		return nil, err
	}
	return saw{"prompt": hello.Text, "read": read.Contents[0].Text}, nil
}
