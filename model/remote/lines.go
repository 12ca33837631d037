package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// errEventTooLong says that an event passes maxEvent.
var errEventTooLong = errors.New("event too long")

// lineReader reads server-sent events.
type lineReader struct {
	src  *bufio.Reader
	line []byte
}

// event returns the next event. One at the very end of the body counts without
// the empty line that closes it; what was cut within it is no JSON.
func (r *lineReader) event() (name string, data []byte, err error) {
	name, data, err = r.read()
	if err == io.EOF && len(data) > 0 && !json.Valid(data) && !isDone(data) {
		err = io.ErrUnexpectedEOF
	}
	return name, data, err
}

func (r *lineReader) read() (name string, data []byte, err error) {
	first := true
	for {
		line, err := r.readLine(maxEvent - len(data))
		if err != nil && len(line) == 0 {
			return name, data, err
		}
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if first {
				continue
			}
			return name, data, nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name, first = string(value), false
		case "data":
			if !first && len(data) > 0 {
				data = append(data, '\n')
			}
			data, first = append(data, value...), false
		case "error": // llama.cpp's own
			name, first = "error", false
			data = append(data, value...)
		}
		if err != nil {
			return name, data, err
		}
	}
}

// readLine returns the next line with its end, valid until the next call.
func (r *lineReader) readLine(limit int) ([]byte, error) {
	r.line = r.line[:0]
	for {
		piece, err := r.src.ReadSlice('\n')
		if len(r.line)+len(piece) > limit {
			return nil, errEventTooLong
		}
		r.line = append(r.line, piece...)
		if err != bufio.ErrBufferFull {
			return r.line, err
		}
	}
}
