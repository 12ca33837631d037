package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/synapse-agents/synapse/policy"
)

func shell(p policy.Policy, command string) policy.Decision {
	return p.Check(policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{command}})
}

func shellPolicy(t testing.TB, triples ...string) policy.Policy {
	return policy.Policy{Allow: []string{"execute"}, Rules: []policy.Source{rules(t, "rules", triples...)}}
}

// What must be denied outright under a denial of "rm *".
func TestDeniedHoweverWritten(t *testing.T) {
	p := shellPolicy(t, "execute", "rm *", "deny")
	for _, command := range []string{
		"rm", "rm x", " rm x", "\trm\tx", "rm -rf /", "rm\\\n x", "r\\\nm x",
		`r''m x`, `r""m x`, `"rm" x`, `'rm' x`, `\rm x`, `r\m x`, `'r'"m" x`, `$'rm' x`, `$'\x72m' x`, `$'\162m' x`, `$'\u0072m' x`,
		"/bin/rm x", "./rm x", "../../bin/rm x", `/bin/"rm" x`, "//bin//rm x", "~/bin/rm x",
		"true; rm x", "true && rm x", "false || rm x", "true | rm x", "true |& rm x", "true & rm x", "rm x &", "! rm x", "true\nrm x",
		"(rm x)", "{ rm x; }", "( ( rm x ) )", "if true; then rm x; fi", "if rm x; then :; fi", "if a; then b; elif rm x; then c; else d; fi",
		"while rm x; do :; done", "until rm x; do :; done", "for i in a; do rm x; done", "for ((;;)); do rm x; done", "select i in a; do rm x; done",
		"case a in a) rm x;; esac", "case $(rm x) in a) ;; esac", "case a in $(rm x)) ;; esac",
		"echo $(rm x)", "echo `rm x`", `echo "$(rm x)"`, "echo \"`rm x`\"", "echo `echo \\`rm x\\``", "echo ${x:-$(rm x)}", "echo \"${x:-$(rm x)}\"", "echo ${x/a/$(rm x)}", "echo ${x#$(rm x)}",
		"echo $((1+$(rm x)))", "echo ${a[$(rm x)]}", "((a=$(rm x)))", "let a=$(rm x)", "x=$(rm x)", "x=$(rm x) ls", "a=($(rm x))", "a[$(rm x)]=1", "export a=$(rm x)", "local a=$(rm x)",
		"declare -A a=([k]=$(rm x))", "readonly a=`rm x`",
		"cat <(rm x)", "tee >(rm x)", "cat < $(rm x)", "ls > $(rm x)", "cat <<E\n$(rm x)\nE", "cat <<E\n`rm x`\nE", "cat <<-E\n\t$(rm x)\nE", "cat <<< $(rm x)", `cat <<< "$(rm x)"`,
		"[[ -n $(rm x) ]]", "[[ a == $(rm x) ]]", "[[ a =~ $(rm x) ]]", "[ -n $(rm x) ]", "test `rm x`",
		"f() { rm x; }", "f() { rm x; }; f", "function f { rm x; }", "f() (rm x)", "coproc rm x", "coproc N { rm x; }", "time rm x", "time -p rm x", "! time rm x",
		"env rm x", "env -i rm x", "env A=1 B=2 rm x", "env A=$a rm x", "env -- A=\"$a\" rm x", "sudo A=$a -u b rm x", "env -u A rm x", "env -- rm x", "env - rm x", "env -C /tmp rm x", "env --chdir=/tmp rm x", "/usr/bin/env rm x", "env -S 'rm x'", "env -S'rm x'", "env --split-string='rm x'", "env -iS 'rm x'",
		"command rm x", "command -p rm x", "command -- rm x", "builtin rm x", "exec rm x", "exec -a ls rm x", "exec -cl rm x", "exec env rm x",
		"nohup rm x", "nice rm x", "nice -n 5 rm x", "nice -5 rm x", "nice --adjustment=3 rm x", "ionice -c 2 -n 0 rm x", "ionice -c2 rm x", "timeout 5 rm x", "timeout -k 5 10 rm x", "timeout --signal=KILL 5 rm x", "timeout -s KILL 5 rm x",
		"stdbuf -oL rm x", "stdbuf -o L rm x", "setsid rm x", "setsid -w rm x", "sudo rm x", "sudo -u root rm x", "sudo -uroot rm x", "sudo -E -H rm x", "sudo A=1 rm x", "sudo -- rm x", "sudo --user=root rm x", "doas rm x", "doas -u root rm x",
		"chroot /x rm x", "chroot --userspec=a /x rm x", "taskset -c 1 rm x", "flock /tmp/l rm x", "flock /tmp/l -c 'rm x'", "flock -w 3 /tmp/l rm x", "strace -f rm x", "strace -o out rm x", "unshare -r rm x", "xvfb-run -a rm x",
		"xargs rm", "ls | xargs rm", "xargs -0 rm", "xargs -n 1 rm", "xargs -I{} rm {}", "xargs -I % rm %", "xargs -i rm {}", "xargs -d '\\n' rm -f", "xargs --max-args=1 rm", "xargs env rm", "xargs sh -c 'rm x'",
		"find . -exec rm {} \\;", "find . -exec rm {} +", "find . -execdir rm {} ';'", "find . -ok rm {} \\;", "find . -okdir rm {} \\;", "find . -delete", "find . -name '*.go' -exec echo {} \\; -exec rm {} \\;", "find . -exec sh -c 'rm x' \\;", "find . -exec env rm {} +", "fd -x rm", "fd . -X rm",
		"sh -c 'rm x'", `bash -c "rm x"`, "zsh -c 'rm x'", "dash -c 'rm x'", "ksh -c 'rm x'", "/bin/sh -c 'rm x'", "sh -ec 'rm x'", "sh -e -c 'rm x'", "bash -o pipefail -c 'rm x'", "bash -lc 'rm x'", "bash --norc -c 'rm x'", "sh -c 'sh -c \"rm x\"'", "sh -c 'echo $(rm x)'", "sh -c $'rm\\tx'", "bash -c 'rm \"$@\"' _ x",
		"busybox rm x", "busybox sh -c 'rm x'", "toybox rm x",
		"eval rm x", "eval 'rm x'", "eval 'rm' 'x'", "eval eval rm x", `eval "r""m x"`, "trap 'rm x' EXIT", "trap -- 'rm x' EXIT", "watch rm x", "watch -n 1 'rm x'", "watch -x rm x", "parallel rm ::: x", "parallel 'rm x' ::: a", "ssh host rm x", "ssh -p 22 host 'rm x'", "su -c 'rm x'", "su root -c 'rm x'", "runuser -u a -c 'rm x'", "script -c 'rm x' out", "script -qc 'rm x' out",
		"git bisect run rm x", "git submodule foreach 'rm x'", "git submodule foreach --recursive rm x", "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
		"A=1 rm x", "A=1 B=$(ls) rm x", ">out rm x", "2>/dev/null rm x", "<in rm x", "rm<in", "rm>/dev/null",
		"# note\nrm x", "ls # rm\nrm x", "alias ls='ls'; rm x", "rm $'\\n'", "rm *", "rm ~", "rm $x", `rm "$@"`, "rm {a,b}", "rm -- x", "rm $(ls)", "rm \"$(ls)\"",
		"sudo env nohup timeout 5 nice -n 3 sh -c 'xargs rm'", "true && (cd /tmp && { rm x; })", "echo a; echo b; echo c | (sort; rm x)",
	} {
		if d := shell(p, command); d.Action != policy.Deny {
			t.Errorf("%q: %s (%s), want deny", command, d.Action, d.Reason)
		}
	}
}

