import { defineType } from "@plinth/resource";
import { FilmSchema, HallSchema, ScreeningSchema } from "../testdata/gen/cinema/v1/cinema_pb.ts";
import { HallSchema as HallV2Schema } from "../testdata/gen/cinema/v2/cinema_pb.ts";

/** Namespace scoped; fills in a rating, and refuses a film without a title. */
export const Film = defineType(FilmSchema, {
	mutate({ data }) {
		data.rating ||= 5;
	},
	validate({ data }) {
		if (data.title === "") {
			throw new Error("resource.data.title is required");
		}
		if ((data.prizes.oscar ?? 0) > 11) {
			throw new Error(`resource.data.prizes["oscar"] invalid: nobody has that many`);
		}
	},
});

/** Partition scoped. */
export const Hall = defineType(HallSchema);

/** References films and other screenings. */
export const Screening = defineType(ScreeningSchema);

/** `cinema.v2.Hall`, of one family with `cinema.v1.Hall`; not among the types of most tests. */
export const HallV2 = defineType(HallV2Schema);
