package archive

import (
	"encoding/json"
	"errors"
	"slices"

	"goblin/gateway/config"
	"goblin/registry/rawjson"
)

// The members of settings that [config.Settings] writes. Others, such as env_file, could
// make the parser read files that a stranger names.
var topSettings = []string{"servers", "profiles", "clients", "gateway"}

// startSettings are the keys of a server that settings never contain.
var startSettings = []string{"command", "args", "env", "cwd", "inherit_env", "url", "headers", "oauth", "watch", "build"}

// parseSettings returns the config of a recording. Its servers cannot be started. The
// order of servers is kept, because listed names depend on it.
func parseSettings(settings json.RawMessage) (*config.Config, error) {
	if !rawjson.IsObject(settings) {
		return nil, errors.New("the recording has no settings")
	}
	settings = rawjson.Filter(settings, func(key rawjson.Key, value []byte) ([]byte, bool) {
		return value, slices.Contains(topSettings, string(key.Name()))
	})
	servers, n := rawjson.Get(settings, "servers"), 0
	if rawjson.IsObject(servers) {
		settings = rawjson.SetMember(settings, "servers", rawjson.Filter(servers, func(_ rawjson.Key, server []byte) ([]byte, bool) {
			if n++; n > maxServers {
				return nil, false
			}
			if !rawjson.IsObject(server) {
				server = []byte("{}")
			}
			server = rawjson.Filter(server, func(key rawjson.Key, value []byte) ([]byte, bool) {
				return value, !slices.Contains(startSettings, string(key.Name()))
			})
			return rawjson.SetMember(server, "command", []byte(`"recorded"`)), true
		}))
	}
	return config.Parse("recording.yaml", settings, func(string) (string, bool) { return "", false })
}
