package agents

type writer struct {
	lists, emptyList, model, temperature, topP, slugs, commaTools, permission, mode, disable, visibility, noName, color, toml bool
	denies, turns, minutes, effort, skills, background, readOnly                                                              string
}
type judge struct {
	anyName, strictYAML, strictKeys, strictTools, slugs, listOnly, mapOnly, toml, emptyIsAll, allFail bool
	needs                                                                                             []string
	tools, denies                                                                                     string
}
