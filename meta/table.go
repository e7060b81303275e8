package meta

import (
	"strings"

	"goblin/registry"
)

// Schemas of the tools' answers.
const (
	stringSchema  = `{"type":"string"}`
	integerSchema = `{"type":"integer"}`
	serverSchema  = `{"type":"object","properties":{"serverId":{"type":"string"},"state":{"type":"string"},"title":{"type":"string"},` +
		`"version":{"type":"string"},"description":{"type":"string"},"tools":{"type":"integer"},"prompts":{"type":"integer"},` +
		`"resources":{"type":"integer"},"resourceTemplates":{"type":"integer"},"skills":{"type":"integer"},"stale":{"type":"boolean"},"error":{"type":"string"}},` +
		`"required":["serverId","state","tools","prompts","resources","resourceTemplates"]}`
	nameSchema     = `"name":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},"serverId":{"type":"string"},"score":{"type":"number"}`
	namedSchema    = `{"type":"object","properties":{` + nameSchema + `},"required":["name","serverId"]}`
	toolSchema     = `{"type":"object","properties":{` + nameSchema + `,` + approvalSchema + `},"required":["name","serverId"]}`
	approvalSchema = `"awaitsApproval":{"enum":["new","changed"],"description":"The user has not approved this definition: it is new or changed"}`
	resourceSchema = `{"type":"object","properties":{"uri":{"type":"string"},` + nameSchema +
		`,"mimeType":{"type":"string"},"size":{"type":"integer"}},"required":["uri","serverId"]}`
	templateSchema = `{"type":"object","properties":{"uriTemplate":{"type":"string"},` + nameSchema +
		`,"mimeType":{"type":"string"}},"required":["uriTemplate","serverId"]}`
	skillSchema = `{"type":"object","properties":{"uri":{"type":"string"},` + nameSchema + `,` + approvalSchema + `},"required":["uri","serverId"]}`
	entrySchema = `{"type":"object","properties":{"name":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},` +
		`"serverId":{"type":"string"},"originalName":{"type":"string"},` + approvalSchema + `},"required":["name","serverId","originalName"]}`
	describedSchema = `{"type":"object","properties":{"uri":{"type":"string"},"uriTemplate":{"type":"string"},"name":{"type":"string"},` +
		`"title":{"type":"string"},"description":{"type":"string"},"mimeType":{"type":"string"},"size":{"type":"integer"},` +
		`"serverId":{"type":"string"},"originalUri":{"type":"string"},"flatId":{"type":"string"}},"required":["serverId","originalUri"]}`
)

var foundSchema = strings.TrimSuffix(listSchema("tools", toolSchema), `},"required":["tools","total"]}`) +
	`,"weak":{"type":"boolean","description":"There is no good match"},"advice":` + stringSchema + `,"servers":{"type":"array","items":` + stringSchema +
	`}},"required":["tools","total"]}`

func listSchema(member, of string) string {
	return `{"type":"object","properties":{"` + member + `":{"type":"array","items":` + of + `},"total":` + integerSchema +
		`,"nextOffset":` + integerSchema + `,"pending":{"type":"array","items":` + stringSchema + `}},"required":["` + member + `","total"]}`
}

var (
	name = param{name: "name", description: "The listed name, server/name, or the plain name if only one server has it", required: true, maximum: maxName}
	uri  = param{name: "uri", description: "The listed URI or template, an expansion of a template, a flat id, or the server's own URI if only one server has it", required: true, maximum: maxName}
)

