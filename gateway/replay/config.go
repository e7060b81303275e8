package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"goblin/gateway/config"
	"goblin/registry/recording"
)

// serverCommand is the hidden command that runs [Server.Serve].
const serverCommand = "replay-server"

// Setup describes a replaying gateway.
type Setup struct {
	// Recording is a file or folder, Program the path of this program.
	Recording, Program string
	Fast               bool
	// Rules is a file for [ReadRules], or "".
	Rules string
	// Real is the config whose servers get the requests that were not recorded, or nil. Its
	// settings replace those of the recording.
	Real *config.Config
}

// The parts of a recording's settings that a replaying gateway uses. Others may start
// programs, read files or connect to addresses.
var (
	topSettings     = []string{"profiles", "clients", "lua"}
	gatewaySettings = []string{"namespace", "max_name", "page_size", "meta_tools", "meta_tools_above", "list_changed", "limits", "roots"}
	serverSettings  = []string{
		"tools", "prompts", "resources", "overrides", "tags", "open_resources", "disabled", "isolation", "forward_meta", "max_result", "roots",
	}
)

type settings = map[string]json.RawMessage

// NewConfig returns the config of a gateway that replays a recording: the recorded
// settings, with one replaying process per server. It touches no state files.
func NewConfig(s Setup) (*config.Config, error) {
	recorded, names, err := readSetup(s.Recording)
	if err != nil {
		return nil, err
	}
	text, err := s.text(recorded, names)
	if err != nil {
		return nil, err
	}
	// An escaped "$" may still begin a variable. The settings come from any file, so it has no value.
	cfg, err := config.Parse("the recording's settings", text, func(name string) (string, bool) { return "${" + name + "}", true })
	if err != nil {
		return nil, fmt.Errorf("use the settings of %s: %w", s.Recording, err)
	}
	cfg.Path, cfg.Demo = "", true // no state files and no reload
	if s.Real != nil {
		err = useSettings(cfg, s.Real)
	}
	return cfg, err
}

// useSettings replaces the recording's settings by those of source. A crafted recording
// must not open what source denies.
func useSettings(cfg, source *config.Config) error {
	const refused = "requests must not reach the real servers: "
	if source.Gateway.Pin == config.PinStrict {
		return errors.New(refused + "the config has \"pin: strict\", and a replay checks no approvals")
	}
	for _, r := range source.Rules {
		if r.HasHints() {
			return fmt.Errorf("%sthe rule in line %d of the config reads hints of tools, and a replay has only the recorded ones", refused, r.Line)
		}
	}
	replayed := cfg.Gateway
	cfg.Gateway = source.Gateway
	cfg.Gateway.Pin, cfg.Gateway.Remember, cfg.Gateway.Start = replayed.Pin, replayed.Remember, replayed.Start
	cfg.Gateway.StartupWait, cfg.Gateway.HandshakeWait = replayed.StartupWait, replayed.HandshakeWait
	cfg.Profiles, cfg.Clients, cfg.Rules, cfg.Lua = source.Profiles, source.Clients, source.Rules, source.Lua
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		from, ok := source.Server(s.Name)
		if !ok {
			continue // it gets no requests
		}
		s.Tools, s.Prompts, s.Resources, s.OpenResources = from.Tools, from.Prompts, from.Resources, from.OpenResources
		s.Overrides, s.Tags, s.Disabled, s.Isolation = from.Overrides, from.Tags, from.Disabled, from.Isolation
		s.ForwardMeta, s.MaxResult, s.Roots = from.ForwardMeta, from.MaxResult, from.Roots
	}
	return nil
}

