package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"facet/cmd/facet/bench"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/config"
	"facet/cmd/facet/tenant"
	"facet/engine/accuracy"
)

func newBench() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "bench", Short: "measure how often the face engine or the service is wrong"}, newBenchAccuracy(), newBenchIdentify(), newBenchCompare(), tenant.NewBench())
}

func newBenchAccuracy() *cobra.Command {
	cfg := bench.Config{Faces: bench.FacesMiddle}
	cmd := &cobra.Command{
		Use:   "accuracy",
		Short: "false match and false non-match rates (1:1)",
		Long: "Compare photographs of DIR, which holds a folder of them for each person, and print the false match\n" +
			"rate (FMR) and the false non-match rate (FNMR) at thresholds, with 95 % intervals.\n\n" +
			"--pairs FILE compares the pairs of a list in the format of LFW (pairs.txt);\n" +
			"its photographs are DIR/NAME/NAME_0001.jpg. --pairs all compares every photograph with every other.\n" +
			"The face nearest to the middle of a photograph is taken. One without a face is a failure to acquire.",
		Args: cli.Args(cobra.NoArgs),
	}
	cmd.Flags().StringVar(&cfg.Pairs, "pairs", bench.PairsAll, "file with a list of pairs, or all")
	cmd.Flags().BoolVar(&cfg.CrossFit, "cross-fit", false, "score each comparison by a fit to other persons than the two, instead of the pack's own")
	cmd.Flags().StringVar(&cfg.Groups, "groups", "", "CSV file with the groups of persons to measure apart: the header person,ATTRIBUTE,… and a line for each folder")
	cmd.Flags().StringVar(&cfg.Report, "report", "", "Markdown page to write, with its plots in pictures/ beside it: all that can be measured")
	return onPhotos(cmd, &cfg, bench.Accuracy)
}

func newBenchIdentify() *cobra.Command {
	var cfg bench.Config
	cmd := &cobra.Command{
		Use:   "identify",
		Short: "rates of searches in galleries of several sizes (1:N)",
		Long: "Enrol the first photograph of each person of DIR in galleries of several sizes, search with all other\n" +
			"ones, and print how often the person is missed, and how often somebody else is found (FNIR, FPIR).\n" +
			"--photos K enrols the first K instead, and leaves at least one to search with.\n\n" +
			"--searches S advises on thresholds: S searches a day show people who are not enrolled, and at most\n" +
			"--alarms of them may find somebody.\n\n" +
			"--faces refuse or dominant takes the face that the service would, by an application's multipleFaces, and\n" +
			"prints rates that count what the service would refuse as missed. --quality-min is then that of enrolments,\n" +
			"0.45 if it is not given. facet bench service measures them on a cluster.",
		Args: cli.Args(cobra.NoArgs),
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Photos, "photos", 1, "photographs with which a person is enrolled")
	f.Float64Var(&cfg.Wanted.Searches, "searches", 0, "searches a day of people who are not enrolled: advises on thresholds")
	f.Float64Var(&cfg.Wanted.Alarms, "alarms", 1, "false alarms a day that are bearable")
	f.IntVar(&cfg.Wanted.Gallery, "gallery", 0, "number of persons to advise on, beside the sizes that are measured")
	f.StringVar(&cfg.Faces, "faces", bench.FacesMiddle, "which face of several is taken: the one in the middle, or as an application does: refuse, dominant")
	return onPhotos(cmd, &cfg, bench.Identify)
}

func newBenchCompare() *cobra.Command {
	var plot string
	cmd := &cobra.Command{
		Use:   "compare FILE.json…",
		Short: "show the measurements of several packs side by side",
		Long: "Print the rates in files that facet bench accuracy --json wrote, a column for each, and draw their\n" +
			"DET curves into one picture.",
		Example: "  facet bench accuracy --images DIR --models assets/packs/default --json mobile.json\n" +
			"  facet bench accuracy --images DIR --models assets/packs/sface --json sface.json\n" +
			"  facet bench compare mobile.json sface.json --plot packs.svg",
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			if plot != "" && filepath.Ext(plot) != ".svg" {
				return cli.Misuse(errPlot(plot))
			}
			return bench.Compare(cmd.OutOrStdout(), files, plot)
		},
	}
	cmd.Flags().StringVar(&plot, "plot", "", "DET plot to write, .svg")
	return cmd
}

func errPlot(file string) error {
	return fmt.Errorf("--plot %s: the file's name must end in .svg", filepath.Base(file))
}

// onPhotos completes a command that measures cfg. It adds the flags that both have.
func onPhotos(cmd *cobra.Command, cfg *bench.Config, measure func(context.Context, bench.Config) error) *cobra.Command {
	assets := config.AssetsDefault()
	cfg.Progress = os.Stderr
	f := cmd.Flags()
	f.StringVar(&cfg.Images, "images", "", "folder with a folder of photographs for each person; needed")
	f.StringVar(&cfg.Dataset, "dataset", "", "what the photographs are, in words, for JSON and report")
	f.Float64Var(&cfg.QualityMin, "quality-min", 0, "faces below this quality (0 to 1) count as not acquired")
	f.StringVar(&cfg.JSON, "json", "", "JSON file to write")
	f.StringVar(&cfg.Plot, "plot", "", "DET plot to write, .svg")
	f.StringVar(&cfg.Source.Pack, "models", assets.Models, "folder of a model pack, or of packs, of which it takes sface")
	cfg.Source.ONNXRuntime = assets.ONNXRuntime
	libraryFlags(f, &cfg.Source.ONNXRuntime, &cfg.Source.SHA256)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cfg.Faces != bench.FacesMiddle && !f.Changed("quality-min") {
			cfg.QualityMin = tenant.QualityDefault
		}
		if err := checkBench(cfg); err != nil {
			return cli.Misuse(err)
		}
		cfg.Out = cmd.OutOrStdout()
		return measure(cmd.Context(), *cfg)
	}
	return cmd
}

func checkBench(cfg *bench.Config) error {
	switch {
	case cfg.Images == "":
		return errors.New("--images is needed: a folder with a folder of photographs for each person")
	case !(cfg.QualityMin >= 0 && cfg.QualityMin <= 1): // also false for NaN
		return errors.New("--quality-min must be 0 to 1")
	case !slices.Contains([]string{bench.FacesMiddle, bench.FacesRefuse, bench.FacesDominant}, cfg.Faces):
		return errors.New("--faces must be middle, refuse or dominant")
	case cfg.Photos < 0 || cfg.Photos > accuracy.SamplesMax || cfg.Wanted.Gallery < 0:
		return errors.New("--photos and --gallery must be numbers from 1 on")
	case cfg.Wanted.Searches != 0 && !(cfg.Wanted.Alarms > 0 && cfg.Wanted.Alarms < cfg.Wanted.Searches): // also true for NaN
		return errors.New("--alarms must be more than 0 and less than --searches")
	case cfg.Plot != "" && filepath.Ext(cfg.Plot) != ".svg":
		return errPlot(cfg.Plot)
	case cfg.Report != "" && filepath.Ext(cfg.Report) != ".md":
		return fmt.Errorf("--report %s: the file's name must end in .md", filepath.Base(cfg.Report))
	}
	return nil
}
