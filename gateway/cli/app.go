package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/oauth"
	"goblin/gateway/recorder"
	"goblin/gateway/secrets"
	"goblin/gateway/state"
	"goblin/gateway/telemetry"
)

// App is the command line of this process: its streams, environment and config.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	// InTTY, OutTTY and ErrTTY report which streams are terminals. Untrusted text is
	// escaped before it is printed to one.
	InTTY, OutTTY, ErrTTY bool
	Columns               int // of the terminal at Out; 0 if unknown

	Getenv  func(string) string
	Version Version

	// ConfigFlag is the value of --config.
	ConfigFlag string
	// Saved is the folder of saved calls; "" means the one beside the config.
	Saved string

	mask *config.Mask
}

// Load finds and reads the config. Afterwards all output to stderr masks its secrets. The
// error is a *config.Errors.
func (a *App) Load() (*config.Config, error) {
	path, err := a.FindConfig()
	if err != nil {
		return nil, err
	}
	return a.LoadFile(path)
}

// LoadFile is like Load, for a known file; "" is the demo.
func (a *App) LoadFile(path string) (*config.Config, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	a.MaskSecrets(cfg)
	return cfg, nil
}

// MaskSecrets masks the secrets of a config in all output to stderr.
func (a *App) MaskSecrets(cfg *config.Config) {
	if a.mask == nil {
		a.mask = config.NewMask(cfg)
	} else {
		a.mask.Add(cfg)
	}
}

// PinsPath returns the file of a config's approved tools, or "" if the config disables
// pins. The demo has none. It fails if there is no state folder.
func (a *App) PinsPath(cfg *config.Config) (string, error) {
	if cfg.Demo || cfg.Gateway.Pin == config.PinOff {
		return "", nil
	}
	path, err := config.Canonical(cfg.Path)
	if err != nil {
		return "", err
	}
	stateDir := config.StateFolder(a.Getenv)
	if stateDir == "" {
		return "", errors.New("no folder for approved tools; set HOME or XDG_STATE_HOME")
	}
	return state.PinsPath(stateDir, path), nil
}

// TogglesPath returns the file of a config's disabled entries, or "" without a state
// folder.
func (a *App) TogglesPath(cfg *config.Config) string { return a.stateFile(cfg, state.TogglesPath) }

// CallApprovalsPath returns the file of a config's remembered approvals, or "" without a
// state folder.
func (a *App) CallApprovalsPath(cfg *config.Config) string {
	return a.stateFile(cfg, state.CallApprovalsPath)
}

// UsagePath returns the file of a config's recorded usage, or "" without a state folder.
func (a *App) UsagePath(cfg *config.Config) string { return a.stateFile(cfg, telemetry.UsagePath) }

func (a *App) stateFile(cfg *config.Config, path func(folder, config string) string) string {
	stateDir := config.StateFolder(a.Getenv)
	name, err := config.Canonical(cfg.Path)
	if cfg.Demo || stateDir == "" || err != nil {
		return ""
	}
	return path(stateDir, name)
}

// ListCacheDir returns the folder of cached lists, or "" without a state folder.
func (a *App) ListCacheDir() string {
	stateDir := config.StateFolder(a.Getenv)
	if stateDir == "" {
		return ""
	}
	return filepath.Join(stateDir, "catalog")
}

// RecordingsDir returns the default folder of a config's recordings, or "" without a
// state folder.
func (a *App) RecordingsDir(cfg *config.Config) string {
	stateDir := config.StateFolder(a.Getenv)
	name, err := config.Canonical(cfg.Path)
	if stateDir == "" || err != nil {
		return ""
	}
	if cfg.Demo {
		name = ""
	}
	return recorder.Folder(stateDir, name)
}

// SavedDir returns the folder of saved calls beside a config. That of the demo is beside
// the default config. It returns "" if there is no such path.
func (a *App) SavedDir(cfg *config.Config) string {
	if a.Saved != "" {
		return a.Saved
	}
	path := cmp.Or(cfg.Path, config.DefaultPath(a.Getenv))
	if path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(path), "saved")
}

// LoginsDir returns the folder of logins, or "" without a state folder. "goblin login"
// reports that error.
func (a *App) LoginsDir() string {
	folder, _ := oauth.Folder(a.Getenv)
	return folder
}

// Secrets opens the user's store of secrets.
func (a *App) Secrets() *secrets.Store { return secrets.Open(config.StateFolder(a.Getenv)) }

// Mask returns the mask of all loaded configs.
func (a *App) Mask() *config.Mask { return a.mask }

// FindConfig returns the path of the config; "" is the demo.
func (a *App) FindConfig() (string, error) { return config.Find(a.ConfigFlag, a.Getenv) }

// FindDaemon returns the endpoint of a config's daemon; "" is the demo. The file may have
// changed or become invalid since the daemon read it.
func (a *App) FindDaemon(path string) (daemon.Endpoint, error) {
	hash, variables, err := config.FileID(path, os.LookupEnv)
	if err != nil {
		return daemon.Endpoint{}, err
	}
	place, err := daemon.Find(hash, a.Version.Handshake(), a.Getenv)
	place.Build = a.Version.Build
	if err == nil && path != "" {
		place.Variables = variables
		place.Config, err = config.Canonical(path)
	}
	return place, err
}

