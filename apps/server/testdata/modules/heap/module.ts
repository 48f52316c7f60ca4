import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { defineModule } from "../../../src/module/index.ts";
import { JukeboxService } from "../../gen/music/v1/music_pb.ts";
import { Artist } from "../../music.ts";

setFlagsFromString("--expose-gc");
const collect: unknown = runInNewContext("gc");

/** The type of the tests, and a jukebox that returns the size of the heap after a collection, in bytes. */
export default defineModule({
	name: "heap",
	types: [Artist],
	services: (router) => {
		router.service(JukeboxService, {
			play: async () => {
				for (let round = 0; round < 3; round += 1) {
					if (typeof collect === "function") {
						collect();
					}
					await new Promise((resolve) => setImmediate(resolve));
				}
				return { song: String(process.memoryUsage().heapUsed) };
			},
		});
	},
});
