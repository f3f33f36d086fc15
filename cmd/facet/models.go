package main

import (
	"context"
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
			Use: "models", Short: "packs of face models: list, describe, check, fit, measure",
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
		newModelsVerify(assets, &packs), newModelsCalibrate(assets, &packs), newModelsProject(assets, &packs), newModelsExtract(assets, &packs),
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

func newModelsCalibrate(assets config.Assets, packs *string) *cobra.Command {
	return fitCommand(assets, packs, models.Calibration.Calibrate, cobra.Command{
		Use: "calibrate PACK", Short: "fit scores and quality of a pack to photographs of many persons",
		Long: "Compare the photographs of DIR, which holds a folder of them for each person, and fit the map from cosines\n" +
			"to scores, so that 4000, 5000, 6000, 7000 and 8000 stand for false match rates of 1e-2 to 1e-6. A fit on\n" +
			"each half of the persons is tested on the other half.\n\n" +
			"The quality, the least norm and the evidence for upright faces are fitted to 1,500 of the photographs and to\n" +
			"copies that are blurred, moved, dark, covered and so on. The output says how many comparisons each comes from.",
	})
}

func newModelsProject(assets config.Assets, packs *string) *cobra.Command {
	return fitCommand(assets, packs, models.Calibration.Project, cobra.Command{
		Use: "project PACK", Short: "fit the projection of a pack with two embedders",
		Long: "Fit the matrix that reduces both embedders' values to those of a template, on the photographs of DIR, which\n" +
			"holds a folder of them for each person: their principal axes. The manifest says how many values a template\n" +
			"has, and may name a projection that does not exist yet. Fits on a part of the persons are tested on others.\n" +
			"Then calibrate the pack with the projection, as \"facet models calibrate\" does. With --write the projection is\n" +
			"written beside the manifest.",
	})
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

// fitCommand returns cmd as a command that fits a pack to photographs.
func fitCommand(assets config.Assets, packs *string, fit func(models.Calibration, context.Context) error, cmd cobra.Command) *cobra.Command {
	c := models.Calibration{Progress: os.Stderr}
	c.ONNXRuntime = assets.ONNXRuntime
	cmd.Args = cli.Args(cobra.ExactArgs(1))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.Images == "" {
			return cli.Misuse(errors.New("--images is needed: a folder with a folder of photographs for each person"))
		}
		c.Pack, c.Out = models.Find(*packs, args[0]), cmd.OutOrStdout()
		return fit(c, cmd.Context())
	}
	f := cmd.Flags()
	f.StringVar(&c.Images, "images", "", "folder with a folder of photographs for each person; needed")
	f.StringVar(&c.Dataset, "dataset", "", "what the photographs are, in words for the manifest")
	f.StringVar(&c.Write, "write", "", "manifest to put the fits into; the rest of it stays as it is")
	libraryFlags(f, &c.ONNXRuntime, &c.SHA256)
	return &cmd
}

// libraryFlags adds the flags that name ONNX Runtime's library and its hash.
func libraryFlags(f *pflag.FlagSet, library, sha256 *string) {
	f.StringVar(library, "onnxruntime", *library, "ONNX Runtime's shared library")
	f.StringVar(sha256, "onnxruntime-sha256", "", "its SHA-256, if it is another library than \"make setup\" installs")
}
