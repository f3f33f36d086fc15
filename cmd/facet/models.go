package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"facet/cmd/facet/cli"
	"facet/cmd/facet/config"
	"facet/cmd/facet/models"
	"facet/cmd/facet/photos"
	enginemodels "facet/engine/models"
)

// samplePhoto is the photo on which "facet models verify" tries the models.
var samplePhoto = filepath.Join("face_recognition", "obama.jpg")

func newModels() *cobra.Command {
	assets := config.AssetsDefault()
	packs := assets.Models
	cmd := cli.Group(
		&cobra.Command{
			Use: "models", Short: "packs of face models: list, describe, check, measure",
			Long: "A pack is a folder with a manifest and the models that it names. PACK is a folder's name in the folder\n" +
				"of packs, or a path.",
		},
		&cobra.Command{
			Use: "list", Short: "list the packs", Args: cli.Args(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error { return models.List(cmd.OutOrStdout(), packs) },
		},
		&cobra.Command{
			Use: "info PACK", Short: "print a pack's manifest", Args: cli.Args(cobra.ExactArgs(1)),
			RunE: func(cmd *cobra.Command, args []string) error {
				return models.Info(cmd.OutOrStdout(), models.Find(packs, args[0]))
			},
		},
		newModelsVerify(assets, &packs), newModelsExtract(assets, &packs),
	)
	cmd.PersistentFlags().StringVar(&packs, "packs", packs, "folder of packs")
	return cmd
}

func newModelsVerify(assets config.Assets, packs *string) *cobra.Command {
	check := models.Check{ONNXRuntime: assets.ONNXRuntime, Photo: filepath.Join(assets.Photos, samplePhoto)}
	cmd := &cobra.Command{
		Use: "verify [PACK…]", Short: "check the hashes of packs, load their models and try them",
		Long: "Check size and SHA-256 of every file of the packs (of all packs when none is named), load the models,\n" +
			"and run them on a sample photograph if there is one.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				list, err := enginemodels.List(*packs)
				if err != nil {
					return err
				}
				for _, l := range list {
					args = append(args, l.Name)
				}
			}
			if len(args) == 0 {
				return fmt.Errorf("there is no model pack in %s: run \"make setup\"", *packs)
			}
			var errs []error
			for _, name := range args {
				if err := check.Verify(cmd.Context(), cmd.OutOrStdout(), models.Find(*packs, name)); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", name, err))
				}
			}
			return errors.Join(errs...)
		},
	}
	f := cmd.Flags()
	libraryFlags(f, &check.ONNXRuntime, &check.SHA256)
	f.StringVar(&check.Photo, "photo", check.Photo, "photograph to try the models on")
	return cmd
}

func newModelsExtract(assets config.Assets, packs *string) *cobra.Command {
	x := models.Extraction{Faces: photos.FacesMiddle, Progress: os.Stderr}
	x.ONNXRuntime = assets.ONNXRuntime
	cmd := &cobra.Command{
		Use: "extract PACK", Short: "write the templates and qualities of photographs to a file for facet-lab",
		Long: "Run a pack on the photographs of DIR, which holds a folder of them for each person, and write what it\n" +
			"measured to a new file: templates, qualities and defects, and the detections on spoilt copies that\n" +
			"facet-lab calibrate needs. facet-lab (clients/lab) reads the file and computes error rates and fits.\n" +
			"No node is asked.\n\n" +
			"The file contains biometric data. Keep it as you keep the photographs.",
		Example: "  facet models extract sface --images DIR --out photos.npz\n  facet-lab accuracy photos.npz",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, known := photos.ChoiceOf(x.Faces)
			switch {
			case x.Images == "":
				return cli.Misuse(errors.New("--images is needed: a folder with a folder of photographs for each person"))
			case x.File == "":
				return cli.Misuse(errors.New("--out is needed: the file to write"))
			case !known:
				return cli.Misuse(errors.New("--faces must be middle, refuse or dominant"))
			}
			x.Pack, x.Out = models.Find(*packs, args[0]), cmd.OutOrStdout()
			return x.Extract(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&x.Images, "images", "", "folder with a folder of photographs for each person; needed")
	f.StringVar(&x.File, "out", "", "file to write, .npz; needed")
	f.StringVar(&x.Faces, "faces", x.Faces, "which face of several is taken: the one in the middle, or as an application does: refuse, dominant")
	f.BoolVar(&x.OnlyRates, "only-rates", false, "leave out what only facet-lab calibrate needs, which takes most of the time")
	libraryFlags(f, &x.ONNXRuntime, &x.SHA256)
	return cmd
}

// libraryFlags adds the flags that name ONNX Runtime's library and its hash.
func libraryFlags(f *pflag.FlagSet, library, sha256 *string) {
	f.StringVar(library, "onnxruntime", *library, "ONNX Runtime's shared library")
	f.StringVar(sha256, "onnxruntime-sha256", "", "its SHA-256, if it is another library than \"make setup\" installs")
}
