package viewer

import (
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// Plain returns the sections as sanitized text for a clipboard or a pager, not wrapped,
// folded or cut. Markdown stays as written.
func (d *Doc) Plain() string {
	var out strings.Builder
	for i := range d.sections {
		if i > 0 {
			out.WriteByte('\n')
		}
		k := &d.sections[i]
		if k.Title != "" {
			out.WriteString(termtext.Line(k.Title))
			out.WriteByte('\n')
		}
		s := k.plain()
		out.WriteString(s)
		if s != "" && !strings.HasSuffix(s, "\n") {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

func (k *Section) plain() string {
	switch k.Kind {
	case Fields:
		return plainFields(k.Fields)
	case JSON:
		return pretty(k.Data)
	case Hex:
		var out strings.Builder
		out.WriteString(plainFields([]Field{
			{Label: "type", Value: k.MIME}, {Label: "size", Value: formatBytes(int64(len(k.Data)))},
		}))
		for s := range dump(k.Data[:min(len(k.Data), hexShown)], defaultWidth) {
			out.WriteString(s)
			out.WriteByte('\n')
		}
		return out.String()
	case Log:
		var out strings.Builder
		for _, l := range k.Lines {
			out.WriteString(termtext.Line(l.Text) + "\n")
		}
		return out.String()
	case Error:
		return "! " + termtext.Text(k.Text)
	}
	return termtext.Text(k.Text)
}

func plainFields(fields []Field) string {
	column := labelWidth(fields)
	var out strings.Builder
	for _, f := range fields {
		if f.Value == "" {
			continue
		}
		label := termtext.Line(f.Label)
		out.WriteString(label)
		out.WriteString(theme.Spaces(column - theme.Width(label) + 2))
		out.WriteString(strings.ReplaceAll(f.text(f.Value), "\n", "\n"+theme.Spaces(column+2)))
		out.WriteByte('\n')
	}
	return out.String()
}

// pretty indents JSON without folding, wrapping or limits. Other text stays unchanged.
func pretty(src []byte) string {
	if rawjson.Valid(src) == nil {
		src = rawjson.AppendIndent(nil, src)
	}
	return termtext.Text(string(src))
}
