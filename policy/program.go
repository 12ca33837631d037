package policy

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// steers reports whether a variable decides which programs run, or what they
// load or execute.
func steers(name string) bool {
	switch name {
	case "PATH", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "CDPATH", "GLOBIGNORE", "EXECIGNORE",
		"SHELL", "HOME", "XDG_CONFIG_HOME", "ZDOTDIR", "FPATH", "PAGER", "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "LESS", "LESSOPEN", "LESSCLOSE",
		"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PERL5LIB", "PERL5OPT", "PERL5DB", "PERLLIB", "RUBYLIB", "RUBYOPT",
		"NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "GOFLAGS", "CC", "CXX", "LD", "AR", "AS",
		"MAKEFLAGS", "RUSTC", "RUSTC_WRAPPER", "RUSTFLAGS", "RUSTDOCFLAGS", "GCONV_PATH", "TERMINFO", "TERMCAP", "SSH_ASKPASS", "SUDO_ASKPASS", "SUDO_EDITOR",
		"TAR_OPTIONS", "RSYNC_RSH", "CVS_RSH", "AWKPATH", "AWKLIBPATH", "BASH_LOADABLES_PATH", "OPENSSL_CONF":
		return true
	}
	for _, harmless := range []string{"GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_LITERAL_PATHSPECS"} {
		if strings.HasPrefix(name, harmless) {
			return false
		}
	}
	for _, prefix := range []string{"LD_", "DYLD_", "GIT_", "BASH_FUNC_", "npm_config_", "NPM_CONFIG_", "CARGO_", "PIP_", "UV_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// An inline is a program that takes code of its own as an argument, or from
// its input where no file is named.
type inline struct {
	letters string   // short options that bring code
	long    []string // prefixes of long options that do
}

var inlines = map[string]inline{
	"python":    {letters: "c"},
	"pypy":      {letters: "c"},
	"perl":      {letters: "eEM"},
	"ruby":      {letters: "er"},
	"node":      {letters: "epr", long: []string{"--eval", "--print", "--require", "--import", "--loader", "--experimental-loader"}},
	"nodejs":    {letters: "epr", long: []string{"--eval", "--print", "--require", "--import", "--loader"}},
	"bun":       {letters: "epr", long: []string{"--eval", "--print", "--preload"}},
	"php":       {letters: "rBRE", long: []string{"--run", "--process-"}},
	"lua":       {letters: "el"},
	"luajit":    {letters: "el"},
	"Rscript":   {letters: "e"},
	"osascript": {letters: "e"},
	"tclsh":     {},
	"guile":     {letters: "c"},
	"julia":     {letters: "eE", long: []string{"--eval", "--print"}},
	"elixir":    {letters: "e", long: []string{"--eval"}},
	"groovy":    {letters: "e"},
	"scala":     {letters: "e"},
	"ghc":       {letters: "e"},
	"expect":    {letters: "c"},
	"gdb":       {letters: "x", long: []string{"-ex", "--ex", "--eval-command", "--command", "--args"}},
	"ex":        {letters: "cS"},
	"vi":        {letters: "cS", long: []string{"--cmd"}},
	"vim":       {letters: "cS", long: []string{"--cmd"}},
	"nvim":      {letters: "cSl", long: []string{"--cmd"}},
	"emacs":     {letters: "f", long: []string{"--eval", "--funcall", "-eval", "--load", "--execute"}},
}

// options that let a program run another one, by the program.
var running = map[string][]string{
	"tar":       {"--to-command", "--checkpoint-action", "-I", "--use-compress-program", "--rsh-command", "-F", "--info-script", "--new-volume-script"},
	"bsdtar":    {"--use-compress-program"},
	"rsync":     {"-e", "--rsh", "--rsync-path"},
	"scp":       {"-S", "-o"},
	"sftp":      {"-S", "-o"},
	"zip":       {"-T", "-TT", "--unzip-command"},
	"man":       {"-P", "--pager", "-H", "--html"},
	"make":      {"--eval", "SHELL=", ".SHELLFLAGS="},
	"gmake":     {"--eval", "SHELL=", ".SHELLFLAGS="},
	"go":        {"-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"},
	"gcc":       {"-wrapper"},
	"g++":       {"-wrapper"},
	"sort":      {"--compress-program"},
	"split":     {"--filter"},
	"rg":        {"--pre"},
	"wget":      {"--use-askpass"},
	"npm":       {"--script-shell"},
	"npx":       {"-c", "--call"},
	"cargo":     {"--config"},
	"tcpdump":   {"-z"},
	"nmap":      {"--script"},
	"openssl":   {"-engine", "-provider"},
	"hash":      {"-p"},
	"enable":    {"-f"},
	"complete":  {"-C", "-F"},
	"compgen":   {"-C", "-F", "-W"},
	"bind":      {"-x"},
	"mapfile":   {"-C"},
	"readarray": {"-C"},
	"nc":        {"-e", "-c"},
	"ncat":      {"-e", "-c", "--exec", "--sh-exec", "--lua-exec"},
	"netcat":    {"-e", "-c"},
	"deno":      {"eval"},
	"jobs":      {"-x"},
}

// always are programs that run something that can't be seen here.
var always = []string{"fc", "at", "batch", "crontab", "tmux", "screen", "expect", "rlwrap", "nsenter", "socat", "dtach", "reptyr", "ed", "dc", "m4"}

// runners are programs that run their arguments as a command, some of them
// behind a word of their own.
var runners = map[string][]string{
	"npx": nil, "bunx": nil, "uvx": nil, "pnpx": nil, "entr": nil, "hyperfine": nil, "watchexec": nil, "nodemon": nil, "dotenv": nil, "ssh-agent": nil, "dbus-launch": nil,
	"nix-shell": nil, "setpriv": nil, "prlimit": nil, "numactl": nil, "valgrind": nil, "perf": nil, "cgexec": nil, "gosu": nil, "su-exec": nil, "tini": nil, "dumb-init": nil, "catchsegv": nil,
	"uv": {"run", "x"}, "poetry": {"run"}, "pipenv": {"run"}, "pdm": {"run"}, "hatch": {"run"}, "rye": {"run"}, "conda": {"run"}, "mamba": {"run"}, "pipx": {"run"},
	"bundle": {"exec"}, "rbenv": {"exec"}, "pyenv": {"exec"}, "asdf": {"exec"}, "mise": {"exec", "x"}, "direnv": {"exec"}, "npm": {"exec", "x"}, "pnpm": {"exec", "dlx"}, "yarn": {"exec", "dlx"}, "bun": {"x"},
	"nix": {"run", "shell", "develop"}, "docker": {"run", "exec"}, "podman": {"run", "exec"}, "nerdctl": {"run", "exec"}, "docker-compose": {"run", "exec"}, "kubectl": {"exec", "run", "debug"}, "lxc": {"exec"}, "wsl": nil, "machinectl": {"shell"},
	"op": {"run"}, "doppler": {"run"}, "aws-vault": {"exec"}, "go": {"run", "tool"}, "cargo": {"run"},
}

// awkRuns finds what lets an awk program run or write something.
var awkRuns = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bsystem\b|getline|\||print[^;}\n]*>|@(load|include)|@[a-zA-Z_]`)
})

// sedRuns finds GNU sed's command and flag that execute, and those that write.
var sedRuns = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^A-Za-z\\])[0-9gpiImM]*[ewW][0-9gpiImM]*(?:[\s;}]|$)`)
})

