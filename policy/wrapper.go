package policy

import (
	"slices"
	"strings"
)

// A wrapper is a program that runs another program named by its arguments. Its
// fields say which of its own arguments stand before that program.
type wrapper struct {
	flags    string   // short options without a value
	values   string   // short options with a value, in the same word or the next
	attached string   // short options whose value, if any, is in the same word
	long     []string // long options with a value
	switches []string // long options without one
	operands int      // operands of its own
	assigns  bool     // NAME=value may come first
	extra    bool     // it adds arguments of its own to the program's
	none     string   // short options with which it runs nothing
	why      string   // if not empty: what makes it doubtful in any case
}

// wrappers are the programs that run their arguments as they are.
var wrappers = map[string]wrapper{
	"builtin": {},
	"busybox": {},
	"toybox":  {},
	"command": {flags: "p", none: "vV"},
	"exec":    {flags: "cl", values: "a"},
	"env": {flags: "i0v", values: "uC", assigns: true, long: []string{"unset", "chdir"},
		switches: []string{"ignore-environment", "null", "debug", "list-signal-handling"}},
	"nohup":   {},
	"nice":    {flags: "0123456789", values: "n", long: []string{"adjustment"}},
	"ionice":  {flags: "t", values: "cn", none: "pPu", long: []string{"class", "classdata"}, switches: []string{"ignore"}},
	"chrt":    {flags: "abdfiorRvm", values: "TPD", none: "p", operands: 1},
	"taskset": {flags: "ac", none: "p", operands: 1},
	"time": {flags: "apvqlh", values: "of", long: []string{"output", "format"},
		switches: []string{"append", "portability", "verbose", "quiet"}},
	"timeout": {flags: "vfp", values: "ks", long: []string{"kill-after", "signal"},
		switches: []string{"foreground", "preserve-status", "verbose"}, operands: 1},
	"gtimeout": {flags: "vfp", values: "ks", long: []string{"kill-after", "signal"},
		switches: []string{"foreground", "preserve-status", "verbose"}, operands: 1},
	"stdbuf":     {values: "ioe", long: []string{"input", "output", "error"}},
	"unbuffer":   {flags: "p"},
	"setsid":     {flags: "cfw", switches: []string{"ctty", "fork", "wait"}},
	"setarch":    {flags: "RvBFILSTXZ3", operands: 1},
	"linux32":    {},
	"linux64":    {},
	"caffeinate": {flags: "disum", values: "tw"},
	"sudo": {flags: "AbEHKknPSi", values: "ugpCTRDhrtU", assigns: true, none: "lvV",
		long:     []string{"user", "group", "prompt", "close-from", "chdir", "chroot", "host", "role", "type", "other-user", "command-timeout"},
		switches: []string{"askpass", "background", "preserve-env", "set-home", "non-interactive", "preserve-groups", "stdin", "login", "reset-timestamp"}},
	"doas":    {flags: "nL", values: "uC", assigns: true},
	"pkexec":  {long: []string{"user"}, switches: []string{"disable-internal-agent", "keep-cwd"}},
	"chroot":  {long: []string{"userspec", "groups"}, switches: []string{"skip-chdir"}, operands: 1},
	"unshare": {flags: "muinpUCTrcf", values: "SGRw", switches: []string{"fork", "mount-proc", "map-root-user", "user", "mount", "net", "pid"}},
	"strace":  {flags: "cCdfFhiknqrtTvwxyzZ", values: "abeEIoOpPsSuUX"},
	"ltrace":  {flags: "cCfhiLrStTV", values: "aAeDlnopsuwxX"},
	"xvfb-run": {flags: "al", values: "enpsfwh",
		switches: []string{"auto-servernum"}, long: []string{"server-args", "server-num", "error-file"}},
	"dbus-run-session": {long: []string{"config-file", "dbus-daemon"}},
	"systemd-run":      {flags: "tPSdGqr", values: "pupEH", long: []string{"unit", "property", "uid", "gid", "slice", "setenv"}, switches: []string{"user", "scope", "pty", "pipe", "wait", "quiet"}},
	"proxychains":      {flags: "q", values: "f"},
	"proxychains4":     {flags: "q", values: "f"},
	"torsocks":         {flags: "i"},
	"firejail":         {},
	"faketime":         {flags: "f", operands: 1},
	"flock": {flags: "sxenuoF", values: "wE", long: []string{"timeout", "conflict-exit-code"}, operands: 1,
		switches: []string{"shared", "exclusive", "nonblock", "no-fork", "unlock", "close", "verbose"}},
	"xargs": {flags: "0oprtx", values: "aEILnPsdRSJ", attached: "eil", extra: true,
		long:     []string{"arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"},
		switches: []string{"null", "interactive", "open-tty", "no-run-if-empty", "verbose", "exit", "replace", "eof", "max-lines", "show-limits"}},
	"parallel": {flags: "0kmtvXuq", values: "jIaNnLlPSCd", extra: true, why: "parallel puts its commands together when it runs",
		long: []string{"jobs", "arg-file", "colsep", "delimiter", "max-args", "results", "joblog", "delay", "timeout"}},
}

