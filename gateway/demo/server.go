package demo

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

type (
	toolHandler     = func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error)
	promptHandler   = func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error)
	resourceHandler = func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error)
)

type server struct {
	p           *peer
	hello       mcp.InitializeResult
	completions completer
	pageSize    int // entries per page; 0 is one page

	tools     collection[mcp.Tool, toolHandler]
	prompts   collection[mcp.Prompt, promptHandler]
	resources collection[mcp.Resource, resourceHandler]
	templates collection[mcp.ResourceTemplate, resourceHandler]
}

// failure is an error with a code. Other errors are internal errors.
type failure struct {
	code    int
	message string
	data    any
}

func (f *failure) Error() string { return f.message }

func errNoResource(uri string) error {
	return &failure{mcp.RESOURCE_NOT_FOUND, fmt.Sprintf("there is no %s here: resource not found", uri), map[string]any{"uri": uri}}
}

type collection[T mcp.Named, H any] struct {
	mu      sync.Mutex
	entries map[string]entry[T, H]
}

type entry[T mcp.Named, H any] struct {
	item    T
	handler H
}

func (s *collection[T, H]) put(key string, item T, answer H) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		s.entries = map[string]entry[T, H]{}
	}
	s.entries[key] = entry[T, H]{item, answer}
}

func (s *collection[T, H]) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, key)
}

func (s *collection[T, H]) find(key string) (answer H, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	return e.handler, ok
}

