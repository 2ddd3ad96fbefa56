"""What a labeling run starts from, checked and read once before anything is embedded."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from difflib import get_close_matches

from transduce.encoders import DEFAULT_ENCODER, load_encoder
from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import DECLARED, Encoder, Identity, ImageEncoder
from transduce.encoders.hub import DownloadBar, no_bar
from transduce.encoders.precomputed import TEXTS
from transduce.errors import InvalidFile, InvalidSetting, NoImages, UnknownName, counted, some_of
from transduce.features.embedding import (
    Progress,
    Resources,
)
from transduce.features.importing import UNKNOWN_ENCODER, open_features
from transduce.features.planning import check_same_encoder
from transduce.features.store import FeatureStore
from transduce.images.entries import Listing, is_container, is_url
from transduce.images.sources import find_images
from transduce.labeling.automatic import has_iterations, named_method
from transduce.labeling.files import read_labeled
from transduce.labeling.known_labels import folder_labels, read_truth
from transduce.labeling.settings import (
    AUTO,
    FROM_STORE,
    UNKNOWN_LABEL,
    LabelSettings,
    indices_of,
)
from transduce.labeling.views import check_view, given_view
from transduce.methods import METHODS, Method

MOST_NAMED = 5  # classes in an error message


def _no_bar(title: str, total: int) -> AbstractContextManager[Progress]:
    return nullcontext(lambda images: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Receives the progress of a run; by default nothing is shown."""

    say: Callable[[str], None] = lambda line: None
    bar: Callable[[str, int], AbstractContextManager[Progress]] = _no_bar
    download: DownloadBar = no_bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The device and processes that a run may use; they change its speed, never its labels."""

    device: str = "cpu"
    batch_size: int = 32  # images per forward pass
    resources: Resources = field(default_factory=Resources)
    ray: bool = False  # whether batches are solved on a Ray cluster, with `resources.workers`
    address: str | None = None  # of the cluster; by default one of this machine's cores


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelInputs:
    """The files of a run as they were read; classes are indices, by file name."""

    settings: LabelSettings
    images: Listing | None = None  # to embed; None if there are features
    store: FeatureStore | None = None  # the features of --features
    view: FeatureStore | None = None  # the features of --view; None if it is an encoder
    support: Listing | None = None
    support_labels: Mapping[str, int] = field(default_factory=dict)
    truth: Mapping[str, int] = field(default_factory=dict)  # empty without --truth
    corrections: Mapping[str, int] = field(default_factory=dict)  # UNKNOWN: none of the classes
    image_paths: Mapping[str, str] = field(default_factory=dict)  # of --images, by file name

    @property
    def encoder_id(self) -> str:
        """The encoder asked for; with features, by default the one that made them."""
        if self.settings.encoder != FROM_STORE or self.store is None:
            return self.settings.encoder or DEFAULT_ENCODER
        if (self.store.folder / TEXTS).is_file():
            return f"precomputed:{self.store.folder}"
        if self.store.identity.encoder == UNKNOWN_ENCODER:
            raise InvalidSetting(
                f"Expected to know which encoder made the features in {self.settings.features}, "
                "found no word of it; name it with --encoder, or import them with the embeddings "
                "of their classes: transduce features import"
            )
        return self.store.identity.encoder

    @property
    def imported(self) -> bool:
        """Whether the features were in the file of another program, and no store yet."""
        return self._is_copy(self.store, self.settings.features)

    @property
    def imported_view(self) -> bool:
        """Whether the view was in the file of another program, and no store yet."""
        return self._is_copy(self.view, self.settings.view)

    def _is_copy(self, store: FeatureStore | None, given: str) -> bool:
        return store is not None and not is_url(given) and store.folder != self.settings.path(given)

    def load_encoder(self, machine: Machine, bar: DownloadBar = no_bar) -> Encoder:
        """Return the encoder of `encoder_id`; `bar` shows its download."""
        return self._load(self.encoder_id, machine, bar)

    def load_view_encoder(self, machine: Machine, bar: DownloadBar = no_bar) -> ImageEncoder | None:
        """Return the encoder of --view if there are images for it to embed."""
        if not self.settings.view:
            return None
        if self.view is None:
            return self._load(self.settings.view, machine, bar)
        if self.support is None:
            return None
        made_by = self.view.identity
        if made_by.encoder == UNKNOWN_ENCODER:
            raise InvalidSetting(
                f"Expected to know which encoder made the view {self.settings.view}, to embed the "
                "images of --support with it, found no word of it; make the view with "
                "transduce embed, or leave --support or --view out."
            )
        encoder = self._load(made_by.encoder, machine, bar)
        self.check_view_encoder(encoder.identity)
        return encoder

    def check_view_encoder(self, identity: Identity) -> None:
        """Refuse a view that another encoder made than the one for the shots."""
        if self.view is not None and self.view.identity.weights != DECLARED:
            where = f"the view in {self.settings.view}"
            check_same_encoder(self.view.identity, identity, where, "the shots")

    def _load(self, identifier: str, machine: Machine, bar: DownloadBar) -> Encoder:
        return load_encoder(
            identifier,
            offline=self.settings.offline,
            device=machine.device,
            batch_size=machine.batch_size,
            bar=bar,
        )

    def check_encoder(self, identity: Identity) -> None:
        """Refuse features that another encoder made, as far as that is known."""
        if self.store is None:
            return
        made_by = self.store.identity
        if made_by.weights == DECLARED:
            same_id = self.encoder_id == made_by.encoder
            name = made_by.encoder if same_id else identity.encoder
            identity = Identity.declared(name, identity.dimension)
        where = f"the features in {self.settings.features}"
        check_same_encoder(made_by, identity, where, "this run")

    def summary_line(self) -> str:
        """Return how many images or features there are, and where."""
        if self.store is not None:
            number = counted(len(self.store), "image")
            return f"Found the features of {number} in {self.settings.features}"
        assert self.images is not None
        number = counted(len(self.images.entries), "image")
        left = left_out(self.images.ignored, self.images.videos)
        return f"Found {number} in {self.images.source}" + (f" ({left} left out)" if left else "")


def left_out(ignored: int, videos: int) -> str:
    """Return "2 videos and 1 other file"; "" if there are none."""
    parts = [counted(videos, "video")] if videos else []
    if ignored > videos:
        parts.append(
            counted(
                ignored - videos,
                "other file" if videos else "file of another kind",
                "other files" if videos else "files of other kinds",
            )
        )
    return " and ".join(parts)


def read_inputs(
    settings: LabelSettings, *, view_loaded: bool = False, download: DownloadBar = no_bar
) -> LabelInputs:
    """Return the inputs of a run; what cannot be labeled is refused before any image is opened.

    `view_loaded` says that the encoder of the view is there already, whatever the setting;
    `download` shows the bytes of stores behind a URL.
    """
    classes = settings.names
    if UNKNOWN_LABEL in settings.classes and (settings.allow_unknown or settings.min_score):
        raise InvalidSetting(
            f"Expected no class called {UNKNOWN_LABEL!r} together with --allow-unknown or "
            "--min-score, found one; rename it."
        )
    method = _method(settings)
    if settings.view:
        check_view(settings, method, loaded=view_loaded)
    images = None if settings.features else find_images(settings.source)
    store = _given_store(settings, download) if settings.features else None
    support, support_labels = None, {}
    if settings.support:
        support = find_images(str(settings.path(settings.support)))
        support_labels = folder_labels([entry.key for entry in support.entries], classes)
    names: Sequence[str] = ()
    if settings.truth or settings.support_from:
        names = [entry.key for entry in images.entries] if images else _keys(store)
    corrections = {}
    if settings.support_from:
        labels = read_labeled(settings.path(settings.support_from))
        corrections = check_corrections(labels, names, classes)
    if method is not None and method.support == "needed":
        _check_support(settings, {*support_labels.values(), *corrections.values()})
    return LabelInputs(
        settings=settings,
        images=images,
        store=store,
        view=None if view_loaded or not settings.view else given_view(settings, images, download),
        support=support,
        support_labels=support_labels,
        truth=read_truth(settings, names) if settings.truth else {},
        corrections=corrections,
        image_paths=_image_paths(settings, store) if settings.images else {},
    )


def _given_store(settings: LabelSettings, download: DownloadBar) -> FeatureStore:
    """Return the store of --features; the file of another program becomes a temporary one."""
    encoder = None if settings.encoder == FROM_STORE else settings.encoder
    store = open_features(settings.address(settings.features), encoder=encoder, bar=download)
    if not len(store):
        raise NoImages(
            f"Expected features of images in {settings.features}, found none; embed again."
        )
    return store


def _image_paths(settings: LabelSettings, store: FeatureStore | None) -> dict[str, str]:
    """Return the image of each row of --features in --images, by its name or the end of it."""
    if store is None:
        raise InvalidSetting(
            "Expected --images together with --features, found it alone; give the folder as SOURCE."
        )
    entries = find_images(str(settings.path(settings.images))).entries
    paths = {entry.key: entry.path for entry in entries if not entry.problem}
    last = {name.rpartition("/")[2]: path for name, path in paths.items()}
    names = store.keys()
    known = {name: paths.get(name) or last.get(name.rpartition("/")[2], "") for name in names}
    known = {name: path for name, path in known.items() if path and not is_container(path)}
    if not known:
        raise InvalidFile(
            f"Expected the images of the features in {settings.images}, found none of their names; "
            f"the first of the features is {names[0]!r}, the first image {entries[0].key!r}."
        )
    return known


def _keys(store: FeatureStore | None) -> list[str]:
    assert store is not None
    return store.keys()


def _method(settings: LabelSettings) -> Method | None:
    """Return the method asked for, None for `auto`; refused if it is unknown or cannot be built."""
    if settings.iterations and not has_iterations(settings.method):
        able = [name for name in METHODS if has_iterations(name)]
        raise InvalidSetting(
            f"Expected --iterations with a method that stops after a given number, found --method "
            f"{settings.method}; leave it out, or choose one of {', '.join(able)}."
        )
    if settings.method == AUTO:
        return None
    try:
        return named_method(settings.method, 1, settings.iterations)
    except InvalidSetting as error:
        raise InvalidSetting(
            f"Expected a --method that needs nothing but images and class names, found "
            f"{settings.method!r}, which says: {error}"
        ) from None


def _check_support(settings: LabelSettings, with_shots: Collection[int]) -> None:
    """Refuse support that leaves out classes, for a method that needs shots of every class."""
    missing = [name for k, name in enumerate(settings.classes) if k not in with_shots]
    if len(missing) == len(settings.classes):
        raise InvalidSetting(
            f"Expected support for {settings.method}, found none; give labeled images with "
            "--support, or choose another --method."
        )
    if missing:
        raise InvalidSetting(
            f"Expected support for {settings.method} of every class, found none of "
            f"{some_of(missing, MOST_NAMED)}; add labeled images of these, or choose "
            "another --method."
        )


def check_corrections(
    labels: Mapping[str, str], file_names: Sequence[str], classes: ClassNames
) -> dict[str, int]:
    """Return the class index of each corrected image, UNKNOWN for `unknown`.

    Names that are not in `file_names` and labels that are no class are refused.
    """
    known = set(file_names)
    for name, label in labels.items():
        if name not in known:
            near = get_close_matches(name, file_names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "; remove that line."
            raise InvalidFile(f"Expected corrections of images of this run, found {name!r}{hint}")
        if label not in classes.labels and label != UNKNOWN_LABEL:
            raise UnknownName(f"class (or {UNKNOWN_LABEL!r}) for {name!r}", label, classes.labels)
    indices = indices_of(list(labels.values()), classes)
    return {name: int(index) for name, index in zip(labels, indices, strict=True)}