// options are what a wrapper's own arguments came to.
type options struct {
	rest    []word // the program and its arguments
	given   map[string]word
	nothing bool // no program runs
}

// split parts a wrapper's own arguments from the program's.
func (x *reader) split(name string, w wrapper, args []word) options {
	o := options{given: map[string]word{}}
	unknown := func() { x.doubt("which program " + name + " runs can't be told from its options") }
	operands := w.operands
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if name, _, ok := strings.Cut(arg.text, "="); ok && w.assigns && !arg.opt && !gapped(name) && !strings.HasPrefix(name, "-") {
			x.assigned(name)
			continue
		}
		if !arg.known() {
			// It may be an option, an operand or the program.
			if operands > 0 && !arg.opt && !strings.HasPrefix(arg.text, string(rune(gap))) {
				operands--
				continue
			}
			if operands > 0 || arg.opt || strings.HasPrefix(arg.text, string(rune(gap))) {
				unknown()
			}
			o.rest = args[i:]
			return o
		}
		s := arg.text
		switch {
		case s == "--":
			for i++; operands > 0 && i < len(args); i++ {
				operands--
			}
			for w.assigns && i < len(args) && !args[i].opt {
				name, _, ok := strings.Cut(args[i].text, "=")
				if !ok || gapped(name) {
					break
				}
				x.assigned(name)
				i++
			}
			o.rest = args[min(i, len(args)):]
			return o
		case strings.HasPrefix(s, "--"):
			long, value, has := strings.Cut(s[2:], "=")
			switch {
			case slices.Contains(w.long, long):
				if !has && i+1 < len(args) {
					i++
					o.given[long] = args[i]
				} else {
					o.given[long] = knownWord(value)
				}
			case slices.Contains(w.switches, long):
				o.given[long] = knownWord(value)
			default:
				unknown()
			}
		case len(s) > 1 && s[0] == '-':
			for k := 1; k < len(s); k++ {
				c := s[k : k+1]
				if strings.Contains(w.none, c) {
					o.nothing = true
					return o
				}
				if strings.Contains(w.values, c) {
					switch {
					case k+1 < len(s):
						o.given[c] = knownWord(s[k+1:])
					case i+1 < len(args):
						i++
						o.given[c] = args[i]
					}
					break
				}
				if strings.Contains(w.attached, c) {
					o.given[c] = knownWord(s[k+1:])
					break
				}
				if !strings.Contains(w.flags, c) {
					unknown()
					break
				}
				o.given[c] = word{}
			}
		case s == "-":
		case operands > 0:
			operands--
		default:
			o.rest = args[i:]
			return o
		}
	}
	return o
}

// unwrap judges what a command runs besides itself.
func (x *reader) unwrap(words []word) {
	name := words[0].text[strings.LastIndexByte(words[0].text, '/')+1:]
	args := words[1:]
	if w, ok := wrappers[name]; ok {
		x.wrapped(name, w, args)
		return
	}
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "rbash", "yash", "posh":
		x.shell(name, args)
	case "fish", "csh", "tcsh", "pwsh", "powershell", "cmd", "cmd.exe", "nu", "elvish", "xonsh":
		x.doubt(name + " reads its commands in another language")
		x.shell(name, args)
	case "eval":
		x.joined(name, args)
	case "trap":
		x.trap(args)
	case ".", "source":
		x.doubt(name + " runs a file's commands in this shell")
	case "alias":
		if len(args) > 0 {
			x.doubt("an alias changes what later words mean")
		}
	case "find", "gfind":
		x.find(args)
	case "fd", "fdfind":
		x.fd(args)
	case "watch":
		x.watch(args)
	case "ssh":
		x.ssh(args)
	case "su", "runuser", "script":
		x.commandOption(name, args)
	case "git":
		x.git(args)
	default:
		if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || strings.HasPrefix(name, "ld.so") {
			x.doubt("the program is run through the loader")
			if len(args) > 0 {
				x.command(args, nil)
			}
			return
		}
		x.program(name, args)
	}
}

