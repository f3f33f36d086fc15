module facet.internal/client

go 1.26
