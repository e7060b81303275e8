package form_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/tui/form"
)

var kinds = [...]string{"text", "number", "integer", "bool", "enum", "several", "list", "json", "object", "array", "choice"}

// describeField returns a field as one line.
func describeField(f form.Field) string {
	var b strings.Builder
	b.WriteString(f.Name)
	if f.Required {
		b.WriteByte('*')
	}
	b.WriteString(" " + kinds[f.Kind])
	if f.Kind == form.List {
		b.WriteString(" of " + kinds[f.Item])
	}
	for _, o := range f.Options {
		fmt.Fprintf(&b, " %s=%s", o.Label, o.Value)
	}
	if f.Title != "" {
		fmt.Fprintf(&b, " title %q", f.Title)
	}
	if f.Description != "" {
		fmt.Fprintf(&b, " says %q", f.Description)
	}
	if f.Format != "" {
		b.WriteString(" format " + f.Format)
	}
	if f.Pattern != "" {
		b.WriteString(" pattern " + f.Pattern)
	}
	if f.Min != nil {
		fmt.Fprintf(&b, " min %g", *f.Min)
	}
	if f.Max != nil {
		fmt.Fprintf(&b, " max %g", *f.Max)
	}
	if f.MinLen != nil {
		fmt.Fprintf(&b, " from %d", *f.MinLen)
	}
	if f.MaxLen != nil {
		fmt.Fprintf(&b, " to %d", *f.MaxLen)
	}
	if len(f.Default) > 0 {
		fmt.Fprintf(&b, " default %s", f.Default)
	}
	return b.String()
}

// describeMembers returns fields and their members as lines, three levels deep.
func describeMembers(fields []form.Field, depth int) []string {
	var lines []string
	for _, f := range fields {
		inner := f.Members()
		if f.Kind == form.Array {
			inner[0].Name = "0"
		}
		if f.Kind == form.Choice {
			f.Options = nil
		}
		lines = append(lines, strings.Repeat("  ", depth)+describeField(f))
		if depth < 2 {
			lines = append(lines, describeMembers(inner, depth+1)...)
		}
	}
	return lines
}

func describeFields(fields []form.Field) string {
	return strings.Join(describeMembers(fields, 0), "\n")
}

// issueSchema is a generated tool schema with definitions, and with optional values as
// anyOf with null.
const issueSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "CreateIssueArguments",
  "type": "object",
  "$defs": {
    "Priority": {"enum": ["low", "normal", "urgent"], "title": "Priority", "type": "string"},
    "Label": {"type": "string", "enum": ["bug", "docs", "question"]},
    "Assignee": {"type": "object", "properties": {"login": {"type": "string"}, "notify": {"type": "boolean"}}, "required": ["login"]},
    "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
  },
  "properties": {
    "title": {"type": "string", "minLength": 3, "maxLength": 80, "description": "One line"},
    "body": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "title": "Body"},
    "priority": {"$ref": "#/$defs/Priority", "default": "normal"},
    "labels": {"type": "array", "items": {"$ref": "#/$defs/Label"}, "maxItems": 2},
    "estimate": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}], "default": null},
    "assignees": {"type": "array", "items": {"$ref": "#/$defs/Assignee"}},
    "watchers": {"type": "array", "items": {"type": "string", "format": "email"}},
    "parent": {"$ref": "#/$defs/Node"},
    "notify": {"allOf": [{"type": "boolean"}], "default": true},
    "milestone": {"type": ["integer", "null"], "minimum": 1}
  },
  "required": ["title", "labels"],
  "additionalProperties": false
}`

func TestFieldsOfSchemas(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, schema, want string }{
		{"a typed model with definitions and nulls", issueSchema, `title* text says "One line" from 3 to 80
body text title "Body"
priority enum low="low" normal="normal" urgent="urgent" title "Priority" default "normal"
labels* several bug="bug" docs="docs" question="question" to 2
estimate number min 0
assignees array
  0 object
    login* text
    notify bool
watchers list of text format email
parent object
  next object
    next object