// wrapped judges the program that a wrapper runs.
func (x *reader) wrapped(name string, w wrapper, args []word) {
	if w.why != "" {
		x.doubt(w.why)
	}
	if name == "env" && x.splitString(args) {
		return
	}
	o := x.split(name, w, args)
	if name == "flock" {
		// flock FILE -c SCRIPT
		if len(o.rest) > 1 && o.rest[0].known() && (o.rest[0].text == "-c" || o.rest[0].text == "--command") {
			x.scriptWord(name, o.rest[1])
			return
		}
	}
	inner := slices.Clone(o.rest)
	if o.nothing || len(inner) == 0 {
		if name == "parallel" || name == "sudo" && !o.nothing {
			x.doubt(name + " reads its commands from somewhere else")
		}
		return
	}
	if name == "parallel" {
		for i, a := range inner {
			if strings.HasPrefix(a.text, "::") {
				inner = inner[:i]
				break
			}
		}
		if len(inner) == 0 {
			return
		}
		if len(inner) == 1 && inner[0].known() {
			x.script(inner[0].text)
		}
	}
	if w.extra {
		inner = fill(inner, replaced(o.given))
	}
	x.command(inner, nil)
}

// replaced returns the text in xargs' command that its input takes the place of.
func replaced(given map[string]word) string {
	if v, ok := given["I"]; ok {
		if !v.known() {
			return "" // everything may be replaced
		}
		return v.text
	}
	if v, ok := given["i"]; ok && v.text != "" {
		return v.text
	}
	if v, ok := given["replace"]; ok && v.text != "" {
		return v.text
	}
	if v, ok := given["J"]; ok && v.known() && v.text != "" {
		return v.text
	}
	return "{}"
}

// fill puts gaps where a program's input goes into the words of a command, and
// at its end.
func fill(words []word, mark string) []word {
	out := slices.Clone(words)
	for i := range out {
		switch {
		case mark == "":
			out[i].text = string(rune(gap))
		case strings.Contains(out[i].text, mark):
			out[i].text = strings.ReplaceAll(out[i].text, mark, string(rune(gap)))
		}
	}
	return append(out, unknownWords("..."))
}

// splitString reads env -S, which takes a whole command in one word.
func (x *reader) splitString(args []word) bool {
	for i, a := range args {
		if !a.known() || !strings.HasPrefix(a.text, "-") {
			return false
		}
		s, ok := strings.CutPrefix(a.text, "--split-string")
		if ok {
			s = strings.TrimPrefix(s, "=")
		} else if k := strings.IndexByte(a.text, 'S'); k > 0 && !strings.HasPrefix(a.text, "--") && !strings.ContainsAny(a.text[1:k], "uC") {
			s, ok = a.text[k+1:], true
		}
		if !ok {
			continue
		}
		x.doubt("env splits a text into a command by rules of its own")
		rest := args[i+1:]
		if s == "" && len(rest) > 0 {
			x.scriptWord("env", rest[0])
			return true
		}
		x.joined("env", append([]word{knownWord(s)}, rest...))
		return true
	}
	return false
}

// scriptWord judges a script that is one argument.
func (x *reader) scriptWord(name string, w word) {
	if !w.known() {
		x.doubt("what " + name + " runs is only known when it runs")
		return
	}
	x.script(w.text)
}

// joined judges a script that is all arguments, put together with blanks.
func (x *reader) joined(name string, args []word) {
	if len(args) == 0 {
		return
	}
	for _, a := range args {
		if !a.known() {
			x.doubt("what " + name + " runs is only known when it runs")
			return
		}
	}
	x.script(joinText(args))
}

// shell judges what a shell is told to run.
func (x *reader) shell(name string, args []word) {
	inline, stdin := false, false
	i := 0
options:
	for ; i < len(args); i++ {
		a := args[i]
		if !a.known() {
			break
		}
		s := a.text
		switch {
		case s == "--" || s == "-":
			i++
			break options
		case strings.HasPrefix(s, "--"):
			switch long, _, _ := strings.Cut(s[2:], "="); long {
			case "rcfile", "init-file":
				x.doubt(name + " reads a start file")
				i++
			case "command":
				inline = true
			}
		case len(s) > 1 && (s[0] == '-' || s[0] == '+'):
			inline = inline || s[0] == '-' && strings.Contains(s, "c")
			stdin = stdin || s[0] == '-' && strings.Contains(s, "s")
			if strings.Contains(s, "i") || strings.Contains(s, "l") {
				x.doubt(name + " reads its start files")
			}
			i += strings.Count(s, "o") + strings.Count(s, "O")
		default:
			break options
		}
	}
	switch {
	case i >= len(args):
		x.doubt(name + " reads commands from its input")
	case inline:
		x.scriptWord(name, args[i])
	case stdin, !args[i].known(), strings.HasPrefix(args[i].text, "/dev/"), strings.HasPrefix(args[i].text, "/proc/"):
		x.doubt(name + " reads commands from its input")
	}
}

