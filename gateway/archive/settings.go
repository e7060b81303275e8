package archive

import (
	"encoding/json"
	"errors"

	"goblin/gateway/config"
	"goblin/registry/rawjson"
)

// parseSettings returns the config of a recording. Its servers cannot be started. The
// order of servers is kept, because listed names depend on it.
func parseSettings(settings json.RawMessage) (*config.Config, error) {
	if !rawjson.IsObject(settings) {
		return nil, errors.New("the recording has no settings")
	}
	servers := rawjson.Get(settings, "servers")
	if rawjson.IsObject(servers) {
		settings = rawjson.SetMember(settings, "servers", rawjson.Filter(servers, func(_ rawjson.Key, server []byte) ([]byte, bool) {
			if !rawjson.IsObject(server) {
				server = []byte("{}")
			}
			if rawjson.Get(server, "url") == nil && rawjson.Get(server, "command") == nil {
				server = rawjson.SetMember(server, "command", []byte(`"recorded"`))
			}
			return server, true
		}))
	}
	return config.Parse("recording.yaml", settings, func(string) (string, bool) { return "", false })
}
