// Diagnosis is what was found out about a server, or about Goblin on this
// machine, check by check, as people may see it: in a terminal, on screens and as JSON.
// It holds no secrets, and must not know how anything is found out. Texts may hold words
// of servers: the caller that shows them makes them safe.

package report

// State is the outcome of a check.
type State string

// The states, from the best to the worst.
const (
	OK       State = "ok"
	Disabled State = "disabled" // nothing was checked
	Warning  State = "warning"  // it works, but not for everybody, or not for long
	Broken   State = "broken"
)

var severity = map[State]int{OK: 0, Disabled: 1, Warning: 2, Broken: 3}

// Check is one of them.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Text  string `json:"text"`          // what was found, in one line
	Fix   string `json:"fix,omitempty"` // the one thing to do
	// Lines are lines of the server's stderr. Lines that name an error come first.
	Lines []string `json:"lines,omitempty"`
}

// Diagnosis lists the checks of one subject with their outcomes, in their order.
type Diagnosis struct {
	Server    string  `json:"serverId,omitempty"` // none: Goblin itself
	Transport string  `json:"transport,omitempty"`
	State     State   `json:"state"` // the worst
	Checks    []Check `json:"checks"`
}

// Add adds a check. It reports whether the next one makes sense.
func (r *Diagnosis) Add(c Check) bool {
	if severity[c.State] > severity[r.State] || r.State == "" {
		r.State = c.State
	}
	r.Checks = append(r.Checks, c)
	return c.State != Broken
}

// AddOK adds a check that found nothing wrong.
func (r *Diagnosis) AddOK(name, text string) { r.Add(Check{Name: name, State: OK, Text: text}) }

// AddWarning adds a check that found something that does not stop anything yet.
func (r *Diagnosis) AddWarning(name, text, fix string) {
	r.Add(Check{Name: name, State: Warning, Text: text, Fix: fix})
}

// AddBroken adds the check that found what is broken.
func (r *Diagnosis) AddBroken(name, text, fix string) {
	r.Add(Check{Name: name, State: Broken, Text: text, Fix: fix})
}

// Findings are the checks that found something.
func (r *Diagnosis) Findings() []Check {
	var found []Check
	for _, c := range r.Checks {
		if c.State != OK {
			found = append(found, c)
		}
	}
	return found
}