// program judges a program that is neither a shell nor a wrapper: whether its
// arguments bring code.
func (x *reader) program(name string, args []word) {
	base := strings.TrimRight(name, "0123456789.")
	if slices.Contains(always, name) {
		x.doubt("what " + name + " runs is not in its words")
	}
	for _, option := range running[name] {
		for _, a := range args {
			if !a.known() && strings.HasPrefix(a.text, string(rune(gap))) {
				continue
			}
			if strings.HasPrefix(a.text, option) || len(option) == 2 && cluster(a.text, option[1:]) {
				x.doubt("an option of " + name + " runs another program")
			}
		}
	}
	if behind, ok := runners[name]; ok {
		if behind == nil {
			x.guesses(args)
		} else if i := slices.IndexFunc(args, func(a word) bool { return slices.Contains(behind, a.text) }); i >= 0 {
			x.guesses(args[i+1:])
		}
	}
	switch name {
	case "read", "mapfile", "readarray", "printf", "getopts", "unset", "export", "declare", "local", "typeset", "readonly", "test", "[", "wait", "let":
		x.variables(name, args)
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		for _, a := range args {
			if !a.known() && (a.opt || a.raw != "" && !strings.ContainsAny(a.raw, "*?[~")) || a.known() && awkRuns().MatchString(strings.ReplaceAll(a.text, "||", "")) {
				x.doubt(name + " may run commands or write files")
				break
			}
		}
	case "sed", "gsed":
		for i, a := range args {
			script := i == 0 || args[i-1].text == "-e" || !strings.HasPrefix(a.text, "-") && strings.HasPrefix(args[i-1].text, "-")
			code := strings.TrimPrefix(strings.TrimPrefix(a.text, "--expression="), "-e")
			if code != a.text || script && !strings.HasPrefix(a.text, "-") {
				if !a.known() || sedRuns().MatchString(code) {
					x.doubt(name + " may run commands or write files")
				}
			}
		}
	}
	in, ok := inlines[base]
	if !ok {
		return
	}
	operand := false
	for _, a := range args {
		switch {
		case a.opt, strings.HasPrefix(a.text, string(rune(gap))):
			x.doubt("what " + name + " runs is only known when it runs")
			return
		case operand:
		case a.text == "-", strings.HasPrefix(a.text, "/dev/"), strings.HasPrefix(a.text, "+"):
			x.doubt("the code that " + name + " runs is not a file's")
			return
		case !strings.HasPrefix(a.text, "-"):
			operand = true
		case slices.ContainsFunc(in.long, func(p string) bool { return strings.HasPrefix(a.text, p) }), cluster(a.text, in.letters):
			x.doubt("the code that " + name + " runs is not a file's")
			return
		case slices.Contains([]string{"--version", "-V", "--help", "-h", "-v"}, a.text):
			operand = true // it runs nothing
		}
	}
	if !operand {
		x.doubt(name + " reads code from its input")
	}
}

