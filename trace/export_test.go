package trace

import "context"

// SyncLevel returns the writer's PRAGMA synchronous as its last transaction
// left it: 1 is NORMAL, 2 is FULL.
func SyncLevel(s *SQLite) (level int, err error) {
	err = s.write.conn.QueryRowContext(context.Background(), "PRAGMA synchronous").Scan(&level)
	return level, err
}

// Transactions calls count before each transaction that the journal writes,
// with the number of appends in it. It must be set before the first append.
func Transactions(s *SQLite, count func(appends int)) { s.write.before = count }
