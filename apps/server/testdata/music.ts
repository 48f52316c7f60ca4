import { create } from "@bufbuild/protobuf";
import { defineType, idOf, resourceOf } from "@plinth/resource";
import { defineModule, type Module } from "../src/module/index.ts";
import { FanSchema } from "./gen/music/v1/fan_pb.ts";
import { ArtistSchema, JukeboxService } from "./gen/music/v1/music_pb.ts";
import { TourSchema } from "./gen/tours/v1/tours_pb.ts";

/** The resource type of the tests. */
export const Artist = defineType(ArtistSchema);

/** A type that references artists by each rule. */
export const Fan = defineType(FanSchema);

/** A type that references artists and resources of its own type. */
export const Tour = defineType(TourSchema);

/** An artist, ready to be written. */
export function artist(name: string, genre = "jazz") {
	return resourceOf(Artist, {
		id: idOf(Artist, name),
		data: create(ArtistSchema, { genre }),
	});
}

/** A module with the type, and a jukebox whose Play waits for `released`. */
export function musicModule(released: Promise<void> = Promise.resolve()): Module {
	return defineModule({
		name: "music",
		types: [Artist],
		services: (router, { logger }) => {
			router.service(JukeboxService, {
				play: async ({ song }) => {
					logger.info({ song }, "playing");
					await released;
					return { song };
				},
				hum: () => {
					throw new Error("the secret of the jukebox");
				},
			});
		},
	});
}

/** A module with artists and their fans. */
export function fansModule(): Module {
	return defineModule({ name: "fans", types: [Artist, Fan] });
}

/** A module with the type that references artists. */
export function toursModule(): Module {
	return defineModule({ name: "tours", types: [Tour], foreignTypes: [Artist] });
}