// cluster reports whether s is a word of short options with one of letters.
func cluster(s, letters string) bool {
	return len(s) > 1 && s[0] == '-' && s[1] != '-' && letters != "" && strings.ContainsAny(s[1:], letters)
}

// variables looks at builtins that set or evaluate variables named by words.
func (x *reader) variables(name string, args []word) {
	if name == "test" || name == "[" || name == "printf" {
		at := slices.IndexFunc(args, func(a word) bool { return strings.HasPrefix(a.text, "-v") || strings.HasPrefix(a.text, "-R") })
		if at < 0 {
			return
		}
		args = args[at:]
		if name == "printf" {
			args = args[:min(2, len(args))]
		}
	}
	for _, a := range args {
		if name != "read" && name != "unset" && name != "printf" && cluster(a.text, "in") {
			x.doubt(name + " makes a variable's value be evaluated")
		}
		variable, _, _ := strings.Cut(strings.TrimPrefix(a.text, "-v"), "=")
		if strings.Contains(variable, "[") && strings.ContainsAny(a.text, "$`\x00") {
			x.doubt(name + " evaluates a subscript")
		}
		if a.opt || strings.HasPrefix(a.text, string(rune(gap))) {
			x.doubt("which variable " + name + " is about is only known when it runs")
			continue
		}
		x.assigned(variable)
	}
}

// gitValues are git's own options that take a value in the next word.
var gitValues = []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env", "--list-cmds", "--attr-source"}

// git judges git behind its own options ("git -C dir push" is a git push), and
// what its options and settings would run.
func (x *reader) git(args []word) {
	i := 0
	for i < len(args) {
		a := args[i]
		if !a.known() {
			if a.opt || strings.HasPrefix(a.text, string(rune(gap))) {
				x.doubt("which git command runs is only known when it runs")
			}
			break
		}
		if !strings.HasPrefix(a.text, "-") || a.text == "-" {
			break
		}
		name, _, has := strings.Cut(a.text, "=")
		switch {
		case strings.HasPrefix(a.text, "-c") || name == "--config-env" || name == "--exec-path" && has:
			x.doubt("git settings on the command line can run programs")
		case name == "--git-dir" || name == "--work-tree":
			x.doubt("another repository's settings can run programs")
		}
		i++
		if !has && slices.Contains(gitValues, a.text) {
			i++
		}
	}
	i = min(i, len(args))
	rest := args[i:]
	if len(rest) == 0 {
		return
	}
	if i > 0 {
		x.emit(append([]word{knownWord("git")}, rest...), nil)
	}
	sub := rest[0].text
	for _, a := range rest[1:] {
		s := a.text
		if hasAnyPrefix(s, "--upload-pack", "--receive-pack", "--exec", "--extcmd", "--open-files-in-pager", "--textconv-cmd", "ext::", "fd::", "--config=", "--template") {
			x.doubt("an argument of git runs another program")
		}
		switch sub {
		case "config":
			low := strings.ToLower(s)
			if !a.known() || hasAnyPrefix(low, "alias.", "core.", "diff.", "difftool.", "merge.", "mergetool.", "filter.", "credential.", "gpg.", "include", "pager.",
				"interactive.", "sequence.", "remote.", "url.", "protocol.", "submodule.", "uploadpack.", "receive.", "init.", "trailer.", "web.", "browser.", "man.", "-f", "--file", "-e", "--edit") {
				x.doubt("a git setting can run programs")
			}
		case "rebase", "difftool":
			if cluster(s, "x") {
				x.doubt("an argument of git runs another program")
			}
		case "grep":
			if strings.HasPrefix(s, "-O") {
				x.doubt("an argument of git runs another program")
			}
		case "clone", "fetch", "pull", "ls-remote":
			if hasAnyPrefix(s, "-u", "-c") {
				x.doubt("an argument of git runs another program")
			}
		}
	}
	switch sub {
	case "bisect":
		if len(rest) > 2 && rest[1].text == "run" {
			x.command(rest[2:], nil)
		}
	case "submodule":
		for k, a := range rest {
			if a.text == "foreach" {
				inner := rest[k+1:]
				for len(inner) > 0 && strings.HasPrefix(inner[0].text, "-") {
					inner = inner[1:]
				}
				x.joined("git submodule foreach", inner)
				break
			}
		}
	case "filter-branch", "for-each-repo", "daemon", "instaweb", "web--browse":
		x.doubt("git " + sub + " runs other programs")
	}
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