func (s *Setup) text(recorded settings, names []string) ([]byte, error) {
	var inner struct {
		Servers map[string]settings
		Gateway settings
	}
	all, err := json.Marshal(recorded)
	if err == nil {
		err = json.Unmarshal(all, &inner)
	}
	if err != nil {
		return nil, fmt.Errorf("settings of %s: %w", s.Recording, err)
	}
	file, err := filepath.Abs(s.Recording)
	if err != nil {
		return nil, err
	}
	servers := map[string]settings{}
	if inner.Servers == nil {
		inner.Servers = map[string]settings{}
	}
	for _, name := range names {
		inner.Servers[name] = orNew(inner.Servers, name)
	}
	if len(inner.Servers) > maxServers {
		return nil, fmt.Errorf("%s has %d servers; at most %d can be replayed, with a process each", s.Recording, len(inner.Servers), maxServers)
	}
	for name, keys := range inner.Servers {
		one := pick(keys, serverSettings)
		set(one, "command", s.Program)
		set(one, "args", s.args(file, name))
		set(one, "start", "eager")
		set(one, "idle_timeout", "off") // a process holds the position in the recording
		set(one, "timeout", "24h")
		set(one, "call_timeout", "24h")
		set(one, "startup_timeout", "10m") // long recordings
		if s.Real != nil {
			set(one, "inherit_env", true) // for the real server
		}
		servers[name] = one
	}
	top := pick(recorded, topSettings)
	gateway := pick(inner.Gateway, gatewaySettings)
	set(gateway, "pin", "off")
	set(gateway, "remember", "off")
	set(gateway, "startup_wait", "10m")
	set(gateway, "handshake_wait", "10m")
	set(top, "servers", servers)
	set(top, "gateway", gateway)
	return json.Marshal(top)
}

func orNew(servers map[string]settings, name string) settings {
	if keys := servers[name]; keys != nil {
		return keys
	}
	return settings{}
}

func pick(from settings, names []string) settings {
	out := settings{}
	for _, name := range names {
		if v, ok := from[name]; ok && string(v) != "null" {
			out[name] = bytes.ReplaceAll(v, []byte("${"), []byte("$${")) // no variables
		}
	}
	return out
}

func set(in settings, name string, value any) {
	text, err := json.Marshal(value)
	if err != nil { // unreachable: strings, lists and objects of JSON
		panic(err)
	}
	in[name] = text
}

func (s *Setup) args(file, server string) []string {
	args := []string{serverCommand}
	if s.Fast {
		args = append(args, "--fast")
	}
	if s.Rules != "" {
		if path, err := filepath.Abs(s.Rules); err == nil {
			args = append(args, "--rules", path)
		}
	}
	if s.Real != nil {
		args = append(args, "--missing", "pass")
		if s.Real.Path != "" {
			args = append(args, "--config", s.Real.Path)
		}
	}
	args = append(args, "--", file, server)
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "${", "$${")
	}
	return args
}

// maxServers is the number of servers in a recording.
const maxServers = 500

// readSetup returns the latest settings of a recording and its servers. It reads the
// start of each file.
func readSetup(path string) (latest settings, servers []string, err error) {
	files, err := recording.Files(path)
	if err != nil {
		return nil, nil, err
	}
	known := map[string]bool{}
	var failed error
	readable := false
	for _, file := range files {
		own, found, err := readStart(file)
		switch {
		case errors.Is(err, ErrNoBodies):
			return nil, nil, err
		case err != nil:
			failed = cmp.Or(failed, err) // Load skips it too, with a warning
			continue
		}
		readable = true
		if own != nil {
			latest = own
		}
		for _, name := range found {
			if !known[name] && len(known) <= maxServers {
				known[name] = true
				servers = append(servers, name)
			}
		}
	}
	if !readable {
		return nil, nil, failed
	}
	if latest == nil {
		latest = settings{}
	}
	return latest, servers, nil
}

func readStart(file string) (own settings, servers []string, err error) {
	r, err := recording.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	for {
		line, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return own, servers, nil
		case err != nil:
			return nil, nil, err
		}
		switch line.Type {
		case recording.TypeRecording:
			if !line.Bodies {
				return nil, nil, fmt.Errorf("%s: %w", file, ErrNoBodies)
			}
			if len(line.Settings) > 0 {
				if err := json.Unmarshal(line.Settings, &own); err != nil {
					return nil, nil, fmt.Errorf("%s: invalid settings: %w", file, err)
				}
			}
		case recording.TypeServer:
			servers = append(servers, line.Server)
		}
	}
}
