module signpost.example/signpost

go 1.19