var allTools = []tool{
	{
		name: "catalog_servers", title: "List servers",
		description: "Lists the MCP servers behind this one: purpose, state, and the number of tools, prompts and resources.",
		params:      []param{limit(defaultCatalogCards), offset},
		output:      listSchema("servers", serverSchema), call: (*Tools).catalogServers,
	},
	{
		name: "catalog_tools", title: "List tools",
		description: "Lists the tools of all servers, or of one, as short cards. Use describe_tool for arguments, and search_tools to find a tool by what it does.",
		params:      []param{serverID, limit(defaultCatalogCards), offset},
		output:      listSchema("tools", toolSchema), call: catalog(registry.Tool, "tools"),
	},
	{
		name: "describe_tool", title: "Describe a tool",
		description: "Returns the full definition of a tool: description, arguments, annotations, server.",
		params:      []param{name},
		output:      entrySchema, call: describe((*registry.Snapshot).ResolveTool),
	},
	{
		name: "search_tools", title: "Search tools",
		description: "Finds tools by keywords, best first. Use keywords such as \"create issue github ticket\", not sentences. Typos and beginnings of words match, too. An empty query lists all.",
		params:      []param{query, serverID, limit(defaultSearchCards), offset},
		output:      foundSchema, call: find(registry.Tool, "tools"),
	},
	{
		name: "catalog_prompts", title: "List prompts",
		description: "Lists the prompts of all servers, or of one, as short cards. Use describe_prompt for arguments.",
		params:      []param{serverID, limit(defaultCatalogCards), offset},
		output:      listSchema("prompts", namedSchema), call: catalog(registry.Prompt, "prompts"),
	},
	{
		name: "describe_prompt", title: "Describe a prompt",
		description: "Returns the full definition of a prompt: description, arguments, server.",
		params:      []param{name},
		output:      entrySchema, call: describe((*registry.Snapshot).ResolvePrompt),
	},
	{
		name: "search_prompts", title: "Search prompts",
		description: "Finds prompts by their purpose, best first. An empty query lists all.",
		params:      []param{query, serverID, limit(defaultSearchCards), offset},
		output:      listSchema("prompts", namedSchema), call: find(registry.Prompt, "prompts"),
	},
	{
		name: "catalog_resources", title: "List resources",
		description: "Lists the resources of all servers, or of one server or MIME type, as short cards.",
		params:      []param{serverID, mimeType, limit(defaultCatalogCards), offset},
		output:      listSchema("resources", resourceSchema), call: catalog(registry.Resource, "resources"),
	},
	{
		name: "describe_resource", title: "Describe a resource",
		description: "Returns everything known about a resource or resource template: metadata, server, the server's own URI, flat id.",
		params:      []param{uri},
		output:      describedSchema, call: (*Tools).describeResource,
	},
	{
		name: "search_resources", title: "Search resources",
		description: "Finds resources by name, description and URI, best first. An empty query lists all.",
		params:      []param{query, mimeType, serverID, limit(defaultSearchCards), offset},
		output:      listSchema("resources", resourceSchema), call: find(registry.Resource, "resources"),
	},
	{
		name: "catalog_resource_templates", title: "List resource templates",
		description: "Lists the URI templates of all servers, or of one. Fill in the variables to get a URI to read.",
		params:      []param{serverID, limit(defaultCatalogCards), offset},
		output:      listSchema("templates", templateSchema), call: catalog(registry.Template, "templates"),
	},
	{
		name: "call_tool", title: "Call a tool",
		description:   "Calls a tool found by search_tools, even if it is not listed, and returns its result. Use describe_tool for its arguments.",
		params:        []param{name, {name: "arguments", description: "The tool's arguments, as required by its inputSchema", object: true}},
		makesRequests: true, forwardsCall: true,
	},
	{
		name: "execute_lua", title: "Run a Lua script",
		description: luaDescription,
		params:      []param{script},
		call:        (*Tools).executeLua, makesRequests: true,
	},
	{
		name: "catalog_skills", title: "List skills",
		description: "Lists the skills of all servers, or of one, as short cards. Read a skill's URI and follow its instructions.",
		params:      []param{serverID, limit(defaultCatalogCards), offset},
		output:      listSchema("skills", skillSchema), call: catalog(registry.Skill, "skills"),
	},
	{
		name: "search_skills", title: "Search skills",
		description: "Finds skills, which are instructions for a kind of task, by their purpose, best first. An empty query lists all.",
		params:      []param{query, serverID, limit(defaultSearchCards), offset},
		output:      listSchema("skills", skillSchema), call: find(registry.Skill, "skills"),
	},
}
