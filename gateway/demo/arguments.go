package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// checker holds arguments of tool calls against the schemas of the tools.
// mcp-go's own check words its complaints as Go values, and people read these.
type checker struct {
	srv *server.MCPServer

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema // by tool, made at its first call
}

// middleware refuses calls whose arguments do not fit.
func (c *checker) middleware(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		complaint, err := c.check(req.Params.Name, req.Params.Arguments)
		switch {
		case err != nil:
			return nil, err
		case complaint != "":
			return mcp.NewToolResultError("the arguments do not fit: " + complaint), nil
		}
		return next(ctx, req)
	}
}

func (c *checker) check(tool string, arguments any) (complaint string, err error) {
	schema, err := c.schema(tool)
	if err != nil {
		return "", fmt.Errorf("schema of tool %q: %w", tool, err)
	}
	if arguments == nil {
		arguments = map[string]any{}
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return "", fmt.Errorf("arguments of tool %q: %w", tool, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return "", fmt.Errorf("arguments of tool %q: %w", tool, err)
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(value); errors.As(err, &invalid) {
		list := complaints(invalid, nil)
		slices.Sort(list) // the validator goes through members in no order
		return strings.Join(list, "; "), nil
	} else if err != nil {
		return "", err
	}
	return "", nil
}

func (c *checker) schema(tool string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[tool]; s != nil {
		return s, nil
	}
	t := c.srv.GetTool(tool)
	if t == nil {
		return nil, errors.New("there is no such tool")
	}
	text, err := json.Marshal(t.Tool.InputSchema)
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	const name = "mem:///arguments.json" // never looked up
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	s, err := compiler.Compile(name)
	if err != nil {
		return nil, err
	}
	c.schemas[tool] = s
	return s, nil
}

// complaints appends the leaves of a validation error, in words.
func complaints(e *jsonschema.ValidationError, list []string) []string {
	for _, cause := range e.Causes {
		list = complaints(cause, list)
	}
	if len(e.Causes) > 0 {
		return list
	}
	at := strings.Join(e.InstanceLocation, ".")
	if required, ok := e.ErrorKind.(*kind.Required); ok {
		names := make([]string, len(required.Missing))
		for i, name := range required.Missing {
			names[i] = strconv.Quote(name)
		}
		where := ""
		if at != "" {
			where = fmt.Sprintf(" in %q", at)
		}
		return append(list, "missing "+strings.Join(names, ", ")+where)
	}
	// The text is `at '/path': reason`; the path is told in our own way.
	_, reason, found := strings.Cut(e.Error(), "': ")
	if !found {
		reason = e.Error()
	}
	if at != "" {
		reason = fmt.Sprintf("%q: %s", at, reason)
	}
	return append(list, reason)
}
