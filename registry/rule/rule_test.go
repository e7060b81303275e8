package rule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/rule"
)

func call(change func(*rule.Subject)) *rule.Subject {
	s := &rule.Subject{
		Record: registry.TrafficRecord{Server: "files", Client: "codex", Profile: "coding", Method: "tools/call", Name: "files_delete_note", Session: "s1"},
		Names:  []string{"files/delete_note", "files_delete_note", "delete_note"},
		Params: []byte(`{"name":"files_delete_note","arguments":{"path":"/etc/passwd","deep":{"a":["x"]}}}`), Destructive: true,
	}
	if change != nil {
		change(s)
	}
	return s
}

func answer(s *rule.Subject) {
	s.Answer = []byte(`{"content":[{"type":"text","text":"secret"}]}`)
	s.Record.Duration, s.Record.Size, s.Record.Status = time.Second, 2048, "success"
}

func TestRulesSelectRequests(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]bool{
		"": true,
		"method:tools/call name:delete_* client:codex": true,
		"name:=files_delete_note":                      true,
		"name:=delete_note":                            true,
		"name:=files/delete_note":                      true,
		"-name:delete_*":                               false,
		"name:=delete":                                 false,
		"server:=file":                                 false,
		"server:file":                                  true,
		"srv:files":                                    true,
		"server:other server:files":                    true,
		"server:files client:cursor":                   false,
		"-client:cursor":                               true,
		"profile:coding":                               true,
		"destructive:yes":                              true,
		"destructive:no":                               false,
		"readonly:yes":                                 false,
		"session:s1":                                   true,
		"arg.path:/etc/*":                              true,
		"arg.deep.a:x":                                 true,
		"arg.path:/home":                               false,
		"body:passwd":                                  true,
		"tools/call":                                   true,
		"delete_note":                                  true,
		`"files/delete"`:                               true,
		"running":                                      false,
		"method:resources/*":                           false,
	} {
		r := &rule.Rule{When: when, Then: rule.Deny}
		require.NoError(t, r.Compile(), when)
		require.Equal(t, want, r.Matches(call(nil), time.Now()), when)
	}
}

func TestRulesSelectAnswers(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]bool{
		"body:secret":        true,
		"ms:>500":            true,
		"ms:<500":            false,
		"size:>1k result:ok": true,
		"err:yes":            false,
		"status:ok":          true,
	} {
		r := &rule.Rule{When: when, Then: rule.Truncate}
		require.NoError(t, r.Compile(), when)
		require.Equal(t, rule.OnAnswer, r.On)
		require.Equal(t, want, r.Matches(call(answer), time.Now()), when)
	}
}

// Without the handshake no client could connect.
func TestOnlyRulesThatNameAMethodSelectTheHandshake(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]bool{"": false, "client:codex": false, "-method:ping": false, "method:initialize": true} {
		r := &rule.Rule{When: when, Then: rule.Drop}
		require.NoError(t, r.Compile())
		require.Equal(t, want, r.Matches(call(func(s *rule.Subject) { s.Record.Method = "initialize" }), time.Now()), when)
	}
}

func TestOneRuleMatchesConcurrently(t *testing.T) {
	t.Parallel()
	r := &rule.Rule{When: "name:delete_* arg.path:/etc/*", Then: rule.Deny}
	require.NoError(t, r.Compile())
	wrong := make(chan string, 8)
	for i := range 8 {
		go func() {
			text := ""
			for range 200 {
				other := call(func(s *rule.Subject) { s.Params = []byte(`{"arguments":{"path":"/home"}}`) })
				if !r.Matches(call(nil), time.Now()) || i%2 == 0 && r.Matches(other, time.Now()) {
					text = "a rule confused two requests"
				}
			}
			wrong <- text
		}()
	}
	for range 8 {
		require.Empty(t, <-wrong)
	}
}