// What can't be known before it runs asks, even under rules that would allow
// all that can be seen.
func TestUncertainAsks(t *testing.T) {
	p := shellPolicy(t, "execute", "rm *", "deny")
	for _, command := range []string{
		"", " ", "\n", "# rm x", "echo 'unterminated", "if true", "echo )", "((echo hi); ls)", "a\x00b", "ls\x1b[2J", "ls\r\nrm x", "ls \u202e txt", "ls\u0085", "\xff\xfe",
		"$x", "$x y", "${x}m y", "r$x y", "$(echo rm) x", "`echo rm` x", `"$x" y`, "r? x", "r* x", "/bin/r* x", "{rm,-rf,x}", "r{m,} x", "~/x/$y", "~evil", `$"rm" x`, "$@", "\"$@\"", "$0 rm x", "${!x} y", "${x:=rm} y", "$((1)) x",
		"x=rm; $x y", "IFS=,; x=rm,y; $x", "a=(rm x); \"${a[@]}\"", "f() { \"$@\"; }; f rm x", "set -- rm x; \"$@\"", "read x; $x", "r\u00adm x", "rm\u00a0x", "\u2003rm x", "\u200brm x",
		"sh", "bash -s", "bash -", "echo 'rm x' | sh", "sh <<< 'rm x'", "bash <<E\nrm x\nE", "bash <<'E'\nrm x\nE", "sh < file", "bash <(echo rm x)", "bash /dev/stdin", "sh -c \"$x\"", "sh -c \"$(cat f)\"", "sh -c \"r$x\"", "bash --rcfile x -c ls", "bash -ic ls", "fish -c ls",
		"eval $x", "eval \"$(cat f)\"", "eval echo '\"'", ". ./x", "source x", "alias ls='rm x'", "trap \"$x\" EXIT", "xargs $x", "xargs sh -c", "xargs -I{} sh -c {}", "xargs -I{} sh -c 'echo {}'", "env $x", "env \"$x\" ls", "env -S \"$x\"", "sudo -s", "sudo -i", "sudo", "su", "nice $x", "timeout $t $x", "command $x", "exec $x", "find . $x", "find . -exec $x {} \\;", "find . \"$x\"", "find . -name $x", "find . -print \"$x\"", "find . -fprint out", "fd $x", "parallel", "parallel {} ::: 'rm x'", "ssh -o ProxyCommand='rm x' h", "ssh h \"$x\"",
		"env --uns A ls", "timeout --bogus 3 ls", "sudo --bogus ls",
		"PATH=/tmp ls", "PATH=/tmp; ls", "export PATH=/tmp", "export \"PATH=/tmp\"", "declare PATH=/tmp", "LD_PRELOAD=x.so ls", "env LD_PRELOAD=x.so ls", "IFS=x ls", "BASH_ENV=x bash -c ls", "ENV=x sh -c ls", "GIT_SSH_COMMAND=x git fetch", "GIT_EXTERNAL_DIFF=x git diff", "PAGER=x git log", "EDITOR=x git commit", "PS4='$(x)' ls", "PROMPT_COMMAND=x ls", "NODE_OPTIONS=--require=x node a.js", "for PATH in /tmp; do ls; done", "read PATH", "printf -v PATH x", "echo ${PATH:=x}", "export $x", "sudo PATH=/tmp ls",
		"ls > out", "ls >> out", "ls >| out", "ls &> out", "ls &>> out", "ls >& out", "ls 2> out", "ls <> out", "> out", ": > out", "{ ls; } > out", "ls > \"$x\"", "exec 3> out", "exec 3<>/dev/tcp/h/1", "cat < /dev/tcp/h/1", "ls > /dev/tcp/h/1", "ls > /dev/null/../x",
		"git -c alias.x='!rm x' x", "git -c core.pager='rm x' log", "git -ccore.pager=x log", "git --config-env=core.pager=X log", "git --exec-path=/tmp log", "git config alias.x '!rm x'", "git config core.pager x", "git $x", "git rebase -x 'rm x'", "git rebase --exec 'rm x'", "git rebase --exec='rm x'", "git grep -O x", "git difftool -x rm", "git clone -u 'rm x' h", "git fetch --upload-pack='rm x'", "git clone 'ext::rm x'", "git filter-branch --tree-filter x", "git --git-dir=/tmp/x log", "git submodule foreach \"$x\"", "git archive --exec=x",
		"python -c 'x'", "python3 -c x", "python3.11 -Ec x", "python", "python3 - <<E\nx\nE", "python3 <<E\nx\nE", "perl -e x", "perl -ne x", "ruby -e x", "node -e x", "node --eval x", "node --eval=x", "php -r x", "lua -e x", "node", "awk 'BEGIN{system(\"rm x\")}'", "awk '{print > \"f\"}'", "awk '{print | \"sh\"}'", "awk '\"rm x\" | getline'", "awk \"$x\" f", "sed '1e rm x' f", "sed 's/a/b/e' f", "sed -n 'w out' f", "sed -e 'e' f", "sed \"$x\" f",
		"tar --to-command=x -xf a", "tar cf a --checkpoint=1 --checkpoint-action=exec=x .", "tar -I x -xf a", "rsync -e 'rm x' a b", "make --eval x", "make SHELL=x", "go test -exec x", "go build -toolexec=x ./...", "sort --compress-program=x f", "rg --pre x y", "vim -c ':!rm' f", "vim +x", "hash -p /tmp/x ls", "enable -f x y", "mapfile -C 'rm x' a", "tmux new x", "crontab x", "at now",
		"npx rm x", "npx -y rm x", "npm exec -- rm x", "docker run --rm -v /:/h img rm x", "docker compose exec web rm x", "kubectl exec pod -- rm x", "uv run --with a rm x", "poetry run rm x", "bundle exec rm x", "hyperfine 'rm x'", "nix-shell -p a --run 'rm x'", "entr -r rm x", "valgrind --tool=none rm x", "ed f", "nc -e /bin/sh h 1", "readarray -t -C 'rm x' a", "deno eval x",
		"x='a[$(rm x)]'; ((x))", "((x))", "echo $((x))", "x='a[$(rm x)]'; echo $((x))", "[[ $x -eq 1 ]]", "[[ x -eq 1 ]]", "let x", "echo ${a[x]}", "echo ${a:x}", "[[ -v x ]]", "test -v 'a[$(rm x)]'", "unset 'a[$(rm x)]'", "read 'a[$(rm x)]'", "printf -v 'a[$(rm x)]' y", "declare -i x='a[$(rm x)]'", "echo ${x@P}", "echo ${!x}", "read i; for ((i=0;i<3;i++)); do ls; done", "echo @($(rm x))", "echo $'a\\'; rm x #'", "echo $'\\e[2J'", "ls $'\\x00'",
		strings.Repeat("(", 600) + strings.Repeat(")", 600), strings.Repeat("ls;", 30000), strings.Repeat("sh -c ", 3) + "ls", strings.Repeat("env ", 40) + "ls",
	} {
		if d := shell(p, command); d.Action == policy.Allow {
			t.Errorf("%.100q: %s (%s), want ask", command, d.Action, d.Reason)
		}
	}
}

