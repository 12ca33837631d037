module example.com/atlas

go 1.24

require example.com/units v1.2.0

require example.com/bits v0.3.1 // indirect
