//go:build e2e

package transparency

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// odd draws JSON texts that change if a program decodes and encodes them. They contain
// numbers beyond every type, escapes, lone surrogates, members of similar names, and
// space between tokens. Objects that Goblin reads have no members that readers interpret
// differently: readers_test.go tests those.
type odd struct{ *rapid.T }

// drawn draws a text that a failure reports as one value.
func drawn(t *rapid.T, label string, draw func(odd) string) string {
	return rapid.Custom(func(t *rapid.T) string { return draw(odd{t}) }).Draw(t, label)
}

func (o odd) upTo(n int) int { return rapid.IntRange(0, n).Draw(o.T, "n") }

func (o odd) of(choices ...string) string { return rapid.SampledFrom(choices).Draw(o.T, "of") }

func (o odd) space() string { return o.of("", "", "", " ", "\t", "  ") }

// text is a JSON string.
func (o odd) text() string {
	var b strings.Builder
	b.WriteByte('"')
	for range o.upTo(4) {
		b.WriteString(o.of("a", "Z9_", " ", "<", ">&", `\u003c`, `\"`, `\\`, `\/`, "/", `\u0000`, `\n\t`, "é", `\u00E9`, "日本",
			"😀", `\ud83d\uDE00`, `\ud800`, `\udc00x`, "\u2028", `\u2029`, "\ufffd", "\x7f", "{", "]", "mcp://b/x", "%20", "1e5"))
	}
	if o.upTo(40) == 40 {
		b.WriteString(strings.Repeat(o.of("x", "ß", `\\`), 1+o.upTo(40000)))
	}
	b.WriteByte('"')
	return b.String()
}

func (o odd) number() string {
	if o.upTo(1) == 0 {
		return fmt.Sprint(rapid.Int64().Draw(o.T, "int"))
	}
	return o.of("0", "-0", "1.0", "1.50", "1e400", "-1E+5", "1e-400", "9007199254740993", "-9007199254740993",
		"18446744073709551616", "123456789012345678901234567890", "0.1000000000000000055511151231257827")
}

// value is any JSON value.
func (o odd) value(depth int) string {
	n := 7
	if depth == 0 {
		n = 4
	}
	switch o.upTo(n) {
	case 0, 1:
		return o.text()
	case 2:
		return o.number()
	case 3:
		return o.of("true", "false", "null")
	case 4:
		return o.of("{}", "[]", "[{}]", `{"":{}}`)
	case 5:
		return o.list(o.values(depth - 1)...)
	case 6:
		deep := 1 + o.upTo(100)
		return strings.Repeat(`[{"a":`, deep) + o.number() + strings.Repeat("}]", deep)
	}
	var members []string
	for range o.upTo(3) { // names may be equal
		name := o.of(`"uri"`, `"URI"`, `"\u0075ri"`, `"type"`, `"_meta"`, `"__proto__"`, `""`, `"progressToken"`, `"resultType"`, o.text())
		members = append(members, name+":"+o.value(depth-1))
	}
	return o.members(members)
}

func (o odd) values(depth int) (all []string) {
	for range o.upTo(3) {
		all = append(all, o.value(depth))
	}
	return all
}

func (o odd) list(items ...string) string { return "[" + o.joined(items) + "]" }

func (o odd) joined(items []string) string {
	return o.space() + strings.Join(items, o.space()+","+o.space()) + o.space()
}

func (o odd) members(members []string) string { return "{" + o.joined(members) + "}" }

// object is an object with these members in any order, and some unknown ones. A member is
// its name, of plain letters, and its value.
func (o odd) object(members ...[2]string) string {
	all := o.named(members)
	names := []string{
		`"vendor"`, `"Vendor"`, `"x.example/Key"`, `""`, `"__proto__"`, `"uri "`, `"日本\ud800"`, `"a\/b"`, `"tYpes"`,
	}
	unknown := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID[string]).Draw(o.T, "unknown")
	for _, name := range unknown {
		all = append(all, name+":"+o.value(2))
	}
	return o.members(rapid.Permutation(all).Draw(o.T, "order"))
}

// only is an object with only these members.
func (o odd) only(members ...[2]string) string { return o.members(o.named(members)) }

func (o odd) named(members [][2]string) (all []string) {
	for _, m := range members {
		if m[1] != "" {
			all = append(all, o.name(m[0])+o.space()+":"+o.space()+m[1])
		}
	}
	return all
}

