package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/state"
)

func (a *App) edit() *cobra.Command {
	return a.withJSON("print a JSON object", &cobra.Command{
		Use: "edit", GroupID: cli.GroupConfig, Short: "Edit the config in your editor",
		Long: `Open the config in $VISUAL or $EDITOR, and check it afterwards. A config with
mistakes isn't saved; you can edit it again. A missing config is created.`,
		Example: "  goblin edit\n  EDITOR=nano goblin edit",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := a.editableConfig(configedit.OpenBroken) // the user may want to fix mistakes
			if err != nil {
				return err
			}
			before := string(f.Text())
			if err := a.editFile(cmd.Context(), f); err != nil {
				return err
			}
			changed := string(f.Text()) != before
			text := "Unchanged: "
			if changed {
				text = "Saved "
			}
			return a.printResult(map[string]any{"config": f.Path(), "changed": changed}, text+f.Path()+".")
		},
	})
}

// editFile reopens the editor until the text is valid.
func (a *App) editFile(ctx context.Context, f *configedit.File) error {
	usual := "vi"
	if runtime.GOOS == "windows" {
		usual = "notepad"
	}
	words := strings.Fields(cmp.Or(a.Getenv("VISUAL"), a.Getenv("EDITOR"), usual))
	ext := ".yaml"
	if f.IsJSON() {
		ext = ".json"
	}
	// The text may contain secrets, and editors leave copies with their own modes beside
	// the file.
	dir, err := os.MkdirTemp("", "goblin-*") // mode 0700
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			_ = os.RemoveAll(dir) // a leftover is in the temporary directory
		}
	}()
	text := f.Text()
	if f.IsNew() {
		text = configedit.Template()
	}
	temp := filepath.Join(dir, "config"+ext)
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return err
	}
	for {
		if err := a.runEditor(ctx, words, temp); err != nil {
			return err
		}
		text, err := state.Read(temp, maxConfig)
		if err != nil {
			return fmt.Errorf("read the edited text: %w", err)
		}
		f.SetText(text)
		if err = a.save(ctx, f); err == nil {
			return nil
		}
		var mistakes *config.Errors
		if !errors.As(err, &mistakes) {
			keep = true
			return fmt.Errorf("%w; your text is in %s", err, temp)
		}
		if !a.InTTY {
			return err
		}
		a.Report(err)
		again, err := a.askToEditAgain()
		if err != nil {
			return err
		}
		if !again {
			return cli.Fail(cli.CodeConfig, "nothing was saved; %s is unchanged", f.Path())
		}
	}
}

func (a *App) runEditor(ctx context.Context, words []string, file string) error {
	c := exec.CommandContext(ctx, words[0], append(words[1:], file)...)
	c.Stdin, c.Stdout, c.Stderr = a.In, a.Out, a.Err
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w; set $EDITOR to use another editor", words[0], err)
	}
	return nil
}

func (a *App) askToEditAgain() (bool, error) {
	fmt.Fprint(a.Err, "Edit it again? [Y/n] ")
	answer, err := bufio.NewReaderSize(a.In, 16).ReadString('\n')
	word := strings.ToLower(strings.TrimSpace(answer))
	return word != "n" && word != "no", err
}
