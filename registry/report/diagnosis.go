package report

// State is the outcome of a check.
type State string

// Values of [State], from best to worst.
const (
	OK       State = "ok"
	Disabled State = "disabled" // nothing was checked
	Warning  State = "warning"  // works, but not for all clients or not for long
	Broken   State = "broken"
)

var severity = map[State]int{OK: 0, Disabled: 1, Warning: 2, Broken: 3}

// Check is the outcome of one check.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Text  string `json:"text"`          // the finding, in one line
	Fix   string `json:"fix,omitempty"` // the one thing to do
	// Lines are lines of the server's stderr, error lines first.
	Lines []string `json:"lines,omitempty"`
}

// Diagnosis lists the checks of one server, or of Goblin itself, in order. It contains no
// secrets. Texts may quote servers, so callers must escape them for display.
type Diagnosis struct {
	Server    string  `json:"serverId,omitempty"` // "" for Goblin itself
	Transport string  `json:"transport,omitempty"`
	State     State   `json:"state"` // the worst one
	Checks    []Check `json:"checks"`
}

// Add adds a check and reports whether the next one makes sense.
func (r *Diagnosis) Add(c Check) bool {
	if severity[c.State] > severity[r.State] || r.State == "" {
		r.State = c.State
	}
	r.Checks = append(r.Checks, c)
	return c.State != Broken
}

// AddOK adds a passed check.
func (r *Diagnosis) AddOK(name, text string) { r.Add(Check{Name: name, State: OK, Text: text}) }

// AddWarning adds a check with a problem that breaks nothing yet.
func (r *Diagnosis) AddWarning(name, text, fix string) {
	r.Add(Check{Name: name, State: Warning, Text: text, Fix: fix})
}

// AddBroken adds a failed check.
func (r *Diagnosis) AddBroken(name, text, fix string) {
	r.Add(Check{Name: name, State: Broken, Text: text, Fix: fix})
}

// Findings returns the checks that did not pass.
func (r *Diagnosis) Findings() []Check {
	var found []Check
	for _, c := range r.Checks {
		if c.State != OK {
			found = append(found, c)
		}
	}
	return found
}
