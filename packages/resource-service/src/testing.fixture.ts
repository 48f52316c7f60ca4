/** What the tests of other packages use. Not published. */
export {
	AlbumSchema,
	ArtistSchema,
	FestivalSchema,
	LabelSchema,
} from "../testdata/gen/acme/demo/v2/demo_pb.ts";
export { artist, demoTypes } from "./demo.fixture.ts";
export { liveType } from "./live-type.fixture.ts";
