package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/internal/settings"
)

// dotenv loads a .env and returns the variables A, B and C, which the user's
// settings name as keys.
func dotenv(t *testing.T, text string) (map[string]string, []settings.Warning) {
	t.Helper()
	m := newMachine(t).trust().write(dotenvFile, text)
	m.write(userFile, `{"providers": {"a": {"api_key_env": "A"}, "b": {"api_key_env": "B"}, "c": {"api_key_env": "C"}}}`)
	s, warnings := m.load()
	got := map[string]string{}
	for _, name := range s.Secrets.Names() {
		secret, _ := s.Secrets.Get(name)
		got[name] = secret.Reveal()
	}
	return got, warnings
}

func TestDotenv(t *testing.T) {
	tests := []struct {
		name, text string
		want       map[string]string
		warn       []int // lines
	}{
		{"bare", "A=1\nB= two words \nC=", map[string]string{"A": "1", "B": "two words"}, nil},
		{"blanks, comments, export", "\n# A=0\n  export A = 1 # one\n\texport\tB=a#b\nexport=5\n", map[string]string{"A": "1", "B": "a#b"}, nil},
		{"only a comment", "A=#x\nB= # y\nC=z", map[string]string{"C": "z"}, nil},
		{"quotes", `A='a "b" \n $C # d'` + "\n" + `B="a 'b' \n\t\"\\\$ \d" # e`, map[string]string{"A": `a "b" \n $C # d`, "B": "a 'b' \n\t\"\\$ \\d"}, nil},
		{"several lines", "A='one\ntwo'\nB=\"one\n\ntwo\"\nC=3", map[string]string{"A": "one\ntwo", "B": "one\n\ntwo", "C": "3"}, nil},
		{"empty quotes", "A=''\nB=\"\"\nC=x", map[string]string{"C": "x"}, nil},
		{"nothing is expanded", "A=x\nB=$A\nC=\"${A} `id` $(id)\"", map[string]string{"A": "x", "B": "$A", "C": "${A} `id` $(id)"}, nil},
		{"equals signs", "A=b=c==\nB=\"=\"", map[string]string{"A": "b=c==", "B": "="}, nil},
		{"CRLF and a byte order mark", "\xef\xbb\xbfA=1\r\nB='x\r\ny'\r\n", map[string]string{"A": "1", "B": "x\ny"}, nil},
		{"the last one counts", "A=1\nA=2", map[string]string{"A": "2"}, nil},
		{"bad lines", "A=1\nnot an assignment\n9=x\nB=2\n=5", map[string]string{"A": "1", "B": "2"}, []int{2, 3, 5}},
		{"an open quote hides its own line only", "X='open\nA=1\nB=2", map[string]string{"A": "1", "B": "2"}, []int{1}},
		{"text behind a quote", "X='a'b\nA=1", map[string]string{"A": "1"}, []int{1}},
		{"no UTF-8", "A=\xff\n", map[string]string{}, []int{0}},
		{"other scripts", "A=模型 é", map[string]string{"A": "模型 é"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, warnings := dotenv(t, tt.text)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var lines []int
			for _, w := range warnings {
				if w.Code != settings.WarnDotenv {
					t.Errorf("warning %v", w)
				}
				lines = append(lines, w.Line)
			}
			if !slices.Equal(lines, tt.warn) {
				t.Errorf("warnings %v, want lines %v", warnings, tt.warn)
			}
		})
	}
}

// A line about one of our variables that can't be read is an error: it may have
// been a restriction.
func TestDotenvRestrictionThatCannotBeRead(t *testing.T) {
	for text, line := range map[string]int{"X=1\nAGENT_READONLY true\n": 2, "AGENT_READONLY='true\nX=1\n": 1, "export AGENT_EXCLUDED_TOOLS": 1, "OPENAI_BASE_URL='x' y": 1} {
		if e := newMachine(t).write(dotenvFile, text).bad(); e.Line != line || e.Var == "" {
			t.Errorf("%q: %v, want line %d", text, e, line)
		}
	}
}

func TestDotenvTwice(t *testing.T) {
	m := newMachine(t).write(dotenvFile, "AGENT_MODEL=openai:a\nAGENT_MODEL=openai:b\n")
	s, warnings := m.load()
	if s.Model.V != "openai:b" || s.Model.Origin.Line != 2 || len(warnings) != 1 || warnings[0].Line != 2 || !strings.Contains(warnings[0].Message, "line 1") {
		t.Errorf("model %v, warnings %v", s.Model, warnings)
	}
}

func TestDotenvThatIsADirectory(t *testing.T) {
	m := newMachine(t).write("ws/.env/bin/activate", "") // a Python environment
	if _, warnings := m.load(); len(warnings) > 0 {
		t.Errorf("warnings %v", warnings)
	}
}

// FuzzDotenv gives any .env. In a workspace that is not trusted no key comes
// out of it, and a quoted value comes back as it was.
func FuzzDotenv(f *testing.F) {
	for _, seed := range []string{"A=1", "export A='x\ny'\nB=\"\\n\"", "A='", "=", "AGENT_READONLY=true\nOPENAI_API_KEY=x\nOPENAI_BASE_URL=http://x", "A=1 # c\r\nB", "\xef\xbb\xbfA=$B"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := newMachine(t).write(dotenvFile, text)
		if s, _, err := settings.Load(m.src); err == nil && len(s.Secrets.Names()) > 0 {
			t.Fatalf("an untrusted .env set %v", s.Secrets)
		}
		quoted := `A="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
		want := map[string]string{"A": strings.ReplaceAll(text, "\r\n", "\n")}
		if text == "" || strings.ContainsRune(text, 0) || strings.ToValidUTF8(text, "") != text || strings.Contains(text, "\\\r") {
			return // empty says nothing, and the rest is no text
		}
		got, _ := dotenv(t, quoted)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: -want +got:\n%s", quoted, diff)
		}
	})
}
