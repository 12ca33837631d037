-- A journal as format version 1 had it, schema and rows. Programs of every later
-- version read it: it is never changed.
PRAGMA application_id = 1400467018;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
CREATE TABLE events (
	id         INTEGER PRIMARY KEY,
	format     INTEGER NOT NULL,
	trace      TEXT NOT NULL,
	seq        INTEGER NOT NULL,
	v          INTEGER NOT NULL,
	time       INTEGER,
	run        TEXT NOT NULL,
	parent     TEXT NOT NULL,
	agent      TEXT NOT NULL,
	spawned_by TEXT NOT NULL,
	kind       TEXT NOT NULL,
	spec       BLOB,
	body       BLOB NOT NULL
);
CREATE UNIQUE INDEX events_trace_seq ON events (trace, seq);
CREATE TABLE blobs (
	hash BLOB PRIMARY KEY,
	data BLOB NOT NULL
);
CREATE TABLE runs (
	trace  TEXT NOT NULL,
	run    TEXT NOT NULL,
	parent TEXT NOT NULL,
	PRIMARY KEY (trace, run)
) WITHOUT ROWID;
CREATE INDEX runs_run ON runs (run);
CREATE INDEX runs_parent ON runs (parent, trace);
CREATE TABLE traces (
	trace   TEXT PRIMARY KEY,
	started INTEGER NOT NULL,
	open    INTEGER NOT NULL,
	format  INTEGER NOT NULL,
	summary BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX traces_started ON traces (started);
INSERT INTO events VALUES (1, 1, 'every', 1, 1, 1767323046678901234, 'r', 'p', 'coder', 'c0', 'run_started', x'518bf5047d59cc733fcb73763497a0c517f430495ba4ca14c87e8c6c39103619', CAST('{"spec":null,"depth":2,"input":[{"role":"assistant","parts":[{"kind":"reasoning","text":"hm","opaque":"signature=="},{"kind":"text","text":"hello"},{"kind":"call","call":{"id":"c1","name":"edit","args":"{\"path\": malformed"}},{"kind":"result","result":{"call_id":"c1","name":"edit","text":"done","is_error":true,"media":[{"name":"a.png","type":"image/png","data":"AAEC/w=="}],"details":{"exit":1}}},{"kind":"media","media":{"name":"a.png","type":"image/png","data":"AAEC/w=="}}]},{"role":"user","parts":[{"kind":"text","text":"go"}]}],"description":"codes it","background":true,"resumed":true,"limits":{"turns":9,"tokens":1099511627776,"cost_usd":1.5,"time":"1m30s","tool_calls":3,"spawns":2}}' AS BLOB));
INSERT INTO events VALUES (2, 1, 'every', 2, 1, NULL, 'r', 'p', 'coder', 'c0', 'model_requested', NULL, CAST('{"turn":1,"model":"openai:gpt:5","messages":2,"tools":3,"final":true}' AS BLOB));
INSERT INTO events VALUES (3, 1, 'every', 3, 1, 1767323048678901234, 'r', 'p', 'coder', 'c0', 'model_replied', NULL, CAST('{"turn":1,"message":{"role":"assistant","parts":[{"kind":"reasoning","text":"hm","opaque":"signature=="},{"kind":"text","text":"hello"},{"kind":"call","call":{"id":"c1","name":"edit","args":"{\"path\": malformed"}},{"kind":"result","result":{"call_id":"c1","name":"edit","text":"done","is_error":true,"media":[{"name":"a.png","type":"image/png","data":"AAEC/w=="}],"details":{"exit":1}}},{"kind":"media","media":{"name":"a.png","type":"image/png","data":"AAEC/w=="}}]},"stop":"length","usage":{"requests":1,"input_tokens":2,"output_tokens":3,"cache_read_tokens":4,"cache_write_tokens":5,"reasoning_tokens":6,"cost_usd":0.0125},"model":"gpt"}' AS BLOB));
INSERT INTO events VALUES (4, 1, 'every', 4, 1, 1767323049678901234, 'r', 'p', 'coder', 'c0', 'tool_started', NULL, CAST('{"call":{"id":"c1","name":"edit","args":"{\"path\": malformed"},"intent":"why","key":"t1/tool/0","effect":"keyed"}' AS BLOB));
INSERT INTO events VALUES (5, 1, 'every', 5, 1, 1767323050678901234, 'r', 'p', 'coder', 'c0', 'tool_finished', NULL, CAST('{"result":{"call_id":"c1","name":"edit","text":"done","is_error":true,"media":[{"name":"a.png","type":"image/png","data":"AAEC/w=="}],"details":{"exit":1}},"elapsed":"1.234567ms","denied":"no"}' AS BLOB));
INSERT INTO events VALUES (6, 1, 'every', 6, 1, 1767323051678901234, 'r', 'p', 'coder', 'c0', 'approval_asked', NULL, CAST('{"ask":{"id":"q","run_id":"r","agent":"coder","tool":"edit","args":[1],"intent":"why","subject":"a.go","reason":"rule"}}' AS BLOB));
INSERT INTO events VALUES (7, 1, 'every', 7, 1, 1767323052678901234, 'r', 'p', 'coder', 'c0', 'approval_answered', NULL, CAST('{"id":"q","answer":{"allow":true,"reason":"fine"}}' AS BLOB));
INSERT INTO events VALUES (8, 1, 'every', 8, 1, 1767323053678901234, 'r', 'p', 'coder', 'c0', 'child_started', NULL, CAST('{"task_id":"r2","agent":"explore","description":"looks","call_id":"c2","background":true,"resumed":true}' AS BLOB));
INSERT INTO events VALUES (9, 1, 'every', 9, 1, 1767323054678901234, 'r', 'p', 'coder', 'c0', 'child_finished', NULL, CAST('{"task_id":"r2","agent":"explore","call_id":"c2","status":"partial","text":"half","cause":"turns","limit":"turns","turns":9,"usage":{"requests":1,"input_tokens":2,"output_tokens":3,"cache_read_tokens":4,"cache_write_tokens":5,"reasoning_tokens":6,"cost_usd":0.0125},"total":{"requests":2,"input_tokens":4,"output_tokens":6,"cache_read_tokens":8,"cache_write_tokens":10,"reasoning_tokens":12,"cost_usd":0.025},"model":"openai:gpt:5","error_kind":"rate_limit","failed_children":1}' AS BLOB));
INSERT INTO events VALUES (10, 1, 'every', 10, 1, 1767323055678901234, 'r', 'p', 'coder', 'c0', 'warning', NULL, CAST('{"code":"skill_missing","message":"no such skill"}' AS BLOB));
INSERT INTO events VALUES (11, 1, 'every', 11, 1, 1767323056678901234, 'r', 'p', 'coder', 'c0', 'retry', NULL, CAST('{"turn":1,"attempt":2,"error":"HTTP 529","after":"1s","model":"openai:gpt:5"}' AS BLOB));
INSERT INTO events VALUES (12, 1, 'every', 12, 1, 1767323057678901234, 'r', 'p', 'coder', 'c0', 'conclusion', NULL, CAST('{"content":"all done"}' AS BLOB));
INSERT INTO events VALUES (13, 1, 'every', 13, 1, 1767323058678901234, 'r', 'p', 'coder', 'c0', 'run_finished', NULL, CAST('{"status":"partial","text":"half","cause":"turns","limit":"turns","turns":9,"usage":{"requests":1,"input_tokens":2,"output_tokens":3,"cache_read_tokens":4,"cache_write_tokens":5,"reasoning_tokens":6,"cost_usd":0.0125},"total":{"requests":2,"input_tokens":4,"output_tokens":6,"cache_read_tokens":8,"cache_write_tokens":10,"reasoning_tokens":12,"cost_usd":0.025},"model":"openai:gpt:5","error_kind":"rate_limit","failed_children":1}' AS BLOB));
INSERT INTO events VALUES (14, 1, 'talk', 1, 1, 1767323046678901234, 'talk-main', '', 'main', '', 'run_started', x'42c91d967da4d5e7f18fa1ff90d786ad6a4d397aa0f026bc18d7947477510743', CAST('{"spec":null,"depth":0,"input":[{"role":"user","parts":[{"kind":"text","text":"Find the bug\nand fix it"}]}],"limits":{}}' AS BLOB));
INSERT INTO events VALUES (15, 1, 'talk', 2, 1, 1767323047678901234, 'talk-main', '', 'main', '', 'model_requested', NULL, CAST('{"turn":1,"model":"script:small","messages":1,"tools":4}' AS BLOB));
INSERT INTO events VALUES (16, 1, 'talk', 3, 1, 1767323048678901234, 'talk-main', '', 'main', '', 'model_replied', NULL, CAST('{"turn":1,"message":{"role":"assistant","parts":[{"kind":"text","text":"on it"},{"kind":"call","call":{"id":"c1","name":"task","args":"{\"prompt\":\"look\"}"}},{"kind":"call","call":{"id":"c2","name":"execute","args":"{\"command\":\"make\"}"}},{"kind":"call","call":{"id":"c3","name":"write_file","args":"{\"path\":\"/etc/passwd\"}"}}]},"stop":"calls","usage":{"requests":1,"input_tokens":100,"output_tokens":10,"cost_usd":0.25},"model":"script:large"}' AS BLOB));
INSERT INTO events VALUES (17, 1, 'talk', 4, 1, 1767323049678901234, 'talk-main', '', 'main', '', 'tool_started', NULL, CAST('{"call":{"id":"c1","name":"task","args":"{\"prompt\":\"look\"}"},"intent":"have it found","key":"t1/tool/0","effect":"unsafe"}' AS BLOB));
INSERT INTO events VALUES (18, 1, 'talk', 5, 1, 1767323050678901234, 'talk-main', '', 'main', '', 'child_started', NULL, CAST('{"task_id":"talk-child","agent":"explore","description":"find the bug","call_id":"c1"}' AS BLOB));
INSERT INTO events VALUES (19, 1, 'talk', 6, 1, 1767323051678901234, 'talk-child', 'talk-main', 'explore', 'c1', 'run_started', x'a8874fdc7637bf0553d3ead4c8eb7a7da76f4ac14d7ca02b50a6f60136a58085', CAST('{"spec":null,"depth":1,"input":[{"role":"user","parts":[{"kind":"text","text":"look"}]}],"description":"find the bug","limits":{}}' AS BLOB));
INSERT INTO events VALUES (20, 1, 'talk', 7, 1, 1767323052678901234, 'talk-child', 'talk-main', 'explore', 'c1', 'model_requested', NULL, CAST('{"turn":1,"model":"script:small","messages":1,"tools":1}' AS BLOB));
INSERT INTO events VALUES (21, 1, 'talk', 8, 1, 1767323053678901234, 'talk-child', 'talk-main', 'explore', 'c1', 'model_replied', NULL, CAST('{"turn":1,"message":{"role":"assistant","parts":[{"kind":"call","call":{"id":"g1","name":"grep","args":"{\"pattern\":\"bug\"}"}}]},"stop":"calls","usage":{"requests":1,"input_tokens":100,"output_tokens":10,"cost_usd":0.25},"model":"script:large"}' AS BLOB));
INSERT INTO events VALUES (22, 1, 'talk', 9, 1, 1767323054678901234, 'talk-child', 'talk-main', 'explore', 'c1', 'tool_started', NULL, CAST('{"call":{"id":"g1","name":"grep","args":"{\"pattern\":\"bug\"}"},"intent":"search","key":"t1/tool/0","effect":"read"}' AS BLOB));
INSERT INTO events VALUES (23, 1, 'talk', 10, 1, 1767323055678901234, 'talk-child', 'talk-main', 'explore', 'c1', 'tool_finished', NULL, CAST('{"result":{"call_id":"g1","name":"grep","text":"a.go:1: bug"},"elapsed":"1s"}' AS BLOB));
INSERT INTO events VALUES (24, 1, 'talk', 11, 1, 1767323056678901234, 'talk-child', 'talk-main', 'explore', 'c1', 'model_requested', NULL, CAST('{"turn":2,"model":"script:small","messages":3,"tools":1}' AS BLOB));
INSERT INTO events VALUES (25, 1, 'talk', 12, 1, 1767323057678901234, 'talk-child', 'talk-main', 'explore', 'c1', 'model_replied', NULL, CAST('{"turn":2,"message":{"role":"assistant","parts":[{"kind":"text","text":"it is in a.go"}]},"stop":"end","usage":{"requests":1,"input_tokens":100,"output_tokens":10,"cost_usd":0.25},"model":"script:large"}' AS BLOB));
INSERT INTO events VALUES (26, 1, 'talk', 13, 1, 1767323058678901234, 'talk-child', 'talk-main', 'explore', 'c1', 'run_finished', NULL, CAST('{"status":"completed","text":"it is in a.go","turns":2,"usage":{"requests":2,"input_tokens":200,"output_tokens":20,"cost_usd":0.5},"total":{"requests":2,"input_tokens":200,"output_tokens":20,"cost_usd":0.5},"model":"script:large"}' AS BLOB));
INSERT INTO events VALUES (27, 1, 'talk', 14, 1, 1767323059678901234, 'talk-main', '', 'main', '', 'child_finished', NULL, CAST('{"task_id":"talk-child","agent":"explore","call_id":"c1","status":"completed","text":"it is in a.go","turns":2,"usage":{"requests":2,"input_tokens":200,"output_tokens":20,"cost_usd":0.5},"total":{"requests":2,"input_tokens":200,"output_tokens":20,"cost_usd":0.5},"model":"script:large"}' AS BLOB));
INSERT INTO events VALUES (28, 1, 'talk', 15, 1, 1767323060678901234, 'talk-main', '', 'main', '', 'tool_finished', NULL, CAST('{"result":{"call_id":"c1","name":"task","text":"it is in a.go"},"elapsed":"10s"}' AS BLOB));
INSERT INTO events VALUES (29, 1, 'talk', 16, 1, 1767323061678901234, 'talk-main', '', 'main', '', 'approval_asked', NULL, CAST('{"ask":{"id":"q1","run_id":"talk-main","agent":"main","tool":"execute","args":{"command":"make"},"subject":"make","reason":"user settings"}}' AS BLOB));
INSERT INTO events VALUES (30, 1, 'talk', 17, 1, 1767323062678901234, 'talk-main', '', 'main', '', 'approval_answered', NULL, CAST('{"id":"q1","answer":{"allow":true}}' AS BLOB));
INSERT INTO events VALUES (31, 1, 'talk', 18, 1, 1767323063678901234, 'talk-main', '', 'main', '', 'tool_started', NULL, CAST('{"call":{"id":"c2","name":"execute","args":"{\"command\":\"make\"}"},"intent":"build","key":"t1/tool/1","effect":"unsafe"}' AS BLOB));
INSERT INTO events VALUES (32, 1, 'talk', 19, 1, 1767323064678901234, 'talk-main', '', 'main', '', 'tool_finished', NULL, CAST('{"result":{"call_id":"c2","name":"execute","text":"ok"},"elapsed":"1s"}' AS BLOB));
INSERT INTO events VALUES (33, 1, 'talk', 20, 1, 1767323065678901234, 'talk-main', '', 'main', '', 'tool_finished', NULL, CAST('{"result":{"call_id":"c3","name":"write_file","text":"permission denied: write_file: outside the workspace; do not retry","is_error":true},"elapsed":"0s","denied":"outside the workspace"}' AS BLOB));
INSERT INTO events VALUES (34, 1, 'talk', 21, 1, 1767323066678901234, 'talk-main', '', 'main', '', 'model_requested', NULL, CAST('{"turn":2,"model":"script:small","messages":5,"tools":4}' AS BLOB));
INSERT INTO events VALUES (35, 1, 'talk', 22, 1, 1767323067678901234, 'talk-main', '', 'main', '', 'model_replied', NULL, CAST('{"turn":2,"message":{"role":"assistant","parts":[{"kind":"text","text":"fixed"}]},"stop":"end","usage":{"requests":1,"input_tokens":100,"output_tokens":10,"cost_usd":0.25},"model":"script:large"}' AS BLOB));
INSERT INTO events VALUES (36, 1, 'talk', 23, 1, 1767323068678901234, 'talk-main', '', 'main', '', 'conclusion', NULL, CAST('{"content":"fixed"}' AS BLOB));
INSERT INTO events VALUES (37, 1, 'talk', 24, 1, 1767323069678901234, 'talk-main', '', 'main', '', 'run_finished', NULL, CAST('{"status":"completed","text":"fixed","turns":2,"usage":{"requests":2,"input_tokens":200,"output_tokens":20,"cost_usd":0.5},"total":{"requests":4,"input_tokens":400,"output_tokens":40,"cost_usd":1},"model":"script:large"}' AS BLOB));
INSERT INTO blobs VALUES (x'42c91d967da4d5e7f18fa1ff90d786ad6a4d397aa0f026bc18d7947477510743', CAST('{"id":"main","agent":"main","description":"","digest":"","system":"","model":"script:small","model_origin":"","policy":{"allow":null},"limits":{},"origin":""}' AS BLOB));
INSERT INTO blobs VALUES (x'518bf5047d59cc733fcb73763497a0c517f430495ba4ca14c87e8c6c39103619', CAST('{"id":"coder@2","agent":"coder","description":"codes","digest":"abc","system":"be <good> & brief","model":"openai:gpt:5","model_origin":"settings","fallback":["a:b"],"effort":"off","effort_origin":"file","temperature":0,"top_p":0.95,"policy":{"allow":["edit"],"block":{"execute":{"code":"readonly","origin":"flag"}},"rules":[{"origin":"user","rules":[{"tool":"edit","pattern":"*","action":"ask","line":3}]}]},"limits":{"turns":9,"tokens":1099511627776,"cost_usd":1.5,"time":"1m30s","tool_calls":3,"spawns":2},"preload":[{"role":"assistant","parts":[{"kind":"reasoning","text":"hm","opaque":"signature=="},{"kind":"text","text":"hello"},{"kind":"call","call":{"id":"c1","name":"edit","args":"{\"path\": malformed"}},{"kind":"result","result":{"call_id":"c1","name":"edit","text":"done","is_error":true,"media":[{"name":"a.png","type":"image/png","data":"AAEC/w=="}],"details":{"exit":1}}},{"kind":"media","media":{"name":"a.png","type":"image/png","data":"AAEC/w=="}}]}],"output":{"type":"object"},"background":true,"origin":"built-in","no_tools":"none left"}' AS BLOB));
INSERT INTO blobs VALUES (x'a8874fdc7637bf0553d3ead4c8eb7a7da76f4ac14d7ca02b50a6f60136a58085', CAST('{"id":"explore","agent":"explore","description":"","digest":"","system":"","model":"script:small","model_origin":"","policy":{"allow":null},"limits":{},"origin":""}' AS BLOB));
INSERT INTO runs VALUES ('every', 'r', 'p');
INSERT INTO runs VALUES ('talk', 'talk-child', 'talk-main');
INSERT INTO runs VALUES ('talk', 'talk-main', '');
INSERT INTO traces VALUES ('every', 1767323046678901234, 1, 1, CAST('{"trace_id":"every","run_id":"","started":"2026-01-02T03:04:06.678901234Z","agent":"","prompt":"","status":"open","runs":0,"usage":{"requests":1,"input_tokens":2,"output_tokens":3,"cache_read_tokens":4,"cache_write_tokens":5,"reasoning_tokens":6,"cost_usd":0.0125}}' AS BLOB));
INSERT INTO traces VALUES ('talk', 1767323046678901234, 0, 1, CAST('{"trace_id":"talk","run_id":"talk-main","started":"2026-01-02T03:04:06.678901234Z","ended":"2026-01-02T03:04:29.678901234Z","agent":"main","model":"script:large","prompt":"Find the bug","status":"completed","runs":0,"usage":{"requests":4,"input_tokens":400,"output_tokens":40,"cost_usd":1}}' AS BLOB));