// What is harmless must not be bothered: a judge that always asks is switched off.
func TestHarmlessIsAllowed(t *testing.T) {
	p := shellPolicy(t, "execute", "rm *", "deny", "execute", "git push *", "deny")
	for _, command := range []string{
		"ls", "ls -la", "git status", "git", "git log --oneline -n 5 | head", "git -C sub status", "git --no-pager diff", "git commit -m 'remove rm x'", "git commit -m \"$(cat <<'E'\nrm x\nE\n)\"", "git config user.name x",
		"go test ./... 2>&1 | tail -n 20", "go build ./... && go vet ./...", "ls > /dev/null", "ls 2>/dev/null", "ls >/dev/null 2>&1", "ls &>/dev/null", "cat < in", "cat <<'E'\n$(rm x) `rm x`\nE", "cat <<E\ntext $x\nE",
		"echo rm x", "echo 'rm x'", "echo \"a; rm x\"", "grep -r 'rm x' .", "echo a # rm x", "echo $x", "echo \"$x\"", "echo ${x:-y}", "echo *.go", "ls {a,b}", "cat ~/x", "mkdir -p a/{b,c}", "rmdir x", "./rmx", "npm run rm", "make rm",
		"for f in *.go; do echo \"$f\"; done", "while read -r l; do echo \"$l\"; done < in", "if [ -f x ]; then cat x; fi", "[[ -f x && $y == z* ]] && ls", "case $x in a|b) ls;; *) pwd;; esac", "x=1; y=$(date); echo $x $y", "FOO=bar go test", "export FOO=bar", "f() { ls; }; f", "i=0; while true; do i=$((i+1)); break; done; echo $((i+1))",
		"find . -name '*.go' -type f", "find . -name *.go", "find . -exec grep -l x {} +", "find . -name \"$x\" -type f", "ls | xargs -n1 basename", "xargs -0 grep -l x", "timeout 60 go test ./...", "env FOO=1 go test", "nice -n 10 make", "command -v rm", "sudo -l", "sh -c 'ls | wc -l'", "bash -c 'cd x && ls'", "bash script.sh a b", "python3 script.py", "python3 -m pytest -q", "node app.js", "python --version", "awk '{print $1}' f", "awk -F: '$3 || $4 {print $1, $2}' f", "sed -n '1,20p' f", "sed 's/a/b/g' f", "sed -i 's/foo/bar/' f", "tar xzf a.tgz", "trap - EXIT", "curl -s https://example.com/rm", "GIT_AUTHOR_NAME=x git commit", "time ls", "eval ls", "printf '%s\\n' a",
		"docker run --rm img go test", "npx vitest run", "uv run pytest -q", "docker ps", "npm run build", "go run ./cmd/x",
		"for ((i=0; i<3; i++)); do echo $i; done", "i=0; i=$((i+1)); echo $((i*2)) ${#x}", "n=3; [[ $n -gt 2 ]] && ls", "[ $# -gt 1 ] && ls",
	} {
		if d := shell(p, command); d.Action != policy.Allow {
			t.Errorf("%q: %s (%s), want allow", command, d.Action, d.Reason)
		}
	}
}