// Groups of commands in help.
const (
	GroupServe      = "serve"
	GroupAsk        = "ask"
	GroupDaemon     = "daemon"
	GroupRecord     = "record"
	GroupDiagnose   = "diagnose"
	GroupVisibility = "visibility"
	GroupOther      = "other"

	// GroupConfig contains the commands that check or change the config.
	GroupConfig = "config"
)

// Groups returns the groups in the order of help.
func Groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: GroupServe, Title: "Serve:"},
		{ID: GroupAsk, Title: "Query servers:"},
		{ID: GroupDaemon, Title: "Control the daemon:"},
		{ID: GroupRecord, Title: "Record and replay:"},
		{ID: GroupDiagnose, Title: "Diagnose and log in:"},
		{ID: GroupVisibility, Title: "Visibility:"},
		{ID: GroupConfig, Title: "Configure:"},
		{ID: GroupOther, Title: "Other commands:"},
	}
}

// NoConfig is the annotation of commands that read no config.
const NoConfig = "noconfig"

// NoConfigAnnotations returns [NoConfig] as annotations.
func NoConfigAnnotations() map[string]string { return map[string]string{NoConfig: ""} }

// Usage returns an error about wrong arguments or flags. It refers to the command's help.
func Usage(cmd *cobra.Command, format string, args ...any) error {
	text, asked := strings.CutSuffix(fmt.Sprintf(format, args...), "?")
	sep := "; see"
	if asked {
		sep = "? See"
	}
	return Fail(CodeUsage, "%s%s \"%s --help\"", text, sep, cmd.CommandPath())
}

// CommandPath returns a command's path without "goblin".
func CommandPath(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), "goblin ")
}

var flagName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^ *(?:-., )?--([^ \[]+)`) })

// FlagError converts a flag error of any command.
func FlagError(cmd *cobra.Command, err error) error {
	var (
		value   *pflag.InvalidValueError
		missing *pflag.ValueRequiredError
		letter  *pflag.NotExistError
	)
	switch {
	case errors.As(err, &value):
		return Usage(cmd, "--%s %s", value.GetFlag().Name, wrongValue(value))
	case errors.As(err, &missing):
		what, _ := pflag.UnquoteUsage(missing.GetFlag())
		return Usage(cmd, "--%s needs a value: %s", missing.GetFlag().Name, what)
	case errors.As(err, &letter) && letter.GetSpecifiedShortnames() != "":
		return Usage(cmd, "unknown flag: -%s", letter.GetSpecifiedName())
	}
	text := strings.TrimSpace(err.Error())
	if _, none := cmd.Annotations[NoConfig]; none && text == "unknown flag: --config" {
		return Usage(cmd, "%s reads no config; omit --config", CommandPath(cmd))
	}
	if wrong, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		var flags []string
		for _, shown := range flagName().FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
			flags = append(flags, shown[1])
		}
		if near := nearest(wrong, flags); len(near) > 0 {
			text += "; did you mean --" + near[0] + "?"
		}
	}
	return Usage(cmd, "%s", text)
}

func wrongValue(err *pflag.InvalidValueError) string {
	switch kind := err.GetFlag().Value.Type(); {
	case err.GetValue() == "":
		return "must not be empty"
	case kind == "int":
		return fmt.Sprintf("must be a whole number, not %q", err.GetValue())
	case kind == "bool":
		return fmt.Sprintf("takes no value, but got %q", err.GetValue())
	}
	return fmt.Sprintf("%s, not %q", err.Unwrap(), err.GetValue())
}

type nonEmptyName string

// NameFlag adds a flag with a value that must not be empty. usage quotes the value's
// name.
func NameFlag(flags *pflag.FlagSet, value *string, flag, usage string) {
	flags.Var((*nonEmptyName)(value), flag, usage)
}

func (n *nonEmptyName) String() string { return string(*n) }
func (n *nonEmptyName) Type() string   { return "string" }

func (n *nonEmptyName) Set(value string) error {
	if value == "" {
		return errors.New("is empty")
	}
	*n = nonEmptyName(value)
	return nil
}

// NoArgs rejects arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case isConfig(args[0]):
		return Usage(cmd, "%s takes no arguments; to use a config, add --config %s", CommandPath(cmd), args[0])
	default:
		return Usage(cmd, "%s takes no arguments, but got %q", CommandPath(cmd), args[0])
	}
}

// Group returns a command that only has subcommands. Errors list them in the given order.
func Group(cmd *cobra.Command, own ...*cobra.Command) *cobra.Command {
	names := make([]string, len(own))
	for i, one := range own {
		names[i] = one.Name()
	}
	known := names[len(names)-1]
	if before := names[:len(names)-1]; len(before) > 0 {
		known = strings.Join(before, ", ") + " or " + known
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error { // args don't start with a subcommand
		if len(args) == 0 {
			return Usage(cmd, "%s needs a command: %s", CommandPath(cmd), known)
		}
		meant := ""
		if near := nearest(args[0], names); len(near) > 0 {
			meant = "; did you mean " + QuoteNames(near, " or ") + "?"
		}
		return Usage(cmd, "%s takes %s, not %q%s", CommandPath(cmd), known, args[0], meant)
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil } // unreachable: Args always fails
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.AddCommand(own...)
	return cmd
}

func isConfig(arg string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg))
}
