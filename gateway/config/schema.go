package config

import "encoding/json"

//go:generate go test -run "^Test(SchemaFile|KeyReference)IsCurrent$" . -update

// Schema returns a JSON Schema (draft 2020-12) of the file for editors, from the parser's
// table. Checks that need more than a pattern, such as for URLs, are missing.
func Schema() []byte {
	def := defaults()
	s := tableSchema(topKeys(), &def)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Goblin configuration"
	s["not"] = object{"required": []string{"servers", "mcpServers"}}
	server := defaultServer()
	entry := tableSchema(serverKeys(), &server)
	entry["type"] = "object"
	entry["oneOf"] = []any{
		object{"required": []string{"command"}, "properties": excludeKeys("url")},
		object{"required": []string{"url"}, "properties": excludeKeys("command")},
	}
	s["$defs"] = object{"server": entry}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("config: schema: " + err.Error()) // impossible: only maps, strings and numbers
	}
	return append(text, '\n')
}

func serversSchema([]Server) object {
	return object{"type": []string{"object", "null"}, "additionalProperties": object{"$ref": "#/$defs/server"}}
}

func excludeKeys(sort string) object {
	keys := object{sort: false}
	for _, k := range transportKeys[sort] {
		keys[k] = false
	}
	if sort == "command" {
		keys["type"] = object{"not": object{"const": Stdio}}
	} else {
		keys["type"] = object{"anyOf": []any{object{"const": Stdio}, object{"pattern": reference}}}
	}
	return keys
}

func rootSchema(def Root) object {
	s := tableSchema(rootKeys(), &def)
	s["type"], s["required"] = "object", []string{"uri"}
	return s
}
