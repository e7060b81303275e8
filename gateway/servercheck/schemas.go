package servercheck

import (
	"strings"

	"goblin/gateway/doctor"
	"goblin/registry/rawjson"
	"goblin/registry/repair"
)

// checkSchemas checks the schemas of a tool after the repairs, which are reported apart.
func (c *checker) checkSchemas(subject string, def []byte) {
	nested := false
	for _, f := range doctor.SchemaFaults(def) {
		nested = nested || f.Nested
		rule := "schema/model"
		switch {
		case f.Required:
			rule = "schema/required"
		case f.Broken:
			rule = "schema/invalid"
		}
		c.add(rule, subject, "%s", f.Text)
	}
	if nested {
		return // compiling it could take long
	}
	for _, name := range []string{"inputSchema", "outputSchema"} {
		schema := rawjson.Get(def, name)
		if schema == nil || !rawjson.IsObject(schema) {
			continue
		}
		p := repair.FindSchemaProblem(schema)
		if p == nil || p.Unsure {
			continue
		}
		ref, _ := rawjson.String(p.Value)
		switch {
		case p.Keyword == "$ref" && strings.HasPrefix(ref, "#"):
			c.add("schema/reference", subject, "%s%s: the schema has no %s", name, clip(p.Path), clip(ref))
		case p.Keyword == "$ref":
			c.add("schema/reference", subject, "%s%s: %s is another document", name, clip(p.Path), clip(ref))
		default:
			c.add("schema/invalid", subject, "%s%s is not valid: %s", name, clip(p.Path), clip(string(p.Value)))
		}
	}
}
