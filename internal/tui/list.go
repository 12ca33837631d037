package tui

// A list is a column of entries of which one is chosen, the chosen one always in
// view. It holds no entries: it is told how many there are.
type list struct {
	at  int // the chosen one
	top int // the first one shown
}

// move chooses another one.
func (l *list) move(by, n int) { l.at = min(max(l.at+by, 0), max(n-1, 0)) }

// window is the part of n entries that rows can show.
func (l *list) window(n, rows int) (from, to int) {
	rows = max(rows, 1)
	l.at = min(max(l.at, 0), max(n-1, 0))
	l.top = min(max(l.top, l.at-rows+1), l.at)
	l.top = max(0, min(l.top, n-rows))
	return l.top, min(n, l.top+rows)
}

// key moves the list where a key means that, and reports whether it did.
func (l *list) key(key string, n, rows int) bool {
	switch key {
	case "up", "k", "ctrl+p":
		l.move(-1, n)
	case "down", "j", "ctrl+n":
		l.move(1, n)
	case "pgup":
		l.move(-max(rows-1, 1), n)
	case "pgdown":
		l.move(max(rows-1, 1), n)
	case "home", "g":
		l.move(-n, n)
	case "end", "G":
		l.move(n, n)
	default:
		return false
	}
	return true
}
