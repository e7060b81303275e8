package report

// ConfigKey describes a key of the config.
type ConfigKey struct {
	Path    string // such as "servers.NAME.call_timeout"; [] stands for each entry of a list
	Text    string // what it does
	Values  string // valid values
	Default string // or ""
	Example string // lines of a config with the key
	Set     []ConfigLine
}

// ConfigLine is a place in the config where a key is set.
type ConfigLine struct {
	Path string // such as "servers.web.call_timeout"
	Line int    // from 1
}