notify bool default true
milestone integer min 1`},
		{
			"properties keep the order of the text", `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"},"m":{"type":"string"}}}`,
			"z text\na text\nm text",
		},
		{"no properties", `{"type":"object"}`, ""},
		{"no type", `{"properties":{"a":{"type":"integer"}}}`, "a integer"},
		{
			"titles of alternatives", `{"properties":{"c":{"oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"},{"const":3}]}}}`,
			`c enum Red="r" Green="g" 3=3`,
		},
		{
			"titles of alternatives in an array, or null", `{"properties":{"c":{"type":"array","minItems":1,"items":{"anyOf":[{"const":"r","title":"Red"},{"type":"null"},{"const":"g"}]}}}}`,
			`c several Red="r" g="g" from 1`,
		},
		{"enumNames", `{"properties":{"c":{"type":"string","enum":["r","g"],"enumNames":["Red"]}}}`, `c enum Red="r" g="g"`},
		{"an enum of other values", `{"properties":{"c":{"enum":[1,null,"",{"a": 1}]}}}`, `c enum 1=1 null=null ""="" {"a":1}={"a":1}`},
		{"const", `{"properties":{"c":{"const":"x"}}}`, `c enum x="x"`},
		{
			"types that are no one thing", `{"properties":{"a":{},"b":true,"c":{"type":["string","integer"]},"d":{"type":"object"},"e":{"type":"array"},"f":{"type":"array","items":{"type":"array"}},"g":{"type":"money"},"h":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`,
			"a json\nb json\nc choice\n  text* text title \"text\"\n  integer* integer title \"integer\"\nd json\ne json\nf json\ng json\nh choice\n  text* text title \"text\"\n  integer* integer title \"integer\"",
		},
		{"the root is a reference", `{"$ref":"#/definitions/Args","definitions":{"Args":{"type":"object","required":["q"],"properties":{"q":{"type":"string"}}}}}`, "q* text"},
		{"escaped pointers", `{"$defs":{"a/b":{"x~y":{"type":"integer"}}},"properties":{"q":{"$ref":"#/$defs/a~1b/x~0y"},"r":{"$ref":"#/$defs/a%7E1b/x~0y"}}}`, "q integer\nr integer"},
		{
			"circles, other documents and nowhere", `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"a":{"$ref":"#/$defs/a"},"b":{"$ref":"https://host.invalid/s.json"},"c":{"$ref":"#/$defs/none"},"d":{"type":"array","items":{"$ref":"#/$defs/none"}}}}`,
			"a json\nb json\nc json\nd json",
		},
		{
			"annotations that make no sense", `{"type":"object","required":"q","properties":{"q":{"type":"string","title":5,"description":["x"],"minLength":"3","maxLength":-1,"format":7,"pattern":{},"default":{}},"n":{"type":"number","minimum":"0","maximum":1e99999}}}`,
			"q text default {}\nn number",
		},
		{"a repeated property counts once", `{"properties":{"a":{"type":"string"},"b":{"type":"string"},"a":{"type":"integer"}}}`, "a integer\nb text"},
		{
			"objects in objects, and arrays of them", `{"required":["o"],"properties":{"o":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"l":{"type":"array","minItems":1,"items":{"type":"object","properties":{"x":{"type":"string","format":"date"}}}}}},"p":{"properties":{"q":{"type":"array","items":{"type":"array","items":{"type":"number"}}}}}}}`,
			"o* object\n  n* integer\n  l array from 1\n    0 object\np object\n  q array\n    0 list of number",
		},
		{
			"alternatives that differ in a member", `{"properties":{"s":{"oneOf":[{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},{"type":"object","properties":{"kind":{"const":"square"},"a":{"type":"number"}}}],"default":null}}}`,
			"s choice\n  circle* object title \"circle\"\n    kind* enum circle=\"circle\"\n    r* number\n  square* object title \"square\"\n    kind* enum square=\"square\"\n    a number",
		},
		{
			"alternatives by reference, type and format, and null", `{"$defs":{"Point":{"type":"object","properties":{"x":{"type":"number"}}}},"properties":{"s":{"anyOf":[{"$ref":"#/$defs/Point"},{"type":"string","format":"uri"},{"type":"array","items":{"type":"string"}},{"type":"null"}]}}}`,
			"s choice\n  Point* object title \"Point\"\n    x number\n  uri* text title \"uri\" format uri\n  list* list of text title \"list\"\n  null* enum null=null title \"null\"",
		},
		{
			"an object with alternatives for some members", `{"required":["name","by"],"properties":{"name":{"type":"string"},"by":{"enum":["id","path"]}},"oneOf":[{"properties":{"by":{"const":"id"},"id":{"type":"integer"}},"required":["id"]},{"properties":{"by":{"const":"path"},"path":{"type":"string"},"name":{"minLength":1}}}]}`,
			"name* text\n choice title \"variant\"\n  id* object title \"id\"\n    by* enum id=\"id\"\n    id* integer\n  path* object title \"path\"\n    by* enum path=\"path\"\n    path text",
		},
		{"alternatives that are no kinds", `{"properties":{"a":{"type":"object","anyOf":[{"required":["x"]},{"required":["y"]}]},"b":{"oneOf":[true,{"type":"string"}]},"c":{"anyOf":[{},{"minimum":3}]}}}`, "a json\nb json\nc json"},
		{"properties is no object", `{"properties":[1]}`, ""},
		{"nothing", ``, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fields, err := form.FromSchema(json.RawMessage(tt.schema))
			require.NoError(t, err)
			require.Equal(t, tt.want, describeFields(fields))
		})
	}
}

