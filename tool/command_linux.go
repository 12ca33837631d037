package tool

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// strays returns the living processes that carry the group's mark and are not
// in the group itself. Each is held by a handle, so that its number can't pass
// to another process before it is signalled.
func (g *group) strays() []*os.Process {
	var found []*os.Process
	for _, pid := range processes() {
		if !g.marked(pid) {
			continue
		}
		p, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		// Looked at again: the handle is of the process that has it now.
		if st, ok := readStat(pid); !ok || st.zombie || st.group == g.pid || !g.marked(pid) {
			_ = p.Release()
			continue
		}
		found = append(found, p)
	}
	return found
}

// onlyZombies reports whether no process of the group is alive: the dead ones
// that nobody has collected yet still count as members for kill.
func (g *group) onlyZombies() bool {
	for _, pid := range processes() {
		if st, ok := readStat(pid); ok && st.group == g.pid && !st.zombie {
			return false
		}
	}
	return true
}

func (g *group) marked(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false // another user's, or gone
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if string(kv) == g.mark {
			return true
		}
	}
	return false
}

func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A procStat is what /proc says of a process.
type procStat struct {
	group  int
	zombie bool
}

func readStat(pid int) (procStat, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, false
	}
	// "pid (name) state parent group ...": the name may hold anything.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return procStat{}, false
	}
	fields := bytes.Fields(b[i+1:])
	if len(fields) < 3 {
		return procStat{}, false
	}
	group, err := strconv.Atoi(string(fields[2]))
	if err != nil {
		return procStat{}, false
	}
	return procStat{group: group, zombie: fields[0][0] == 'Z' || fields[0][0] == 'X'}, true
}