func TestRulesWithMistakesDoNotCompile(t *testing.T) {
	t.Parallel()
	half, two, none := 0.5, 2.0, 0
	for want, r := range map[string]*rule.Rule{
		"then is missing; set it to stop":                                              {When: "server:a"},
		`then must be stop, deny, answer`:                                              {Then: "halt"},
		"on must be request or answer":                                                 {Then: rule.Deny, On: "both"},
		"on must be answer, because truncate changes answers":                          {Then: rule.Truncate, On: rule.OnRequest},
		`text has no effect with "then: delay", only with stop, deny, answer or fail`:  {Then: rule.Delay, Delay: 1, Text: "x"},
		`code has no effect with "then: deny", only with fail`:                         {Then: rule.Deny, Code: 5},
		`default has no effect with "then: freeze", only with stop`:                    {Then: rule.Freeze, Default: "deny"},
		`delay has no effect with "then: stop"`:                                        {Then: rule.Stop, Delay: 1},
		`ask has no effect with "then: deny"`:                                          {Then: rule.Deny, Ask: "client"},
		"result is missing; add the":                                                   {Then: rule.Answer},
		"result must be a mapping":                                                     {Then: rule.Answer, Result: []byte(`[1]`)},
		"delay is missing; add the":                                                    {Then: rule.Delay},
		"timeout must be from 0 to 24h":                                                {Then: rule.Stop, Timeout: 25 * time.Hour},
		"default must be deny or send":                                                 {Then: rule.Stop, Default: "maybe"},
		"ask must be client":                                                           {Then: rule.Stop, Ask: "server"},
		"ask works only on requests":                                                   {Then: rule.Stop, Ask: "client", On: rule.OnAnswer},
		"p must be a number from 0 to 1":                                               {Then: rule.Deny, P: &two},
		"count must be from 1":                                                         {Then: rule.Deny, P: &half, Count: &none},
		"when is longer than 4096 bytes":                                               {Then: rule.Deny, When: strings.Repeat("a", 4097)},
		`when is wrong in column 10: no field "nme" here; did you mean name:?`:         {Then: rule.Deny, When: "server:a nme:x"},
		`when is wrong in column 1: "client:" has no value and would match everything`: {Then: rule.Deny, When: "client: codex"},
		`"ms:>" has no value`:                                                          {Then: rule.Truncate, When: "ms:>"},
		`text has no effect beside "result"`:                                           {Then: rule.Answer, Text: "x", Result: []byte(`{}`)},
		`"OR" would be searched as a word`:                                             {Then: rule.Deny, When: "name:a OR name:b"},
		`name a field, such as -name:delete_*, or quote it`:                            {Then: rule.Deny, When: "-delete_*"},
		`"delete_*" would be searched as a word, in which * is a character`:            {Then: rule.Deny, When: "delete_*"},
		`name:"a b has no closing quote`:                                               {Then: rule.Deny, When: `name:"a b`},
		`"-" has no value`:                                                             {Then: rule.Deny, When: "a - b"},
		`"ms:>5" needs the answer, but the rule applies to req`:                        {Then: rule.Deny, When: "ms:>5"},
		`"-err:yes" needs the answer`:                                                  {Then: rule.Deny, When: "-err:yes"},
		`no field "since" here`:                                                        {Then: rule.Deny, When: "since:5m"},
		`"method:sampling/*" selects no request of clients`:                            {Then: rule.Deny, When: "method:sampling/*"},
		`"method:notifications/x" selects no request`:                                  {Then: rule.Deny, When: "method:notifications/x"},
		`destructive must be yes or no, not "maybe"`:                                   {Then: rule.Deny, When: "destructive:maybe"},
	} {
		err := r.Compile()
		require.ErrorContains(t, err, want)
	}
}

