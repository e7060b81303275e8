package command

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"goblin/gateway/cli"
	"goblin/registry/termtext"
)

// content is a block of a tool's result or of a prompt's message.
type content struct {
	Type     string    `json:"type"`
	Text     string    `json:"text"`
	Data     string    `json:"data"`
	MIMEType string    `json:"mimeType"`
	URI      string    `json:"uri"`
	Name     string    `json:"name"`
	Resource *contents `json:"resource"`
}

// contents is an entry in the contents of a resource.
type contents struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     *string `json:"blob"`
}

func (a *App) printRaw(result []byte) error {
	if a.OutTTY {
		result = []byte(termtext.JSON(string(result)))
	}
	_, err := a.Out.Write(append(result[:len(result):len(result)], '\n'))
	return err
}

func (a *App) printRead(result []byte) error {
	var read struct {
		Contents []contents `json:"contents"`
	}
	if err := json.Unmarshal(result, &read); err != nil {
		return fmt.Errorf("parse the result: %w; use --json to print it unchanged", err)
	}
	for i, c := range read.Contents {
		if a.OutTTY && len(read.Contents) > 1 {
			if i > 0 {
				fmt.Fprintln(a.Out)
			}
			fmt.Fprintf(a.Out, "── %s%s\n", termtext.Line(c.URI), parenthesis(c.MIMEType))
		}
		if err := a.printContents(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *App) printContents(c contents) error {
	switch {
	case c.Text != nil && a.OutTTY:
		return a.printText(*c.Text)
	case c.Text != nil:
		_, err := io.WriteString(a.Out, *c.Text)
		return err
	case c.Blob != nil:
		return a.printBlob(*c.Blob, c.MIMEType, c.URI)
	}
	return nil
}

// printBlob prints the decoded bytes into a pipe, and a hint on a terminal.
func (a *App) printBlob(blob, mime, name string) error {
	raw, err := decode(blob)
	if err != nil {
		return fmt.Errorf("decode the blob of %s: %w", name, err)
	}
	if a.OutTTY {
		_, err = fmt.Fprintf(a.Out, "[%s%s: redirect the output to a file, or use --json]\n", termtext.Size(int64(len(raw))), comma(mime))
		return err
	}
	_, err = a.Out.Write(raw)
	return err
}

func decode(blob string) ([]byte, error) {
	blob = strings.TrimRight(strings.NewReplacer("\n", "", "\r", "", " ", "").Replace(blob), "=")
	if strings.ContainsAny(blob, "-_") {
		return base64.RawURLEncoding.DecodeString(blob)
	}
	return base64.RawStdEncoding.DecodeString(blob)
}

func (a *App) printCall(tool string, result []byte) error {
	var called struct {
		Content    []content       `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := json.Unmarshal(result, &called); err != nil {
		return fmt.Errorf("parse the result: %w; use --json to print it unchanged", err)
	}
	if called.IsError {
		var text strings.Builder
		for _, c := range called.Content {
			text.WriteString(strings.TrimSpace(describe(c)) + "\n")
		}
		said := strings.TrimSpace(text.String())
		if said == "" {
			said = "no reason given"
		}
		fmt.Fprintf(a.Err, "goblin: tool \"%s\" failed: %s\n", termtext.Line(tool), strings.ReplaceAll(termtext.Text(a.Mask().String(said)), "\n", "\n  "))
		return errReported(cli.CodeFailure)
	}
	if len(called.Content) == 0 && called.Structured != nil {
		return a.printText(string(called.Structured))
	}
	if c := called.Content; len(c) == 1 && !a.OutTTY {
		switch {
		case c[0].Data != "":
			return a.printBlob(c[0].Data, c[0].MIMEType, c[0].Type)
		case c[0].Resource != nil:
			return a.printContents(*c[0].Resource)
		}
	}
	for _, c := range called.Content {
		if err := a.printText(describe(c)); err != nil {
			return err
		}
	}
	return nil
}

func (a *App) printPrompt(result []byte) error {
	var prompt struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(result, &prompt); err != nil {
		return fmt.Errorf("parse the result: %w; use --json to print it unchanged", err)
	}
	for i, m := range prompt.Messages {
		if i > 0 {
			if err := a.printText(""); err != nil {
				return err
			}
		}
		// One block, but servers send arrays of them, too.
		blocks := make([]content, 1)
		if json.Unmarshal(m.Content, &blocks[0]) != nil {
			if err := json.Unmarshal(m.Content, &blocks); err != nil {
				return fmt.Errorf("parse the result: %w; use --json to print it unchanged", err)
			}
		}
		text := termtext.Line(m.Role) + ":\n"
		for _, c := range blocks {
			text += strings.TrimSuffix(describe(c), "\n") + "\n"
		}
		if err := a.printText(text); err != nil {
			return err
		}
	}
	return nil
}

// describe uses one line for a binary block.
func describe(c content) string {
	switch {
	case c.Type == "text":
		return c.Text
	case c.Type == "resource_link":
		return fmt.Sprintf("[resource %s%s%s]", termtext.Line(c.URI), comma(c.Name), comma(c.MIMEType))
	case c.Resource != nil && c.Resource.Text != nil:
		return *c.Resource.Text
	case c.Resource != nil && c.Resource.Blob != nil:
		return blob("resource "+c.Resource.URI, *c.Resource.Blob, c.Resource.MIMEType)
	case c.Data != "":
		return blob(c.Type, c.Data, c.MIMEType)
	default:
		return fmt.Sprintf("[%s: use --json]", termtext.Line(c.Type))
	}
}

func blob(what, data, mime string) string {
	length := "invalid base64"
	if raw, err := decode(data); err == nil {
		length = termtext.Size(int64(len(raw)))
	}
	return fmt.Sprintf("[%s%s, %s: use --json]", termtext.Line(what), comma(mime), length)
}

func comma(s string) string {
	if s == "" {
		return ""
	}
	return ", " + termtext.Line(s)
}

func parenthesis(s string) string {
	if s == "" {
		return ""
	}
	return " (" + termtext.Line(s) + ")"
}
