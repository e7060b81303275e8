package meta_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"goblin/meta"
	"goblin/registry"
)

func TestR0_04_ToolsAreNamedAndDescribedExactly(t *testing.T) {
	t.Parallel()
	c := newCaller(t, newExampleCatalog(t), nil)
	want := map[string][2]string{ // required and optional arguments
		"catalog_servers":            {"", "limit offset"},
		"catalog_tools":              {"", "serverId limit offset"},
		"describe_tool":              {"name", ""},
		"search_tools":               {"query", "serverId limit offset"},
		"catalog_prompts":            {"", "serverId limit offset"},
		"describe_prompt":            {"name", ""},
		"search_prompts":             {"query", "serverId limit offset"},
		"catalog_resources":          {"", "serverId mimeType limit offset"},
		"describe_resource":          {"uri", ""},
		"search_resources":           {"query", "mimeType serverId limit offset"},
		"catalog_resource_templates": {"", "serverId limit offset"},
		"catalog_skills":             {"", "serverId limit offset"},
		"search_skills":              {"query", "serverId limit offset"},
		"execute_lua":                {"script", ""},
		"call_tool":                  {"name", "arguments"},
	}
	seen := 0
	for e := range c.r.Load().Server(registry.Local, registry.Tool) {
		seen++
		var d struct {
			Name, Title, Description string
			InputSchema              struct {
				Type                 string
				Properties           map[string]struct{ Type, Description string }
				Required             []string
				AdditionalProperties *bool
			}
			OutputSchema json.RawMessage
			Annotations  map[string]bool
		}
		require.NoError(t, json.Unmarshal(e.JSON(), &d))
		names := strings.Fields(want[d.Name][0] + " " + want[d.Name][1])
		var properties []string
		for name, p := range d.InputSchema.Properties {
			properties = append(properties, name)
			require.NotEmpty(t, p.Description, d.Name+" "+name)
		}
		require.ElementsMatch(t, names, properties, d.Name)
		require.Equal(t, strings.Fields(want[d.Name][0]), append([]string{}, d.InputSchema.Required...), d.Name)
		require.False(t, *d.InputSchema.AdditionalProperties, d.Name)
		require.NotEmpty(t, d.Title, d.Name)
		require.NotEmpty(t, d.Description, d.Name)
		require.Equal(t, d.Name != "execute_lua" && d.Name != "call_tool", d.Annotations["readOnlyHint"], d.Name)
		require.Nil(t, d.OutputSchema, d.Name)
	}
	require.Equal(t, len(want), seen)
	require.ElementsMatch(t, slices.Collect(func(yield func(string) bool) {
		for name := range want {
			if !yield(name) {
				return
			}
		}
	}), meta.Names())
}

func TestAnswersFitTheirSchemas(t *testing.T) {
	t.Parallel()
	c := newCaller(t, newExampleCatalog(t), nil)
	for _, call := range [][2]string{
		{"catalog_servers", `{}`},
		{"catalog_tools", `{"limit":2}`},
		{"describe_tool", `{"name":"files/read_file"}`},
		{"describe_tool", `{"name":"catalog_tools"}`},
		{"search_tools", `{"query":"time"}`},
		{"catalog_prompts", `{}`},
		{"describe_prompt", `{"name":"meet"}`},
		{"search_prompts", `{"query":""}`},
		{"catalog_resources", `{}`},
		{"describe_resource", `{"uri":"file:///logo.png"}`},
		{"describe_resource", `{"uri":"file:///any/thing"}`},
		{"describe_resource", `{"uri":"mcp://files/file:///{+path}"}`},
		{"search_resources", `{"query":"app","mimeType":"text/*"}`},
		{"catalog_resource_templates", `{}`},
	} {
		found, err := c.r.ResolveTool(call[0])
		require.NoError(t, err)
		var d struct{ OutputSchema, InputSchema any }
		require.NotContains(t, string(found.Entry.JSON()), "outputSchema")
		require.NoError(t, json.Unmarshal(c.call("describe_tool", `{"name":"`+call[0]+`"}`).Structured, &d))
		a := c.call(call[0], call[1])
		require.False(t, a.IsError, "%v: %v", call, a.Content)
		require.JSONEq(t, string(a.Structured), a.Content[0].Text, "the text is the same")
		for name, check := range map[string]struct {
			schema any
			value  string
		}{"in": {d.InputSchema, call[1]}, "out": {d.OutputSchema, string(a.Structured)}} {
			compiler := jsonschema.NewCompiler()
			require.NoError(t, compiler.AddResource("mem:"+name, check.schema))
			schema, err := compiler.Compile("mem:" + name)
			require.NoError(t, err)
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(check.value))
			require.NoError(t, err)
			require.NoError(t, schema.Validate(value), "%v %s", call, check.value)
		}
	}
}

func TestWrongArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	c := newCaller(t, newExampleCatalog(t), nil)
	for _, wrong := range [][3]string{
		{"catalog_tools", `{"server":"files"}`, `INVALID_ARGUMENTS: unknown argument "server"; known: serverId, limit, offset`},
		{"catalog_tools", `{"serverId":7}`, `INVALID_ARGUMENTS: argument "serverId" must be a string, not 7`},
		{"catalog_tools", `{"limit":0}`, `INVALID_ARGUMENTS: argument "limit" must be an integer from 1 to 1000, not 0`},
		{"catalog_tools", `{"limit":1001}`, `INVALID_ARGUMENTS: argument "limit" must be an integer from 1 to 1000, not 1001`},
		{"catalog_tools", `{"limit":1.5}`, `INVALID_ARGUMENTS: argument "limit" must be an integer from 1 to 1000, not 1.5`},
		{"catalog_tools", `{"offset":-1}`, `INVALID_ARGUMENTS: argument "offset" must be an integer from 0 to 1073741824, not -1`},
		{"catalog_tools", `{"limit":1,"limit":2}`, `INVALID_ARGUMENTS: argument "limit" is given more than once`},
		{"search_tools", `{}`, `INVALID_ARGUMENTS: argument "query" is missing: Keywords as used by tools: verb, object, service, synonyms; empty for all`},
		{"search_tools", `{"query":null}`, `INVALID_ARGUMENTS: argument "query" must be a string, not null`},
		{"search_tools", `{"query":"` + strings.Repeat("a", 1025) + `"}`, `INVALID_ARGUMENTS: argument "query" has 1025 bytes; the limit is 1024`},
		{"catalog_resources", `{"mimeType":"[a"}`, `INVALID_ARGUMENTS: argument "mimeType": bad MIME type pattern: "[a"`},
		{"describe_resource", `{"uri":{}}`, `INVALID_ARGUMENTS: argument "uri" must be a string, not {}`},
	} {
		require.Equal(t, wrong[2], c.failed(wrong[0], wrong[1]), "%v", wrong)
	}
	require.Len(t, c.field("catalog_prompts", `{"serverId":null,"limit":null}`, "prompts", "name"), 1, "null means missing")
}

func TestR3_30_CatalogOfResourcesIsFiltered(t *testing.T) {
	t.Parallel()
	c := newCaller(t, newExampleCatalog(t), nil)
	log, conf, logo := "mcp://files/file:///logs/app.log", "mcp://files/file:///config/app.json", "mcp://files/file:///logo.png"
	for args, want := range map[string][]string{
		`{}`:                             {"mcp://data-server/db://users/42", conf, logo, log},
		`{"serverId":"data-server"}`:     {"mcp://data-server/db://users/42"},
		`{"serverId":"nobody"}`:          nil,
		`{"mimeType":"text/plain"}`:      {log},
		`{"mimeType":"TEXT/*"}`:          {log},
		`{"mimeType":"*/*"}`:             {conf, logo, log},
		`{"mimeType":"application/*"}`:   {conf},
		`{"mimeType":"text"}`:            nil,
		`{"mimeType":"*","offset":1}`:    {logo, log},
		`{"limit":2,"offset":1}`:         {conf, logo},
		`{"offset":4}`:                   nil,
		`{"serverId":"files","limit":1}`: {conf},
	} {
		require.Equal(t, want, c.field("catalog_resources", args, "resources", "uri"), args)
	}
	require.JSONEq(t, `{"resources":[{"uri":"`+log+`","name":"app.log","description":"What the application says",
		"mimeType":"text/plain","size":12,"serverId":"files"}],"total":1}`,
		string(c.call("catalog_resources", `{"mimeType":"text/plain"}`).Structured))
	require.JSONEq(t, `{"resources":[{"uri":"mcp://data-server/db://users/42","name":"user 42","serverId":"data-server"}],"total":4,"nextOffset":1}`,
		string(c.call("catalog_resources", `{"limit":1}`).Structured), "missing members are omitted")
}

func TestPagesOfACatalogJoinToTheWhole(t *testing.T) {
	t.Parallel()
	c := newCaller(t, newExampleCatalog(t), nil)
	whole := c.field("catalog_tools", `{}`, "tools", "name")
	require.Len(t, whole, 4+len(meta.Names()))
	var joined []string
	for next := 0; next < len(whole); next += 3 {
		joined = append(joined, c.field("catalog_tools", fmt.Sprintf(`{"limit":3,"offset":%d}`, next), "tools", "name")...)
	}
	require.Equal(t, whole, joined)
}