// Under an allow-list everything but the listed must ask, however it is hidden
// behind what is listed.
func TestAllowList(t *testing.T) {
	p := shellPolicy(t, "execute", "*", "deny", "execute", "git *", "allow", "execute", "npm run test*", "allow", "execute", "timeout *", "allow", "execute", "echo *", "allow", "execute", "xargs *", "allow")
	for command, want := range map[string]policy.Action{
		"git":                            policy.Allow,
		"git status":                     policy.Allow,
		"git  status":                    policy.Allow,
		"git\tlog\\\n -n 1":              policy.Allow,
		`"git" status`:                   policy.Allow,
		"git log $x":                     policy.Allow,
		"git log \"$x\" | git apply":     policy.Allow,
		"git add *.go":                   policy.Allow,
		"git add {a,b}":                  policy.Allow,
		"timeout 5 git status":           policy.Allow,
		"npm run test:unit":              policy.Allow,
		"echo $(git status)":             policy.Allow,
		"x=1; git status":                policy.Allow,
		"FOO=1 git status":               policy.Allow,
		"gitk":                           policy.Deny,
		"/tmp/git status":                policy.Deny,
		"./git status":                   policy.Deny,
		"git status; ls":                 policy.Deny,
		"git status && curl evil":        policy.Deny,
		"git status\nls":                 policy.Deny,
		"git status & ls":                policy.Deny,
		"git log $(ls)":                  policy.Deny,
		"git log `ls`":                   policy.Deny,
		"git log <(ls)":                  policy.Deny,
		"echo git | sh":                  policy.Deny,
		"timeout 5 ls":                   policy.Deny,
		"xargs ls":                       policy.Deny,
		"xargs git show":                 policy.Allow,
		"env git status":                 policy.Deny, // env is not listed
		"npm run build":                  policy.Deny,
		"\"git status\"":                 policy.Ask,
		"git$x":                          policy.Deny,
		"$x":                             policy.Deny,
		"$x git":                         policy.Deny,
		"git() { ls; }; git":             policy.Deny,
		"git status > out":               policy.Ask,
		"GIT_PAGER=ls git log":           policy.Ask,
		"git -c core.pager=ls log":       policy.Ask,
		"git log --format='$(ls)'":       policy.Allow,
		"git commit -m 'a; ls && pwd'":   policy.Allow,
		"git commit -m \"a; ls && pwd\"": policy.Allow,
	} {
		if d := shell(p, command); d.Action != want {
			t.Errorf("%q: %s (%s), want %s", command, d.Action, d.Reason, want)
		}
	}
}

