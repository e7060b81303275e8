package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is what this program is.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source
	Modified bool   `json:"modified,omitempty"` // the source differed from it
	Time     string `json:"time,omitempty"`     // of the revision
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// BuildVersion reads what the linker knows. stamped, if not empty, is the
// version that a release was given at its build.
func BuildVersion(stamped string) Version {
	v := Version{Version: stamped, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		if v.Version == "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			case "vcs.time":
				v.Time = s.Value
			}
		}
	}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "dev"
	}
	return v
}

func (a *App) version() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version of Goblin, the revision it was built from, and the Go version.",
		Example: "  goblin version\n  goblin version --json | jq -r .version",
		Args:    NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.json(a.Version)
			}
			v := a.Version
			revision := ""
			if v.Revision != "" {
				revision = ", revision " + v.Revision[:min(12, len(v.Revision))]
				if v.Modified {
					revision += " with changes"
				}
			}
			return a.printText(fmt.Sprintf("goblin %s (%s, %s/%s%s)", v.Version, v.Go, v.OS, v.Arch, revision))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