func TestAnOutlineTellsWhatFieldsTake(t *testing.T) {
	t.Parallel()
	tell := func(schema json.RawMessage) string {
		fields, err := form.FromSchema(schema)
		require.NoError(t, err)
		var lines []string
		for _, l := range form.Outline(fields) {
			lines = append(lines, l.Name+" = "+l.Text)
		}
		return strings.Join(lines, "\n")
	}
	require.Equal(t, `title = required, text, 3 to 80 characters: One line
body = text: Body
priority = one of low | normal | urgent, default normal: Priority
labels = required, any of bug | docs | question, at most 2 items
estimate = number, at least 0
assignees = list of object
  login = required, text
  notify = yes or no
watchers = list of email
parent = object
  next = object
    next = object
notify = yes or no, default true
milestone = integer, at least 1`, tell(issueJSON))
	require.Contains(t, tell(orderJSON), "pay = card | invoice\n  card = object\n    kind = required, always card")
	require.Contains(t, tell(orderJSON), "\n  day = required, date")
	var properties []string
	for i := range 500 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"enum":[%s1]}`, i, strings.Repeat("1,", 40)))
	}
	text := tell(objectSchema(`"properties":{` + strings.Join(properties, ",") + `}`))
	require.Contains(t, text, "and 29 more")
	require.True(t, strings.HasSuffix(text, "\n… = more; see the definition"))
	require.Less(t, strings.Count(text, "\n"), 130)
}

func TestWhatIsNoSchemaOfAnObjectFails(t *testing.T) {
	t.Parallel()
	for _, s := range []string{`true`, `[]`, `"x"`, `null`, `{"type":"string"}`, `{"type":["array","null"]}`, `{`} {
		_, err := form.FromSchema(json.RawMessage(s))
		require.Error(t, err, s)
	}
}

func TestASchemaBesideItsFieldReadsByItself(t *testing.T) {
	t.Parallel()
	fields, err := form.FromSchema(issueJSON)
	require.NoError(t, err)
	require.Equal(t, `{"type":"array","items":{"type":"object","properties":{"login":{"type":"string"},"notify":{"type":"boolean"}},"required":["login"]}}`,
		string(fields[5].Schema))
	require.Equal(t, `{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"}}}`, string(fields[7].Schema), "recursion is limited")
	require.Less(t, depthOf(fields[7]), 12, "also of fields within themselves")
	whole := string(form.ResolveRefs(objectSchema(`"properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}`)))
	require.Equal(t, `{"type":"object","properties":{"a":{"type":"integer"}}}`, whole, "without unused definitions")
	require.Contains(t, string(form.ResolveRefs(issueJSON)), `"$defs"`, "except recursive ones")
	// Each definition refers twice to the next one; expanding all would give 2^40.
	fields, err = form.FromSchema(json.RawMessage(strings.Replace(nestedAnyOf(40), `"minProperties":1`, `"properties":{"a":{"$ref":"#/$defs/d0"}}`, 1)))
	require.NoError(t, err)
	require.Less(t, len(fields[0].Schema), 1<<20)
}

// depthOf returns the nesting depth of a field's first members.
func depthOf(f form.Field) (n int) {
	for inner := []form.Field{f}; len(inner) > 0 && n < 100; n++ {
		inner = inner[0].Members()
	}
	return n
}

func TestSchemasAreBounded(t *testing.T) {
	t.Parallel()
	var properties, options []string
	for i := range 2 * form.MaxOptions {
		properties = append(properties, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
		options = append(options, fmt.Sprint(i))
	}
	fields, err := form.FromSchema(json.RawMessage(`{"properties":{` + strings.Join(properties, ",") + `}}`))
	require.NoError(t, err)
	require.Len(t, fields, form.MaxFields)
	fields, err = form.FromSchema(json.RawMessage(`{"properties":{"a":{"enum":[` + strings.Join(options, ",") + `]}}}`))
	require.NoError(t, err)
	require.Len(t, fields[0].Options, form.MaxOptions)
}

func TestFieldsOfPromptsAndTemplates(t *testing.T) {
	t.Parallel()
	require.Equal(t, "code* text title \"Code\" says \"What to review\"\nstyle text",
		describeFields(form.FromPrompt(json.RawMessage(`{"name":"review","arguments":[
			{"name":"code","title":"Code","description":"What to review","required":true},
			{"name":"style","required":"yes"},{"name":"code"},{"title":"nameless"},7]}`))))
	require.Empty(t, form.FromPrompt(json.RawMessage(`{"arguments":{}}`)))
	require.Empty(t, form.FromPrompt(nil))
	fields := form.FromTemplate([]string{"owner", "repo"})
	require.Equal(t, "owner text\nrepo text", describeFields(fields))
	require.True(t, fields[0].Completes)
}
