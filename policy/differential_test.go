package policy_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/synapse-agents/synapse/policy"
)

var rounds = flag.Int("rounds", 4000, "how many random scripts TestAgainstShells makes")

// TestAgainstShells asks real shells whether a script that is allowed runs the
// program that the rules deny. Scripts are random sequences of pieces that
// shells are known to read in odd ways; the only program they can name is a
// shell function.
func TestAgainstShells(t *testing.T) {
	shells := map[string]string{}
	for _, name := range []string{"bash", "dash"} {
		if path, err := exec.LookPath(name); err == nil {
			shells[name] = path
		}
	}
	if len(shells) == 0 {
		t.Skip("needs bash or dash")
	}
	pieces := []string{
		"zap", "zap x", "zap", "za", "p", "echo", "echo a", ":", "E", "E", "x", "a=", "a=1", "$a", "${a", "${a:-", "${#a", "${a/", "$(", "`", "$((", "((", "(", ")", "))", "{", "}", "{ ", " }",
		"[[", "]]", "[", "]", "'", "'", `"`, `"`, "$'", `$"`, `\`, `\'`, `\"`, "\\\n", "\n", "\n", ";", ";;", "&", "&&", "|", "||", "|&", "!", "!(", "@(", "#", " #", " ", " ", " ", "\t",
		"<<E\n", "<<'E'\n", "<<-E\n", "<<\\E\n", "<<\"E\"\n", "<<<", "\nE\n", "\n\tE\n", "E)", "if ", "then ", "fi", "for i in a; do ", "done", "case x in ", "x) ", "esac", "while ", "do ", "function g ", "g() ", "time ", "coproc ",
		"eval ", "sh -c ", "command ", "-", "--", "=", "+=", "a[", "a[0]=", "*", "?", "~", ",", "..", "%", "1", "0", "-eq", "=~", "==",
	}
	p := shellPolicy(t, "execute", "zap *", "deny")
	r := rand.New(rand.NewPCG(1, uint64(*rounds)))
	ran := 0
	for range *rounds {
		var b strings.Builder
		for range 2 + r.IntN(14) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		s := b.String()
		if !strings.Contains(s, "za") || shell(p, s).Action != policy.Allow {
			continue
		}
		ran++
		for name, path := range shells {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			cmd := exec.CommandContext(ctx, path, "-c", "PATH=/nowhere\nulimit -t 2\nzap() { printf 'ran-it\\n' >&9; }\nexec 9>&1 1>/dev/null 2>&1 </dev/null\neval \"$1\"", "test", s)
			cmd.Dir = t.TempDir()
			cmd.WaitDelay = time.Second
			out, _ := cmd.Output() // most scripts fail; what matters is what ran before
			cancel()
			if strings.Contains(string(out), "ran-it") {
				t.Errorf("%s runs what is denied: %q", name, s)
			}
		}
	}
	if ran == 0 {
		t.Error("no script was allowed: nothing is tested")
	}
	t.Logf("%d scripts ran", ran)
}
