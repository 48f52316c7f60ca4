export { WatchReader } from "../conformance/test-resources.ts";
export {
	ArtistWatch,
	allArtists,
	artist,
	idOfArtist,
	listArtists,
	putArtist,
	textOf,
} from "./artists.ts";
export { type DelayOptions, delayedBackend } from "./delayed-backend.ts";
export { recordedBackend, type StoredChange } from "./recorded-backend.ts";
