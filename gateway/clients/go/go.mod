module signpost

go 1.19
