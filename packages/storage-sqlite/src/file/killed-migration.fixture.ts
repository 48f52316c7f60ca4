import { migrate, migrations } from "./migrations.ts";
import { openForWriting } from "./storage-writer.ts";

// A process that is killed while it migrates: `node killed-migration.fixture.ts <path> <at>`, in the
// middle of the first step (`begun`), or when that is in the log and nowhere else (`committing`).

const [path = "", at = ""] = process.argv.slice(2);
const database = openForWriting(path);
const [first] = migrations;

function kill(): never {
	process.kill(process.pid, "SIGKILL");
	// The signal may take a moment.
	for (;;) {
		Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
	}
}

migrate(database, { fresh: { uid: "a uid", incarnation: "an incarnation" } }, [
	(target, context) => {
		first?.(target, context);
		if (at === "begun") {
			kill();
		}
	},
]);
kill();
