package clientconfig

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// amazonQPlaces returns the files of Amazon Q Developer. Its editors write default.json,
// and its command line has one file per agent. Both read mcp.json unless useLegacyMcpJson
// is false.
func amazonQPlaces(m *Machine) []place {
	legacy := at(amazonQ, home(".aws/amazonq/mcp.json"))(m)
	editors := at(amazonQ, home(".aws/amazonq/default.json"), home(".aws/amazonq/agents/default.json"))(m)
	var agents []place
	if len(legacy) > 0 {
		folder := filepath.Join(filepath.Dir(legacy[0].path), "cli-agents")
		files, _ := os.ReadDir(folder) // most users have none
		for _, file := range files[:min(len(files), maxServers)] {
			if filepath.Ext(file.Name()) == ".json" {
				agents = append(agents, place{path: filepath.Join(folder, file.Name()), dialect: amazonQ, only: true})
			}
		}
	}
	isSet, on := false, false
	for _, p := range slices.Concat(editors, agents) {
		if flag, ok := usesLegacy(p); ok {
			isSet, on = true, on || flag
		}
	}
	if !isSet || on {
		if !slices.ContainsFunc(editors, func(p place) bool { _, err := os.Lstat(p.path); return err == nil }) {
			return slices.Concat(legacy, editors, agents)
		}
		return slices.Concat(editors, legacy, agents)
	}
	for i := range agents {
		agents[i].only = false
	}
	for i := range legacy {
		legacy[i].unread, legacy[i].only = "Amazon Q ignores because useLegacyMcpJson is false", true
	}
	return slices.Concat(editors, agents, legacy)
}

// usesLegacy returns useLegacyMcpJson of a file. ok is false if the file does not set it.
func usesLegacy(p place) (on, ok bool) {
	text, err := readFile(p.path)
	if err != nil {
		return false, false
	}
	doc, err := decode(inJSON, text)
	if err != nil {
		return false, false
	}
	on, ok = doc["useLegacyMcpJson"].(bool)
	return on, ok
}

// amazonQTools returns a note if the agent in a file excludes Goblin's tools, or "".
func amazonQTools(doc map[string]any) string {
	list, ok := doc["tools"].([]any)
	named := func(v any) bool {
		name, _ := v.(string)
		return name == "*" || strings.HasPrefix(name, "@"+EntryName)
	}
	if !ok || slices.ContainsFunc(list, named) {
		return ""
	}
	return `the agent offers only the tools in "tools" of that file; add "@` + EntryName + `"`
}
