package agents

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
)

// MaxFileSize is the size in bytes above which a file is refused.
const MaxFileSize = 1 << 20

const saveUTF8 = "save the file as UTF-8"

// source is a file's text: UTF-8, lines ending in "\n".
type source struct {
	file  string
	lines []string // without their ends; lines[0] is line 1
}

// decode turns a file's bytes into text. It repairs what it can and says so.
func decode(file string, data []byte) (source, []Diagnostic) {
	var diags []Diagnostic
	repaired := func(at int, text []byte, hint, format string, args ...any) {
		line, col := position(text, at)
		diags = append(diags, Diagnostic{
			Pos: Pos{file, line, col}, Severity: Warn, Code: CodeEncoding,
			Message: fmt.Sprintf(format, args...), Hint: hint,
		})
	}
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		data = data[3:]
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		// The decoder replaces what it can't read, so it does not fail.
		if text, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Bytes(data); err == nil {
			data = text
			repaired(0, nil, saveUTF8, "the file is UTF-16 and was decoded")
		}
	}
	if i := invalidUTF8(data); i >= 0 {
		repaired(i, data, saveUTF8, "byte 0x%02x is not UTF-8; what can't be read is replaced by U+FFFD", data[i])
		data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		repaired(i, data, "remove it", "a NUL character is replaced by U+FFFD")
		data = bytes.ReplaceAll(data, []byte{0}, []byte("\uFFFD"))
	}
	if bytes.IndexByte(data, '\r') >= 0 {
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
		if i := bytes.IndexByte(data, '\r'); i >= 0 {
			repaired(i, data, "save the file with ordinary line ends", "a lone carriage return is read as the end of a line")
			data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
		}
	}
	return source{file: file, lines: strings.Split(string(data), "\n")}, diags
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// position returns line and column of an offset, both from 1, the column in
// characters.
func position(text []byte, offset int) (line, col int) {
	offset = min(offset, len(text))
	before := text[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}