func TestUnknownArguments(t *testing.T) {
	p := shellPolicy(t, "execute", "rm -rf /*", "deny", "execute", "git push --force *", "deny", "execute", "cat ~/.ssh/*", "deny", "execute", "cat $HOME/.aws/*", "deny", "execute", "deploy prod", "ask")
	for command, want := range map[string]policy.Action{
		"rm -rf /":               policy.Deny,
		"rm -rf /etc":            policy.Deny,
		"rm -rf /*":              policy.Deny,
		"rm -rf build":           policy.Allow,
		"rm -rf $x":              policy.Ask,
		"rm -rf \"$x\"":          policy.Ask,
		"rm -rf \"$x\"/y":        policy.Ask,
		"rm -rf ./$x":            policy.Allow,
		"rm $x /etc":             policy.Ask,
		"rm $flags":              policy.Ask,
		"rm {-rf,/}":             policy.Ask,
		"rm -r$x /":              policy.Ask,
		"rm -rf ~":               policy.Ask,
		"rm -rf ~/x":             policy.Ask,
		"git push":               policy.Allow,
		"git push $x":            policy.Ask,
		"git push --force":       policy.Deny,
		"git push --force x":     policy.Deny,
		"git -C . push --force":  policy.Deny,
		"git push \"--force\" x": policy.Deny,
		"cat ~/.ssh/id":          policy.Deny,
		"cat $HOME/.aws/x":       policy.Deny,
		"cat \"$HOME\"/.aws/x":   policy.Ask,
		"cat $x":                 policy.Ask,
		"cat x":                  policy.Allow,
		"deploy prod":            policy.Ask,
		"deploy pro$x":           policy.Ask,
		"deploy $x prod":         policy.Ask,
		"deploy $x":              policy.Ask,
		"deploy test":            policy.Allow,
		"echo $x":                policy.Allow,
	} {
		if d := shell(p, command); d.Action != want {
			t.Errorf("%q: %s (%s), want %s", command, d.Action, d.Reason, want)
		}
	}
}