// name is a member's name, sometimes with an equivalent escape.
func (o odd) name(name string) string {
	if o.upTo(9) == 9 {
		return fmt.Sprintf(`"\u%04x%s"`, name[0], name[1:])
	}
	return `"` + name + `"`
}

// maybe is the value or nothing.
func (o odd) maybe(value func() string) string {
	if o.upTo(1) == 0 {
		return ""
	}
	return value()
}

func (o odd) any() string { return o.value(3) }

// uri is a value for a URI member: it is renamed if it is a string.
func (o odd) uri() string {
	return o.of(`"file:\/\/\/a"`, `"x:1"`, `"x:\u00e9"`, `"https://h.example/ä?b=c&d=%20#<f>"`, `"mcp://b/x:1"`, `"urn:\ud83d\ude00"`,
		`""`, "null", "7", `"`+strings.Repeat("u", 1+o.upTo(3000))+`"`)
}

func (o odd) meta() string {
	return o.maybe(func() string {
		return o.object([2]string{"traceparent", o.maybe(o.text)}, [2]string{"ui", o.maybe(func() string {
			return o.object([2]string{"resourceUri", o.maybe(o.uri)})
		})})
	})
}

// link is a URI where one is required.
func (o odd) link() string {
	if uri := o.uri(); uri[0] == '"' {
		return uri
	}
	return `"x:1"`
}

// annotations are an object without the members that clients check.
func (o odd) annotations() string { return o.object() }

// block is a content block of a shape that clients accept, or of an unknown type. Others
// are repaired.
func (o odd) block() string {
	members := [][2]string{{"annotations", o.maybe(o.annotations)}, {"_meta", o.meta()}}
	switch kind := o.of("text", "image", "audio", "resource_link", "resource", "resource_link", "resource", "video"); kind {
	case "resource":
		members = append(members, [2]string{"type", `"resource"`}, [2]string{"resource", o.contents()})
	case "resource_link":
		members = append(members, [2]string{"type", o.of(`"resource_link"`, `"resource\u005flink"`)}, [2]string{"uri", o.link()},
			[2]string{"name", o.text()}, [2]string{"size", o.size()}, [2]string{"icons", o.maybe(o.icons)})
	case "text":
		members = append(members, [2]string{"type", `"text"`}, [2]string{"text", o.text()}, [2]string{"data", o.maybe(o.any)}, [2]string{"uri", o.maybe(o.uri)})
	case "video":
		return o.object([2]string{"type", `"video"`}, [2]string{"text", o.maybe(o.any)}, [2]string{"annotations", o.maybe(o.any)}, [2]string{"uri", o.maybe(o.uri)})
	default:
		members = append(members, [2]string{"type", `"` + kind + `"`}, [2]string{"data", o.text()}, [2]string{"mimeType", o.text()}, [2]string{"uri", o.maybe(o.uri)})
	}
	return o.object(members...)
}

func (o odd) contents() string {
	text, blob := o.text(), o.maybe(o.text)
	if blob != "" {
		text = o.of("", text)
	}
	return o.object([2]string{"uri", o.link()}, [2]string{"mimeType", o.maybe(o.text)}, [2]string{"text", text}, [2]string{"blob", blob}, [2]string{"_meta", o.meta()})
}

func (o odd) several(one func() string) string {
	var all []string
	for range o.upTo(3) {
		all = append(all, one())
	}
	return o.list(all...)
}

// questions draws the input requests of a result.
func (o odd) questions() string {
	var all [][2]string
	for i := range 1 + o.upTo(2) {
		method := o.of("elicitation/create", "sampling/createMessage", "roots/list")
		all = append(all, [2]string{fmt.Sprintf("key%d", i), o.object([2]string{"method", `"` + method + `"`}, [2]string{"params", o.object(
			[2]string{"message", o.text()}, [2]string{"requestedSchema", o.maybe(o.any)}, [2]string{"messages", o.maybe(o.any)}, [2]string{"_meta", o.meta()})})})
	}
	return o.only(all...)
}

