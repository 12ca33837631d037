package offline

import (
	"fmt"
	"strings"
)

// git answers questions about history and the working tree.
func (s *session) git(a ask) section {
	scope := ""
	if p := cleanPath(a.scope); p != "" {
		scope = " -- " + shellQuote(p)
	}
	n := a.from
	cmd, empty := "", "nothing"
	switch {
	case a.flags["status"]:
		cmd = "git status --short --branch"
	case a.flags["diff"]:
		cmd, empty = "git --no-pager diff --stat --patch"+scope, "no difference to what is committed or staged"
	case a.flags["last"]:
		cmd = "git --no-pager log -1 --stat"
	case a.flags["who"]:
		if scope == "" {
			return undone("it does not say of which file")
		}
		if n > 0 {
			cmd = fmt.Sprintf("git --no-pager blame -L %d,%d --date=short%s", n, n, scope)
		} else {
			cmd = "git --no-pager log -5 --date=short --format='%h %ad %an: %s'" + scope
		}
		empty = "no commit touches it"
	case a.flags["authors"]:
		cmd = "git --no-pager shortlog -sn HEAD"
	case a.flags["commits"]:
		cmd = "git rev-list --count HEAD"
	case a.flags["tags"]:
		cmd, empty = "git tag --sort=-creatordate", "no tags, so nothing is released"
	case a.flags["branch"]:
		cmd = "git branch -vv"
		if strings.Contains(strings.ToLower(a.text), "tag") {
			cmd, empty = "git tag --sort=-creatordate", "no tags"
		}
	default:
		if n == 0 {
			n = 10
		}
		cmd, empty = fmt.Sprintf("git --no-pager log -%d --date=short --format='%%h %%ad %%an: %%s'%s", min(n, 100), scope), "no commits"
	}
	return s.quoteCommand(cmd, "look at git", empty)
}

// command runs what the request spells out, or the project's build or linter.
func (s *session) command(a ask) section {
	cmd := a.command
	if cmd == "" {
		found := s.find(buildFiles, "")
		if sec, stop := stopped(found); stop {
			return sec
		}
		for _, su := range suites(readPaths(found.text)) {
			if cmd = su.build; a.flags["lint"] {
				cmd = su.lint
			}
			if cmd != "" {
				break
			}
		}
		if cmd == "" {
			return section{lead: "no build file at the root says how", left: []string{"nothing was run: name the command"}}
		}
	}
	return s.quoteCommand(cmd, "asked for", "no output")
}

// quoteCommand runs a command and quotes its output.
func (s *session) quoteCommand(cmd, why, empty string) section {
	o := s.execute(cmd, why)
	if o.state == waiting {
		return wait()
	}
	if o.state == missing || refused(o) {
		return undone(o.why())
	}
	code, known := exitOf(o)
	lead := "`" + cmd + "`"
	if known && code != 0 {
		lead += fmt.Sprintf(" failed (exit %d)", code)
	}
	var lines []string
	for l := range strings.Lines(strings.TrimSpace(o.text)) {
		l = strings.TrimRight(l, " \t\r\n")
		if m := exitCode().FindString(l); m != "" && strings.HasPrefix(l, "[") {
			continue
		}
		lines = append(lines, clip(strings.ReplaceAll(l, "\t", "    "), 240))
	}
	if len(lines) == 0 || len(lines) == 1 && remark().MatchString(lines[0]) {
		return section{lead: lead + ": " + empty}
	}
	return section{lead: lead, lines: head(lines, 120)}
}
