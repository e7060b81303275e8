// Skills reads what servers answer about skills and their folders (SEP-2640),
// and leaves out what clients may not have. It knows neither connections nor clients;
// what is denied, the caller says. All functions are pure.

package gateway

import (
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// The methods that name a skill or a folder.
const (
	Get       = "skills/get"
	Directory = "resources/directory/read"
)

// IsSkillsMethod reports whether a method names a skill or a folder.
func IsSkillsMethod(method string) bool { return method == Get || method == Directory }

// FilterSkills filters and renames a server's reply to such a request for clients. permits says
// of a URI of the server's whether they may have it.
func FilterSkills(method string, reply jsonrpc.Reply, permits func(uri string) bool) (jsonrpc.Reply, error) {
	if method == Get {
		return reply, registry.CheckSkill(rawjson.Get(reply.Result, "skill"))
	}
	array := rawjson.Get(reply.Result, "resources")
	kept, all := []byte{'['}, true
	for child := range rawjson.Elements(array) {
		uri, _ := rawjson.String(rawjson.Get(child, "uri"))
		if len(uri) > registry.MaxURI || !permits(uri) || !permits(uri+"/SKILL.md") {
			all = false
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, child...)
	}
	if !all {
		reply.Result = rawjson.Splice(reply.Result, rawjson.Replace(reply.Result, array, append(kept, ']')))
		reply.Shape = nil // what it tells of has moved
	}
	return reply, nil
}