func TestReviewFindsRulesThatCannotWork(t *testing.T) {
	t.Parallel()
	never, one := 0.0, 1
	known := rule.Names{Servers: []string{"files", "git"}, Profiles: []string{"coding"}}
	deny := func(when string) *rule.Rule { return &rule.Rule{When: when, Then: rule.Deny} }
	stop := func(when string) *rule.Rule { return &rule.Rule{When: when, Then: rule.Stop} }
	for _, c := range []struct {
		rules []*rule.Rule
		want  string // about the last one, or "" if there is none
	}{
		{[]*rule.Rule{deny("")}, "matches every request, so it can make Goblin unusable"},
		{[]*rule.Rule{deny("method:*")}, "matches every request"},
		{[]*rule.Rule{deny("-client:codex")}, "matches every request except a few"},
		{[]*rule.Rule{{Then: rule.Truncate}}, "matches every answer"},
		{[]*rule.Rule{{Then: rule.Drop, Count: &one}}, ""},
		{[]*rule.Rule{{Then: rule.Delay, Delay: time.Second}}, ""},
		{[]*rule.Rule{deny("server:files")}, ""},
		{[]*rule.Rule{deny(`server:""`)}, ""},
		{[]*rule.Rule{deny("server:goblin")}, ""},
		{[]*rule.Rule{deny("server:fils")}, `server:fils matches no server of the config; did you mean "files"?`},
		{[]*rule.Rule{deny("server:=file")}, "server:=file matches no server"},
		{[]*rule.Rule{deny("server:f* -server:files")}, "never applies, because server:f* -server:files matches no server"},
		{[]*rule.Rule{deny("-server:fils name:x")}, ""},
		{[]*rule.Rule{deny("profile:codng")}, "profile:codng matches no profile"},
		{[]*rule.Rule{deny("name:a -name:A")}, "never applies, because name:a -name:A matches nothing"},
		{[]*rule.Rule{deny("name:=ab name:=b client:x -name:*b")}, "never applies, because name:=ab name:=b -name:*b matches nothing"},
		{[]*rule.Rule{deny("name:ab name:c -name:*b -name:a*")}, ""},
		{[]*rule.Rule{deny("arg.path:/etc -arg.force:/etc")}, ""},
		{[]*rule.Rule{deny("method:tools/cal")}, ""}, // contains
		{[]*rule.Rule{deny("method:tool/call")}, "method:tool/call matches no request of clients that Goblin knows"},
		{[]*rule.Rule{deny("server:files method:tools/l*")}, "requests of method:tools/l* have no server and no name"},
		{[]*rule.Rule{deny("server:files method:tools/*")}, ""},
		{[]*rule.Rule{deny("-name:x method:tools/list")}, ""},
		{[]*rule.Rule{deny("destructive:yes method:prompts/get")}, "only tools/call fits destructive:yes"},
		{[]*rule.Rule{deny("destructive:no method:prompts/get")}, ""},
		{[]*rule.Rule{deny("destructive:yes readonly:yes")}, "no tool fits destructive:yes readonly:yes"},
		{[]*rule.Rule{{When: "name:x", Then: rule.Deny, P: &never}}, "p is 0"},
		{[]*rule.Rule{stop("name:x"), deny("name:X")}, "contradicts rule 0, which selects the same and comes first"},
		{[]*rule.Rule{stop("name:x"), stop("name:x server:files")}, "never applies, because rule 0 selects the same requests first"},
		{[]*rule.Rule{stop("name:x name:y"), deny("name:y")}, "never applies"},
		{[]*rule.Rule{stop("server:fi*"), deny("server:=files")}, "never applies"},
		{[]*rule.Rule{stop("name:x client:a"), deny("name:x")}, ""},
		{[]*rule.Rule{stop("name:x -client:a"), deny("name:x")}, ""},
		{[]*rule.Rule{{When: "name:x", Then: rule.Fail, Count: &one}, deny("name:x")}, ""},
		{[]*rule.Rule{{When: "name:x", Then: rule.Fail, On: rule.OnAnswer}, deny("name:x")}, ""},
		{[]*rule.Rule{nil, deny("name:x")}, ""},
		{[]*rule.Rule{stop("client:a"), deny("client:a method:initialize")}, ""},
		{[]*rule.Rule{stop("client:a"), deny("client:a method:tools/call")}, "never applies"},
	} {
		for _, r := range c.rules {
			if r != nil {
				require.NoError(t, r.Compile())
			}
		}
		last := len(c.rules) - 1
		got := rule.Review(c.rules, known, func(i int) string { return "rule " + string(rune('0'+i)) })[last]
		if c.want == "" {
			require.Empty(t, got, c.rules[last].String())
		} else {
			require.Contains(t, got, c.want)
		}
	}
}
