package cli

import (
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
	"goblin/gateway/secrets"
	"goblin/gateway/state"
	"goblin/gateway/telemetry"
)

// App is the command line that this process was started with: its streams, its
// environment, its config.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	// InTTY, OutTTY and ErrTTY say which of them are terminals. What is meant
	// for eyes is sanitised on the way to one.
	InTTY, OutTTY, ErrTTY bool
	Columns               int // of the terminal at Out; 0: not known

	Getenv  func(string) string
	Version Version

	// ConfigFlag is the value of --config.
	ConfigFlag string

	mask *config.Mask
}

// Load finds and reads the config. From then on its secrets are masked in
// everything that goes to stderr. The error is a *config.Errors.
func (a *App) Load() (*config.Config, error) {
	path, err := a.FindConfig()
	if err != nil {
		return nil, err
	}
	return a.LoadFile(path)
}

// LoadFile is Load for a file that was found already; "" is the demo.
func (a *App) LoadFile(path string) (*config.Config, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	a.MaskSecrets(cfg)
	return cfg, nil
}

// MaskSecrets masks the secrets of a config in everything that goes to stderr.
func (a *App) MaskSecrets(cfg *config.Config) {
	if a.mask == nil {
		a.mask = config.NewMask(cfg)
	} else {
		a.mask.Add(cfg)
	}
}

// PinsPath is the file in which the approved tools of a config are remembered; ""
// when the config wants none, or when there is no place for it, which is the
// error.
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
		return "", errors.New("there is no folder for pinned tools: set HOME or XDG_STATE_HOME")
	}
	return state.PinsPath(stateDir, path), nil
}

// TogglesPath is the file of what the user turned off in a config; "" when there is no place for
// it.
func (a *App) TogglesPath(cfg *config.Config) string { return a.stateFile(cfg, state.TogglesPath) }

// UsagePath is the file of what calls of a config's tools came to; "" when there is no place
// for it.
func (a *App) UsagePath(cfg *config.Config) string { return a.stateFile(cfg, telemetry.UsagePath) }

// stateFile is the place of a file about a config.
func (a *App) stateFile(cfg *config.Config, path func(folder, config string) string) string {
	stateDir := config.StateFolder(a.Getenv)
	name, err := config.Canonical(cfg.Path)
	if cfg.Demo || stateDir == "" || err != nil {
		return ""
	}
	return path(stateDir, name)
}

// ListCacheDir is the folder of what servers listed last; "" when there is no place for it.
func (a *App) ListCacheDir() string {
	stateDir := config.StateFolder(a.Getenv)
	if stateDir == "" {
		return ""
	}
	return filepath.Join(stateDir, "catalog")
}

// LoginsDir is the folder of logins at remote servers; "" when there is no place for
// them, which "goblin login" tells.
func (a *App) LoginsDir() string {
	folder, _ := oauth.Folder(a.Getenv)
	return folder
}

// Secrets opens the user's store of values that configs refer to.
func (a *App) Secrets() *secrets.Store { return secrets.Open(config.StateFolder(a.Getenv)) }

// Mask hides the secrets of the configs that were loaded.
func (a *App) Mask() *config.Mask { return a.mask }

// FindConfig is the path of the config; "" is the demo.
func (a *App) FindConfig() (string, error) { return config.Find(a.ConfigFlag, a.Getenv) }

// FindDaemon is where the daemon of a config file is found; "" is the demo. The text
// of the file may have changed since the daemon read it, and have mistakes.
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

// Groups of commands in the help text.
const (
	GroupServe  = "serve"
	GroupAsk    = "ask"
	GroupDaemon = "daemon"

	// GroupConfig has the commands that change the config or check it.
	GroupConfig = "config"
)

// Groups names the groups of commands.
func Groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: GroupServe, Title: "Serve:"},
		{ID: GroupAsk, Title: "Ask the servers:"},
		{ID: GroupDaemon, Title: "The running daemon:"},
		{ID: GroupConfig, Title: "The config:"},
	}
}

// NoConfig marks a command that reads no config, as a key of its annotations.
const NoConfig = "noconfig"

// NoConfigAnnotations are the annotations of a command that reads no config.
func NoConfigAnnotations() map[string]string { return map[string]string{NoConfig: ""} }

// Usage is an error in how a command was called.
func Usage(cmd *cobra.Command, format string, args ...any) error {
	text, asked := strings.CutSuffix(fmt.Sprintf(format, args...), "?")
	sep := "; see"
	if asked {
		sep = "? See"
	}
	return Fail(CodeUsage, "%s%s \"%s --help\"", text, sep, cmd.CommandPath())
}

// CommandPath is a command as it is typed behind "goblin".
func CommandPath(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), "goblin ")
}

// flagName finds the name in each line of the help on flags.
var flagName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^ *(?:-., )?--([^ \[]+)`) })

// FlagError is the flag error function of every command.
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
		if near := Nearest(wrong, flags); len(near) > 0 {
			text += "; did you mean --" + near[0] + "?"
		}
	}
	return Usage(cmd, "%s", text)
}

// wrongValue says what a flag takes.
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

// nonEmptyName is a flag whose value names something, and so is not empty.
type nonEmptyName string

// NameFlag adds a flag that takes a name of something, which usage quotes.
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

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case isConfig(args[0]):
		return Usage(cmd, "%s takes no arguments; a config is named by --config %s", CommandPath(cmd), args[0])
	default:
		return Usage(cmd, "%s takes no arguments, but got %q", CommandPath(cmd), args[0])
	}
}

// Group returns a command that does nothing without one of its own commands. Errors name
// them in the order given.
func Group(cmd *cobra.Command, own ...*cobra.Command) *cobra.Command {
	names := make([]string, len(own))
	for i, one := range own {
		names[i] = one.Name()
	}
	known := names[len(names)-1]
	if before := names[:len(names)-1]; len(before) > 0 {
		known = strings.Join(before, ", ") + " or " + known
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error { // in which none of them was found
		if len(args) == 0 {
			return Usage(cmd, "%s needs to know what to do: %s", CommandPath(cmd), known)
		}
		meant := ""
		if near := Nearest(args[0], names); len(near) > 0 {
			meant = "; did you mean " + QuoteNames(near, " or ") + "?"
		}
		return Usage(cmd, "%s can %s, not %q%s", CommandPath(cmd), known, args[0], meant)
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil } // Args refuses all
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.AddCommand(own...)
	return cmd
}

// isConfig reports whether an argument looks like the file of a config.
func isConfig(arg string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg))
}
