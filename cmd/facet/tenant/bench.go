package tenant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/photos"
	"facet/internal/settings"
)

// serviceRates are the rates of persons who send their first photograph to be enrolled and search
// with all others. Whatever the service refuses counts.
type serviceRates struct {
	Persons        int     `json:"persons"`
	Photos         int     `json:"photographs"`
	MultipleFaces  string  `json:"multipleFaces"`
	MinimumQuality float64 `json:"faceMinimumQualityScore"`
	// NotEnrolled is the share of first photographs that are refused, NotSearched that of all
	// others. The maps count them by the error's type.
	NotEnrolled    share            `json:"failureToEnrol"`
	NotEnrolledFor map[string]int64 `json:"failureToEnrolFor"`
	NotSearched    share            `json:"failureToSearch"`
	NotSearchedFor map[string]int64 `json:"failureToSearchFor"`
	// Rank1 is the share of searches whose first candidate is the person, and Found of those
	// with the default threshold or more; Wrong has somebody else first, at that threshold.
	Rank1 share `json:"rank1"`
	Found share `json:"found"`
	Wrong share `json:"somebodyElse"`
}

// share is a share of events among trials, with its 95 % score interval (Wilson 1927).
type share struct {
	Value    float64  `json:"value"`
	Events   int64    `json:"events,omitzero"`
	Trials   int64    `json:"trials,omitzero"`
	Interval interval `json:"interval95"`
}

type interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// shareOf returns a share; 0, with the interval 0 to 1, without trials.
func shareOf(events, trials int64) share {
	if trials == 0 {
		return share{Interval: interval{0, 1}}
	}
	const z = 1.959963984540054
	p, n := float64(events)/float64(trials), float64(trials)
	middle, half := (p+z*z/(2*n))/(1+z*z/n), z/(1+z*z/n)*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return share{p, events, trials, interval{max(0, middle-half), min(1, middle+half)}}
}

// String returns the share and its interval in percent.
func (s share) String() string {
	return fmt.Sprintf("%.2f %% [%.2f–%.2f]", 100*s.Value, 100*s.Interval.Low, 100*s.Interval.High)
}

// benchAtOnce is how many requests a measurement has under way.
const benchAtOnce = 8

// serviceBench is one measurement.
type serviceBench struct {
	*client.Client // of the application
	folder         *photos.Folder
	show           *photos.Progress

	mu          sync.Mutex     // guards all below
	subjects    map[int]string // of persons
	notEnrolled map[string]int64
	notSearched map[string]int64
	rank1       int64
	found       int64
	wrong       int64
}

// NewBench returns the command that measures the service.
func NewBench() *cobra.Command {
	cmd := &cobra.Command{
		Use: "service", Short: "rates of a cluster with what it refuses counted, end to end", Args: cli.Args(cobra.NoArgs),
		Long: "Send photographs to a cluster as its clients do: enrol the first one of each person of DIR, search with all\n" +
			"others, and print how many persons fail to enrol and how often the first candidate is the person. What the\n" +
			"service refuses counts as missed. The command makes a gallery of its own and deletes it; its access key\n" +
			"has the role admin.",
		Example: "  facet bench service --images lfw/ --multiple-faces dominant",
	}
	images := cmd.Flags().String("images", "", "folder with a folder of photographs for each person; needed")
	faces := cmd.Flags().String("multiple-faces", client.FacesRefuse, settings.Named[settings.Application]("multipleFaces").Help)
	quality := cmd.Flags().Float64("min-quality", QualityDefault, settings.Named[settings.Application]("faceMinimumQualityScore").Help)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *images == "" {
			return cli.Misuse(errors.New("--images is needed: a folder with a folder of photographs for each person"))
		}
		return nil
	}
	return onTenant(cmd, func(ctx context.Context, s *session, _ []string) error {
		folder, err := photos.Read(ctx, *images)
		if err != nil {
			return err
		}
		app := client.NewApplication{Name: "bench", MultipleFaces: *faces, FaceMinimumQualityScore: *quality}
		got, err := s.measure(ctx, folder, app)
		if err != nil {
			return err
		}
		return s.print(got, got.text)
	})
}

