package termtext

import "testing"

func TestParseColor(t *testing.T) {
	for text, want := range map[string]string{
		"#7AA2f7": "#7aa2f7", "#fff": "#ffffff", "9": "9", "007": "7", "255": "255", "red": "1", "Bright-Blue": "12",
		"256": "", "-1": "", "": "", "#ff": "", "#gggggg": "", "blurple": "", "\x1b[31m": "", "99999999999999999999": "", "#7aa2f7 ": "",
	} {
		if got, ok := ParseColor(text); got != want || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", text, got, ok, want)
		}
	}
}

// The values follow the WCAG's formula.
func TestContrast(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		want  float64
		known bool
	}{
		{"#000000", "#ffffff", 21, true},
		{"231", "16", 21, true},
		{"#777777", "#ffffff", 4.48, true},
		{"244", "#000000", 5.32, true},
		{"9", "#000000", 0, false},
	} {
		got, known := Contrast(c.a, c.b)
		if known != c.known || known && (got < c.want-0.01 || got > c.want+0.01) {
			t.Errorf("%s on %s: %.2f %v", c.a, c.b, got, known)
		}
	}
}
