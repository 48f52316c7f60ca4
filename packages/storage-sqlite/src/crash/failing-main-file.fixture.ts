import { putArtist } from "@plinth/storage/testing";
import { createSqliteBackend } from "../sqlite-backend.ts";

// `node failing-main-file.fixture.ts <path>` writes 64 MiB, one commit after the other, and prints the failure of the
// storage, with the number of commits that were acknowledged.

const [path = ""] = process.argv.slice(2);
let acknowledged = 0;
const backend = await createSqliteBackend({
	path,
	onFailed: ({ message }) => {
		console.log(`failed after ${acknowledged} commits: ${message}`);
		process.exit();
	},
});
const text = "x".repeat(256 * 1024);
for (; acknowledged < 256; acknowledged++) {
	await backend.commit([putArtist(`artist-${acknowledged}`, text)]);
}
// A failure that the last commit has revealed is reported by now.
await backend.catchUp(new AbortController().signal);
console.log("not failed");
process.exit();
