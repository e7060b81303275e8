package tui

import (
	"fmt"
	"testing"

	"goblin/registry"
	"goblin/tui/uicontext"
)

const nestedTool = `{"name":"order","description":"Orders fruit","inputSchema":{"type":"object","$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$"}},"required":["street"]}},
"properties":{"name":{"type":"string","default":"Bob"},"when":{"type":"string","format":"date"},"home":{"$ref":"#/$defs/address"},
"items":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string","enum":["apple","pear"]},"n":{"type":"integer","minimum":1,"default":2}},"required":["sku"]}},
"pay":{"oneOf":[{"title":"Card","type":"object","properties":{"number":{"type":"string"}},"required":["number"]},{"title":"Cash","type":"object","properties":{"coins":{"type":"integer"}}}]},
"any":{}},"required":["when","home"]}}`

// TestGoldenNestedForms are forms with objects, lists of them, and alternatives.
func TestGoldenNestedForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, keys string }{
		{"tool-nested", "2"}, // its detail says what the form will ask for
		{"form-nested", "2 c"},
		{"form-nested-filled", "2 c 2026-13-40 tab Elm tab tab space space ctrl+n space tab tab space"},
		{"form-nested-raw", "2 c 2026-01-31 tab Elm tab tab tab tab {bad ctrl+e"},
	} {
		for _, size := range [][2]int{{80, 24}, {120, 40}} {
			t.Run(fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1]), func(t *testing.T) {
				r := newRig(t, size[0], size[1], "shop")
				r.ready("shop").list("shop", registry.Tool, nestedTool)
				r.keys(c.keys)
				if c.name == "form-nested-raw" { // the schema beside it scrolls
					r.screen()
					r.keys("pgdown")
				}
				r.app.Flash = uicontext.Flash{}
				r.untimed()
				golden(t, fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1]), r.screen())
			})
		}
	}
}
