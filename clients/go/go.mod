module facet/client

go 1.26