func TestR3_31_DescribeTellsAllOrWhatIsNear(t *testing.T) {
	t.Parallel()
	c := newCaller(t, newExampleCatalog(t), nil)
	want := `{"uri":"mcp://files/file:///logs/app.log","name":"app.log","description":"What the application says","mimeType":"text/plain","size":12,
		"serverId":"files","originalUri":"file:///logs/app.log","flatId":"files_file_logs_app.log"}`
	for _, spelling := range []string{
		"mcp://files/file:///logs/app.log", "files_file_logs_app.log", "files_file___logs_app.log", "file:///logs/app.log",
	} {
		require.JSONEq(t, want, string(c.call("describe_resource", `{"uri":"`+spelling+`"}`).Structured), spelling)
	}
	require.Equal(t, "RESOURCE_NOT_FOUND: Resource not found: mcp://data-server/db://users/43; did you mean mcp://data-server/db://users/42?",
		c.failed("describe_resource", `{"uri":"mcp://data-server/db://users/43"}`))
	require.Equal(t, "RESOURCE_NOT_FOUND: Server 'nobody' not found: mcp://nobody/x:1; use search_resources to find an existing one",
		c.failed("describe_resource", `{"uri":"mcp://nobody/x:1"}`))
	require.Contains(t, c.failed("describe_tool", `{"name":"files_reed_file"}`), `TOOL_NOT_FOUND: unknown tool "files_reed_file"; did you mean "files_read_file"`)
	require.Equal(t, `PROMPT_NOT_FOUND: unknown prompt "zzz"; use search_prompts to find an existing one`, c.failed("describe_prompt", `{"name":"zzz"}`))
	require.JSONEq(t, `{"name":"clock/meet","title":"Find a meeting time","description":"Looks for an hour that suits two places.",
		"arguments":[{"name":"here","required":true}],"serverId":"clock","originalName":"meet"}`,
		string(c.call("describe_prompt", `{"name":"clock_meet"}`).Structured))
}

func TestR3_31_WhatIsNearIsFoundAnywhereInALongList(t *testing.T) {
	t.Parallel()
	r := newExampleCatalog(t)
	items := make([][]byte, 20000)
	for i := range items {
		items[i] = fmt.Appendf(nil, `{"uri":"db://item/%05d","name":"item %d"}`, i, i)
	}
	require.Empty(t, r.SetList("data-server", registry.Resource, items))
	c := newCaller(t, r, nil)
	for _, item := range []string{"00000", "07321", "19999"} {
		require.Contains(t, c.failed("describe_resource", `{"uri":"mcp://data-server/db://itm/`+item+`"}`),
			"did you mean mcp://data-server/db://item/"+item)
	}
}

func TestExpansionsAndTemplatesAreDescribedToo(t *testing.T) {
	t.Parallel()
	c := newCaller(t, newExampleCatalog(t), nil)
	require.JSONEq(t, `{"uri":"mcp://files/file:///a/b","uriTemplate":"mcp://files/file:///{+path}","name":"any file",
		"description":"Every file there is","serverId":"files","originalUri":"file:///a/b"}`,
		string(c.call("describe_resource", `{"uri":"mcp://files/file:///a/b"}`).Structured))
	require.JSONEq(t, `{"uriTemplate":"mcp://files/file:///{+path}","name":"any file","description":"Every file there is",
		"serverId":"files","originalUri":"file:///{+path}"}`,
		string(c.call("describe_resource", `{"uri":"mcp://files/file:///{+path}"}`).Structured))
}

func TestNamesThatFitSeveralAreAmbiguous(t *testing.T) {
	t.Parallel()
	r := newExampleCatalog(t)
	r.SetList("clock", registry.Resource, [][]byte{[]byte(`{"uri":"db://users/42","name":"mine"}`)})
	c := newCaller(t, r, nil)
	require.Contains(t, c.failed("describe_resource", `{"uri":"db://users/42"}`), "AMBIGUOUS")
}

func TestR3_32_SearchesAreRankedAndFiltered(t *testing.T) {
	t.Parallel()
	c := newCaller(t, newExampleCatalog(t), nil)
	log, conf := "mcp://files/file:///logs/app.log", "mcp://files/file:///config/app.json"
	require.ElementsMatch(t, []string{log, conf}, c.field("search_resources", `{"query":"app"}`, "resources", "uri"))
	require.Equal(t, []string{conf}, c.field("search_resources", `{"query":"app","mimeType":"application/*"}`, "resources", "uri"))
	require.Empty(t, c.field("search_resources", `{"query":"app","serverId":"clock"}`, "resources", "uri"))
	require.Equal(t, log, c.field("search_resources", `{"query":"aplog"}`, "resources", "uri")[0])
	require.Len(t, c.field("search_resources", `{"query":""}`, "resources", "uri"), 4)
	require.Equal(t, "clock_time_in", c.field("search_tools", `{"query":"what time is it"}`, "tools", "name")[0])
	require.Equal(t, []string{"clock/meet"}, c.field("search_prompts", `{"query":"meeting"}`, "prompts", "name"))
}