// reply is a method's result or an error, as the member of a response. modern results
// name their type, and may be input requests if asks is true.
func (o odd) reply(method string, modern, asks bool) string {
	if o.upTo(4) == 0 {
		data := o.maybe(func() string {
			return o.of(o.text(), o.list(o.any()), o.object([2]string{"uri", o.uri()}, [2]string{"more", o.any()}))
		})
		return `{"error":` + o.object([2]string{"code", o.of("-32123", "7", "-32603", "-32000", "-32099", "-32602", "9007199254740993")},
			[2]string{"message", o.text()}, [2]string{"data", data}) + "}"
	}
	members := [][2]string{{"_meta", o.meta()}}
	if asks && method != "completion/complete" && o.upTo(4) == 0 {
		return `{"result":` + o.object([2]string{"_meta", o.meta()}, [2]string{"resultType", `"input_required"`},
			[2]string{"inputRequests", o.questions()}, [2]string{"requestState", o.text()}) + "}"
	}
	if modern {
		members = append(members, [2]string{"resultType", `"complete"`}, [2]string{"ttlMs", o.maybe(func() string { return "5" })})
	}
	switch method {
	case "tools/call":
		members = append(members, [2]string{"content", o.several(o.block)}, [2]string{"structuredContent", o.maybe(func() string { return o.object([2]string{"any", o.any()}) })},
			[2]string{"isError", o.of("", "true", "false")})
	case "resources/read":
		members = append(members, [2]string{"contents", o.several(o.contents)})
	case "prompts/get":
		members = append(members, [2]string{"description", o.maybe(o.text)}, [2]string{"messages", o.several(func() string {
			return o.object([2]string{"role", o.of(`"user"`, `"assistant"`)}, [2]string{"content", o.block()})
		})})
	default:
		members = append(members, [2]string{"completion", o.object([2]string{"values", o.several(o.text)},
			[2]string{"total", o.maybe(o.number)}, [2]string{"hasMore", o.of("", "true")})})
	}
	return `{"result":` + o.object(members...) + "}"
}

// icons returns icons that SDKs of clients accept.
func (o odd) icons() string {
	return o.several(func() string {
		return o.object([2]string{"src", o.text()}, [2]string{"sizes", o.of("", "[]", `["any"]`)})
	})
}

// size returns a size that SDKs of clients accept, or "" if there is none.
func (o odd) size() string {
	return o.of("", "0", "-0", "1.0", "-1E+5", "9007199254740993", "123456789012345678901234567890")
}

// definition returns a list's entry with the given name or URI, which SDKs of clients
// accept. Others are repaired.
func (o odd) definition(kind, name string) string {
	annotations := func() string {
		return o.object([2]string{"audience", o.of("", `["user"]`)}, [2]string{"priority", o.of("", "0.10", "1.0", "1e-400")},
			[2]string{"title", o.maybe(o.text)}, [2]string{"readOnlyHint", o.of("", "true", "false")})
	}
	members := [][2]string{
		{"title", o.maybe(o.text)},
		{"description", o.maybe(o.text)},
		{"icons", o.maybe(o.icons)},
		{"annotations", o.maybe(annotations)},
		{"_meta", o.meta()},
	}
	switch kind {
	case "tools":
		schema := func() string {
			return o.object([2]string{"type", `"object"`}, [2]string{"properties", o.maybe(func() string { return o.only([2]string{"ab", o.object()}) })},
				[2]string{"required", o.of("", "[]", `["ab","ab"]`)})
		}
		members = append(members, [2]string{"name", name}, [2]string{"inputSchema", schema()}, [2]string{"outputSchema", o.maybe(schema)})
	case "prompts":
		members = append(members, [2]string{"name", name}, [2]string{"arguments", o.maybe(func() string {
			return o.several(func() string {
				return o.object([2]string{"name", o.text()}, [2]string{"required", o.of("", "true")})
			})
		})})
	case "resources":
		members = append(members, [2]string{"uri", name}, [2]string{"name", o.text()}, [2]string{"size", o.size()},
			[2]string{"mimeType", o.maybe(o.text)})
	case "templates":
		members = append(members, [2]string{"uriTemplate", name}, [2]string{"name", o.text()}, [2]string{"mimeType", o.maybe(o.text)})
	}
	return o.object(members...)
}

// notes draws the server's notifications during a request with a progress token.
func (o odd) notes() string {
	return o.several(func() string {
		method, params := "notifications/vendor/odd", ""
		switch o.upTo(2) {
		case 0:
			method = "notifications/progress"
			params = o.object([2]string{"progressToken", `"$token"`}, [2]string{"progress", o.number()}, [2]string{"total", o.maybe(o.number)},
				[2]string{"message", o.maybe(o.text)}, [2]string{"_meta", o.meta()})
		case 1:
			method = "notifications/message"
			params = o.object([2]string{"level", `"error"`}, [2]string{"logger", o.maybe(o.text)}, [2]string{"data", o.any()}, [2]string{"_meta", o.meta()})
		default:
			params = o.object([2]string{"uri", o.maybe(o.uri)})
		}
		return `{"method":"` + method + `","params":` + params + "}"
	})
}