func (x *reader) trap(args []word) {
	if len(args) > 0 && args[0].known() && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) < 2 || args[0].known() && (args[0].text == "-" || args[0].text == "-l" || args[0].text == "-p") {
		return
	}
	x.scriptWord("trap", args[0])
}

// findValues are the tests of find that take the next word as a value.
var findValues = []string{"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-newer", "-type", "-size", "-mtime", "-mmin", "-atime", "-ctime", "-user", "-group", "-perm", "-maxdepth", "-mindepth", "-samefile"}

// find judges what find does with what it finds.
func (x *reader) find(args []word) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		value := i > 0 && !a.opt && slices.Contains(findValues, args[i-1].text)
		glob := strings.HasPrefix(a.raw, "~") || strings.HasPrefix(a.raw, "*")
		if a.opt || strings.HasPrefix(a.text, string(rune(gap))) && !value && !glob {
			x.doubt("an argument of find may turn out as an action")
			continue
		}
		switch a.text {
		case "-delete":
			x.doubt("find deletes what it finds")
			x.emit([]word{knownWord("rm"), unknownWords("...")}, nil)
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			x.doubt("find writes to a file")
		case "-exec", "-execdir", "-ok", "-okdir":
			var inner []word
			for i++; i < len(args); i++ {
				if t := args[i]; t.known() && (t.text == ";" || t.text == "+" && len(inner) > 0 && inner[len(inner)-1].text == "{}") {
					break
				}
				inner = append(inner, args[i])
			}
			if len(inner) > 0 {
				inner = fill(inner, "{}")
				x.command(inner[:len(inner)-1], nil)
			}
		}
	}
}

func (x *reader) fd(args []word) {
	for i, a := range args {
		if a.opt {
			x.doubt("an argument of fd may turn out as an action")
		}
		switch a.text {
		case "-x", "-X", "--exec", "--exec-batch":
			if i+1 < len(args) {
				x.command(fill(args[i+1:], "{"), nil)
			}
			return
		}
		if strings.HasPrefix(a.text, "--exec") || strings.HasPrefix(a.text, "-x") || strings.HasPrefix(a.text, "-X") {
			x.doubt("fd runs a command for what it finds")
		}
	}
}

func (x *reader) watch(args []word) {
	o := x.split("watch", wrapper{flags: "bcCdegprtwx", values: "nqs",
		long:     []string{"interval", "equexit", "shotsdir"},
		switches: []string{"beep", "color", "no-color", "differences", "errexit", "chgexit", "precise", "no-rerun", "no-title", "no-wrap", "exec"}}, args)
	if len(o.rest) == 0 {
		return
	}
	_, direct := o.given["x"]
	if _, long := o.given["exec"]; direct || long {
		x.command(o.rest, nil)
		return
	}
	x.joined("watch", o.rest)
}

func (x *reader) ssh(args []word) {
	for _, a := range args {
		if low := strings.ToLower(a.text); !a.known() || strings.Contains(low, "command") || strings.HasPrefix(a.text, "-F") {
			x.doubt("ssh may run a command here")
			break
		}
	}
	o := x.split("ssh", wrapper{flags: "46AaCfGgKkMNnqsTtVvXxYy", values: "BbcDEeFIiJLlmOopQRSWw", operands: 1}, args)
	x.joined("ssh", o.rest)
}

// commandOption judges su -c and its like.
func (x *reader) commandOption(name string, args []word) {
	for i, a := range args {
		switch {
		case a.opt:
			x.doubt("what " + name + " runs is only known when it runs")
		case a.text == "-c" || a.text == "--command" || strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.HasSuffix(a.text, "c"):
			if i+1 < len(args) {
				x.scriptWord(name, args[i+1])
			}
			return
		case strings.HasPrefix(a.text, "--command="):
			x.scriptWord(name, word{text: strings.TrimPrefix(a.text, "--command="), opt: a.opt})
			return
		case strings.HasPrefix(a.text, "-c"):
			x.scriptWord(name, word{text: a.text[2:], opt: a.opt})
			return
		}
	}
	if name != "script" || len(args) == 0 {
		x.doubt(name + " starts a shell")
	}
}