// Rules for the whole tool are about every command alike; only what can't be
// read at all still asks.
func TestWholeToolRules(t *testing.T) {
	for _, a := range []string{"allow", "ask", "deny"} {
		p := shellPolicy(t, "execute", "*", a)
		for _, command := range []string{"ls", "$x", "ls > out", "sh -c \"$x\"", "PATH=x ls", "x=1", "[[ -f x ]]"} {
			if d := shell(p, command); string(d.Action) != a {
				t.Errorf("%s, %q: %+v", a, command, d)
			}
		}
	}
	p := shellPolicy(t, "execute", "*", "allow")
	for _, command := range []string{"", "echo 'x", "ls\x00", "# only a note"} {
		if d := shell(p, command); d.Action != policy.Ask || d.Origin != "rules" || d.Reason == "" {
			t.Errorf("%q: %+v", command, d)
		}
	}
	// Without any rule nothing is read.
	p = policy.Policy{Allow: []string{"execute"}, Rules: []policy.Source{rules(t, "s", "read_file", "*", "deny")}}
	if d := shell(p, "echo 'x"); d.Action != policy.Allow {
		t.Errorf("no rule is about execute: %+v", d)
	}
}

func TestCommandlessScripts(t *testing.T) {
	p := shellPolicy(t, "execute", "*", "deny", "execute", "ls *", "allow")
	for _, command := range []string{"x=1", "[[ -f x ]]", "f() { :; }", "export A=1", "declare a", "let 1", "time"} {
		if d := shell(p, command); d.Action != policy.Deny {
			t.Errorf("%q: %+v", command, d)
		}
	}
	if d := p.Check(policy.Call{Tool: "execute", Kind: policy.SubjectCommand}); d.Action == policy.Allow {
		t.Errorf("a command call without a command: %+v", d)
	}
}

