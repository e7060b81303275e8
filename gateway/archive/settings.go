package archive

import (
	"encoding/json"
	"errors"
	"fmt"

	"goblin/gateway/config"
)

// parseSettings returns the config of a recording. Its servers cannot be started.
func parseSettings(settings json.RawMessage) (*config.Config, error) {
	var all map[string]json.RawMessage
	if len(settings) == 0 {
		return nil, errors.New("the recording has no settings")
	}
	if err := json.Unmarshal(settings, &all); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	var servers map[string]map[string]json.RawMessage
	if of := all["servers"]; of != nil {
		if err := json.Unmarshal(of, &servers); err != nil {
			return nil, fmt.Errorf("settings of servers: %w", err)
		}
	}
	for name, server := range servers {
		if server == nil {
			server = make(map[string]json.RawMessage)
			servers[name] = server
		}
		if server["url"] == nil && server["command"] == nil {
			server["command"] = json.RawMessage(`"recorded"`)
		}
	}
	text, err := json.Marshal(servers)
	if err != nil {
		return nil, err
	}
	all["servers"] = text
	if text, err = json.Marshal(all); err != nil {
		return nil, err
	}
	return config.Parse("recording.yaml", text, func(string) (string, bool) { return "", false })
}