// measure makes a gallery with the application, measures it, and deletes it.
func (s *session) measure(ctx context.Context, folder *photos.Folder, app client.NewApplication) (_ serviceRates, err error) {
	g, err := s.CreateGallery(ctx, client.NewGallery{
		Name: fmt.Sprintf("bench of %s", time.Now().UTC().Format(time.RFC3339Nano)), Size: len(folder.Persons), FaceMinimumQualityScore: app.FaceMinimumQualityScore,
	})
	if err != nil {
		return serviceRates{}, err
	}
	defer func() { err = errors.Join(err, s.DeleteGallery(context.WithoutCancel(ctx), g.ID)) }()
	app.GalleryID = g.ID
	made, err := s.CreateApplication(ctx, app)
	if err != nil {
		return serviceRates{}, err
	}
	b := &serviceBench{
		Client: s.WithAPIKey(made.APIKey), folder: folder, show: photos.NewProgress(os.Stderr, len(folder.Photos)),
		subjects: map[int]string{}, notEnrolled: map[string]int64{}, notSearched: map[string]int64{},
	}
	defer b.show.Close()
	var first, others []photos.Photo
	for i, p := range folder.Photos {
		if i > 0 && folder.Photos[i-1].Person == p.Person {
			others = append(others, p)
		} else {
			first = append(first, p)
		}
	}
	if err := b.each(ctx, first, b.enrol); err != nil {
		return serviceRates{}, err
	}
	if err := b.each(ctx, others, b.search); err != nil {
		return serviceRates{}, err
	}
	return b.rates(app, int64(len(others))), nil
}

// each sends photographs, several at once.
func (b *serviceBench) each(ctx context.Context, list []photos.Photo, send func(context.Context, photos.Photo, []byte) error) error {
	senders, ctx := errgroup.WithContext(ctx)
	senders.SetLimit(benchAtOnce)
	for _, p := range list {
		senders.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			defer b.show.Add()
			image, err := readFile(p.File)
			if err == nil {
				err = send(ctx, p, image)
			}
			return err
		})
	}
	return senders.Wait()
}

func (b *serviceBench) enrol(ctx context.Context, p photos.Photo, image []byte) error {
	got, err := b.Register(ctx, client.Photo{Image: image})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.subjects[p.Person] = got.ID
	}
	return count(b.notEnrolled, err)
}

func (b *serviceBench) search(ctx context.Context, p photos.Photo, image []byte) error {
	got, err := b.Search(ctx, client.SearchQuery{Probe: image, Threshold: new(0), Limit: 1})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || len(got.Candidates) == 0 {
		return count(b.notSearched, err)
	}
	first := got.Candidates[0]
	switch own, sure := first.ID == b.subjects[p.Person], first.Score >= client.ThresholdDefault; {
	case own && sure:
		b.rank1++
		b.found++
	case own:
		b.rank1++
	case sure:
		b.wrong++
	}
	return nil
}

// count counts an error by its type if the service refuses the photo, and returns any other one.
func count(refusals map[string]int64, err error) error {
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return err
	case errors.Is(e, client.ErrImage):
		refusals[e.Reason]++
	case errors.Is(e, client.ErrNoFace), errors.Is(e, client.ErrMultipleFaces), errors.Is(e, client.ErrPoorQuality):
		refusals[e.Type]++
	default:
		return err
	}
	return nil
}

func (b *serviceBench) rates(app client.NewApplication, searches int64) serviceRates {
	sum := func(refusals map[string]int64) (n int64) {
		for _, k := range refusals {
			n += k
		}
		return n
	}
	return serviceRates{
		Persons: len(b.folder.Persons), Photos: len(b.folder.Photos), MultipleFaces: app.MultipleFaces, MinimumQuality: app.FaceMinimumQualityScore,
		NotEnrolled: shareOf(sum(b.notEnrolled), int64(len(b.folder.Persons))), NotEnrolledFor: b.notEnrolled,
		NotSearched: shareOf(sum(b.notSearched), searches), NotSearchedFor: b.notSearched,
		Rank1: shareOf(b.rank1, searches), Found: shareOf(b.found, searches), Wrong: shareOf(b.wrong, searches),
	}
}

// text prints the rates for people, with 95 % intervals.
func (r serviceRates) text(w io.Writer) error {
	of := func(r share, reasons map[string]int64) string {
		parts := []string{fmt.Sprintf("%v, %d of %d", r, r.Events, r.Trials)}
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			parts = append(parts, fmt.Sprintf("%s %d", reason, reasons[reason]))
		}
		return strings.Join(parts, ", ")
	}
	return writePairs(w,
		"photographs", fmt.Sprintf("%d of %d persons", r.Photos, r.Persons),
		"several faces", r.MultipleFaces,
		"failure to enrol", of(r.NotEnrolled, r.NotEnrolledFor),
		"searches refused", of(r.NotSearched, r.NotSearchedFor),
		"the person is first", of(r.Rank1, nil),
		fmt.Sprintf("… with a score of %d or more", client.ThresholdDefault), of(r.Found, nil),
		"somebody else, with as much", of(r.Wrong, nil),
	)
}