// list returns the page after cursor, ordered by name, and the next cursor. A cursor is
// the last name of a page, so names must be unique.
func (s *collection[T, H]) list(cursor mcp.Cursor, pageSize int) ([]T, mcp.PaginatedResult, error) {
	after, err := base64.StdEncoding.DecodeString(string(cursor))
	if err != nil {
		return nil, mcp.PaginatedResult{}, &failure{code: mcp.INVALID_PARAMS, message: err.Error()}
	}
	items := []T{}
	s.mu.Lock()
	for _, e := range s.entries {
		if cursor == "" || e.item.GetName() > string(after) {
			items = append(items, e.item)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(items, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	var page mcp.PaginatedResult
	if pageSize > 0 && len(items) > pageSize {
		items = items[:pageSize]
		page.NextCursor = mcp.Cursor(base64.StdEncoding.EncodeToString([]byte(items[pageSize-1].GetName())))
	}
	return items, page, nil
}

// method answers a request, which is the whole message.
type method func(ctx context.Context, s *server, name string, request []byte) (any, error)

func handler[Req, Res any](answer func(*server, context.Context, Req) (Res, error)) method {
	return func(ctx context.Context, s *server, name string, request []byte) (any, error) {
		var req Req
		if err := json.Unmarshal(request, &req); err != nil {
			return nil, &failure{code: mcp.INVALID_REQUEST, message: fmt.Sprintf("unparsable %s request: %v", name, err)}
		}
		return answer(s, ctx, req)
	}
}

var methods = map[string]method{
	"initialize":               handler((*server).initialize),
	"ping":                     handler((*server).ping),
	"logging/setLevel":         handler((*server).setLevel),
	"tools/list":               handler((*server).listTools),
	"tools/call":               handler((*server).callTool),
	"prompts/list":             handler((*server).listPrompts),
	"prompts/get":              handler((*server).getPrompt),
	"resources/list":           handler((*server).listResources),
	"resources/templates/list": handler((*server).listTemplates),
	"resources/read":           handler((*server).readResource),
	"resources/subscribe":      handler((*server).subscribe),
	"resources/unsubscribe":    handler((*server).unsubscribe),
	"completion/complete":      handler((*server).complete),
}

func (s *server) answer(ctx context.Context, name string, request []byte) (any, error) {
	answer, ok := methods[name]
	if !ok {
		return nil, &failure{code: mcp.METHOD_NOT_FOUND, message: fmt.Sprintf("Method %s not found", name)}
	}
	return answer(ctx, s, name, request)
}

func (s *server) initialize(_ context.Context, req mcp.InitializeRequest) (mcp.InitializeResult, error) {
	s.p.initialized.Store(true)
	hello := s.hello
	hello.ProtocolVersion = mcp.NegotiateLegacyVersion(req.Params.ProtocolVersion)
	return hello, nil
}

func (s *server) ping(context.Context, mcp.PingRequest) (mcp.EmptyResult, error) {
	return mcp.EmptyResult{}, nil
}

func (s *server) setLevel(_ context.Context, req mcp.SetLevelRequest) (mcp.EmptyResult, error) {
	if !s.p.initialized.Load() {
		return mcp.EmptyResult{}, errors.New("session not properly initialized")
	}
	// Emergency passes every valid level.
	if !mcp.LoggingLevelEmergency.ShouldSendTo(req.Params.Level) {
		return mcp.EmptyResult{}, &failure{code: mcp.INVALID_PARAMS, message: fmt.Sprintf("invalid logging level '%s'", req.Params.Level)}
	}
	s.p.setLevel(req.Params.Level)
	return mcp.EmptyResult{}, nil
}

func (s *server) listTools(_ context.Context, req mcp.ListToolsRequest) (mcp.ListToolsResult, error) {
	items, page, err := s.tools.list(req.Params.Cursor, s.pageSize)
	return mcp.ListToolsResult{PaginatedResult: page, Tools: items}, err
}

func (s *server) callTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	call, ok := s.tools.find(req.Params.Name)
	if !ok {
		return nil, &failure{code: mcp.INVALID_PARAMS, message: fmt.Sprintf("tool '%s' not found: tool not found", req.Params.Name)}
	}
	return call(ctx, req)
}

func (s *server) listPrompts(_ context.Context, req mcp.ListPromptsRequest) (mcp.ListPromptsResult, error) {
	items, page, err := s.prompts.list(req.Params.Cursor, s.pageSize)
	return mcp.ListPromptsResult{PaginatedResult: page, Prompts: items}, err
}

func (s *server) getPrompt(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	get, ok := s.prompts.find(req.Params.Name)
	if !ok {
		return nil, &failure{code: mcp.INVALID_PARAMS, message: fmt.Sprintf("prompt '%s' not found: prompt not found", req.Params.Name)}
	}
	return get(ctx, req)
}

func (s *server) listResources(_ context.Context, req mcp.ListResourcesRequest) (mcp.ListResourcesResult, error) {
	items, page, err := s.resources.list(req.Params.Cursor, s.pageSize)
	return mcp.ListResourcesResult{PaginatedResult: page, Resources: items}, err
}

func (s *server) listTemplates(_ context.Context, req mcp.ListResourceTemplatesRequest) (mcp.ListResourceTemplatesResult, error) {
	items, page, err := s.templates.list(req.Params.Cursor, s.pageSize)
	return mcp.ListResourceTemplatesResult{PaginatedResult: page, ResourceTemplates: items}, err
}

func (s *server) readResource(ctx context.Context, req mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	read, ok := s.resources.find(uri)
	if !ok {
		read = func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return nil, errNoResource(uri)
		}
		templates, _, _ := s.templates.list("", 0)
		for _, t := range templates {
			if t.URITemplate.Regexp().MatchString(uri) {
				read, _ = s.templates.find(t.URITemplate.Raw())
			}
		}
	}
	contents, err := read(ctx, req)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: contents}, nil
}

func (s *server) subscribe(_ context.Context, req mcp.SubscribeRequest) (mcp.EmptyResult, error) {
	if req.Params.URI == "" {
		return mcp.EmptyResult{}, errNoURI
	}
	return mcp.EmptyResult{}, s.p.subscribe(req.Params.URI)
}

func (s *server) unsubscribe(_ context.Context, req mcp.UnsubscribeRequest) (mcp.EmptyResult, error) {
	if req.Params.URI == "" {
		return mcp.EmptyResult{}, errNoURI
	}
	s.p.unsubscribe(req.Params.URI)
	return mcp.EmptyResult{}, nil
}

var errNoURI = &failure{code: mcp.INVALID_PARAMS, message: "uri is required"}

func (s *server) complete(_ context.Context, req mcp.CompleteRequest) (mcp.CompleteResult, error) {
	about := ""
	switch ref := req.Params.Ref.(type) {
	case mcp.PromptReference:
		about = ref.Name
	case mcp.ResourceReference:
		about = ref.URI
	}
	return mcp.CompleteResult{Completion: s.completions.find(about, req.Params.Argument, req.Params.Context)}, nil
}