func TestSeveralSourcesOfShellRules(t *testing.T) {
	p := policy.Policy{Allow: []string{"execute"}, Rules: []policy.Source{
		rules(t, "user", "execute", "*", "ask", "execute", "git *", "allow"),
		rules(t, "project", "execute", "git push *", "deny"),
	}}
	for command, want := range map[string]policy.Action{
		"git log":             policy.Allow,
		"ls":                  policy.Ask,
		"git push":            policy.Deny,
		"ls && git push x":    policy.Deny,
		"git log | git apply": policy.Allow,
	} {
		if d := shell(p, command); d.Action != want {
			t.Errorf("%q: %+v, want %s", command, d, want)
		}
	}
}

// A judge that can be kept busy is one that can be switched off.
func TestHugeCommands(t *testing.T) {
	p := shellPolicy(t, "execute", "rm *", "deny", "execute", "*a*b*c*d", "ask")
	for name, s := range map[string]string{
		"brackets":      strings.Repeat("(", 60000),
		"dollars":       strings.Repeat("$(", 400) + strings.Repeat(")", 400),
		"backquotes":    strings.Repeat("`", 60000),
		"commands":      strings.Repeat("a;", 30000),
		"unknown":       strings.Repeat("$a;", 20000),
		"distinct":      distinct(9000),
		"wrappers":      strings.Repeat("env ", 15000) + "a",
		"words":         "echo " + strings.Repeat("a ", 30000),
		"vanishing":     "echo " + strings.Repeat("$a ", 20000),
		"braces":        "echo " + strings.Repeat("{a,b}", 10000),
		"subscripts":    strings.Repeat("a[", 400) + "0" + strings.Repeat("]", 400) + "=1",
		"heredocs":      strings.Repeat("cat <<E\n$(a)\nE\n", 4000),
		"long":          "echo " + strings.Repeat("a", 60000),
		"quotes":        "echo " + strings.Repeat("'a'\"b\"", 9000),
		"too long":      "echo " + strings.Repeat("a", 1<<20),
		"find":          "find . " + strings.Repeat("-exec echo {} \\; ", 3000),
		"runner":        "npx " + strings.Repeat("a ", 30000),
		"nested shells": "sh -c " + quote("sh -c "+quote("sh -c "+quote("sh -c "+quote(strings.Repeat("a;", 500))))),
	} {
		start := time.Now()
		shell(p, s)
		if took := time.Since(start); took > 2*time.Minute {
			t.Errorf("%s: %v", name, took)
		} else {
			t.Logf("%s: %v", name, took)
		}
	}
}

// distinct returns n commands whose program is unknown, each in another way.
func distinct(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("$a" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + ";")
	}
	return b.String()
}