func TestR3_33_CatalogOfTemplates(t *testing.T) {
	t.Parallel()
	c := newCaller(t, newExampleCatalog(t), nil)
	for args, want := range map[string]string{
		`{}`:                     `{"templates":[{"uriTemplate":"mcp://files/file:///{+path}","name":"any file","description":"Every file there is","serverId":"files"}],"total":1}`,
		`{"serverId":"files"}`:   `{"templates":[{"uriTemplate":"mcp://files/file:///{+path}","name":"any file","description":"Every file there is","serverId":"files"}],"total":1}`,
		`{"serverId":"clock"}`:   `{"templates":[],"total":0}`,
		`{"serverId":"nothing"}`: `{"templates":[],"total":0}`,
	} {
		require.JSONEq(t, want, string(c.call("catalog_resource_templates", args).Structured), args)
	}
}

func TestScriptsDoNotFindToolsThatTheyCannotCall(t *testing.T) {
	t.Parallel()
	c := newCaller(t, newExampleCatalog(t), nil)
	require.NotEmpty(t, c.field("search_tools", `{"query":"goblin lua script"}`, "tools", "name"))
	found := c.call("execute_lua", `{"script":"return search('goblin lua script', {kind = 'tool'})"}`)
	require.False(t, found.IsError, found.Content[0].Text)
	require.NotContains(t, found.Content[0].Text, "execute_lua")
	two := c.call("execute_lua", `{"script":"return #search('file', {limit = 2})"}`)
	require.Equal(t, "2", two.Content[0].Text)
}

func TestSearchesThatFindNothingGoodSaySo(t *testing.T) {
	t.Parallel()
	c := newCaller(t, newExampleCatalog(t), nil)
	for args, want := range map[string]struct {
		weak    bool
		servers []string
	}{
		`{"query": "read file"}`: {},
		`{"query": "time"}`:      {},
		`{"query": "databse"}`:   {},
		`{"query": ""}`:          {},
		`{"query": "xylophone"}`: {weak: true},
		`{"query": "zone tune xylophone accordion viola trombone cello harp flute oboe"}`:                     {weak: true, servers: []string{"clock"}},
		`{"query": "zone tune xylophone accordion viola trombone cello harp flute oboe","serverId": "clock"}`: {weak: true},
		`{"query": "xylophone", "offset": 5}`:                                                                 {weak: true},
	} {
		var found struct {
			Weak    bool
			Advice  string
			Servers []string
		}
		require.NoError(t, json.Unmarshal(c.call("search_tools", args).Structured, &found), args)
		require.Equal(t, want.weak, found.Weak, args)
		require.Equal(t, want.servers, found.Servers, args)
		switch {
		case want.servers != nil:
			require.Equal(t, "No good match. Try other keywords, or list the tools of one of these servers with catalog_tools.", found.Advice)
		case want.weak:
			require.Equal(t, "No good match. Try other keywords.", found.Advice)
		default:
			require.Empty(t, found.Advice)
		}
	}
	require.NotContains(t, string(c.call("search_prompts", `{"query": "xylophone"}`).Structured), "weak", "measured for tools only")
}

func TestToolsThatAwaitApprovalAreMarked(t *testing.T) {
	t.Parallel()
	r := newExampleCatalog(t)
	c := newCaller(t, r, nil)
	r.SetUnapproved("files", []registry.UnapprovedTool{{Server: "files", Name: "read_file"}, {Server: "files", Name: "delete_file", New: true}})
	type tool struct{ Name, AwaitsApproval string }
	for _, call := range [][2]string{{"catalog_tools", `{"serverId":"files"}`}, {"search_tools", `{"query":"file","serverId":"files"}`}} {
		var got struct{ Tools []tool }
		require.NoError(t, json.Unmarshal(c.call(call[0], call[1]).Structured, &got))
		require.ElementsMatch(t, []tool{{"files_read_file", "changed"}, {"files_delete_file", "new"}}, got.Tools, call[0])
	}
	var one tool
	require.NoError(t, json.Unmarshal(c.call("describe_tool", `{"name":"files_read_file"}`).Structured, &one))
	require.Equal(t, "changed", one.AwaitsApproval)
	one = tool{}
	require.NoError(t, json.Unmarshal(c.call("describe_tool", `{"name":"clock_time_in"}`).Structured, &one))
	require.Empty(t, one.AwaitsApproval)
}
