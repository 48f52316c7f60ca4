import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { defineModule } from "../../../src/module/index.ts";
import { JukeboxService } from "../../gen/music/v1/music_pb.ts";

/** The effects of `play`, by song: each causes an unhandled fault. */
const faults: Readonly<Record<string, () => void>> = {
	rejection: () => {
		void Promise.reject(new Error("nobody handles this rejection"));
	},
	oddity: () => {
		void Promise.reject({ song: "so what" });
	},
	exception: () => {
		setImmediate(() => {
			throw new Error("nobody catches this exception");
		});
	},
	storm: () => {
		for (let index = 0; index < 1_000; index += 1) {
			void Promise.reject(new Error(`fault number ${index}`));
		}
	},
	/** From now on, a stop never ends, and each of its parts fails. */
	"endless stop": () => {
		AsyncDisposableStack.prototype.disposeAsync = () => {
			void Promise.reject(new Error("a second fault"));
			return new Promise(() => {});
		};
	},
	/** A thread that waits for a pipe without a writer, as it would for a failed disk. */
	"stuck thread": () => {
		const pipe = join(mkdtempSync(join(tmpdir(), "plinth-pipe-")), "pipe");
		execFileSync("mkfifo", [pipe]);
		const program = `require("node:worker_threads").parentPort.postMessage("reading");
			require("node:fs").readFileSync(${JSON.stringify(pipe)})`;
		new Worker(program, { eval: true }).once("message", () => {
			process.stderr.write("the thread is stuck\n");
		});
	},
};

/** A jukebox that causes faults. */
export default defineModule({
	name: "faults",
	services: (router) => {
		router.service(JukeboxService, {
			play: ({ song }) => {
				faults[song]?.();
				return { song };
			},
		});
	},
});
