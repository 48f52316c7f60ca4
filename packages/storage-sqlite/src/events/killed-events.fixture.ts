import { putArtist } from "@plinth/storage/testing";
import { createSqliteBackend } from "../sqlite-backend.ts";

// A process to be killed: `node killed-events.fixture.ts <path>` writes two rows of events with the same number again
// and again, beside commits, and prints the number of each write that has resolved.

const [path = ""] = process.argv.slice(2);
const backend = await createSqliteBackend({ path });

async function commitForever(): Promise<never> {
	for (let version = ""; ; ) {
		({ version } = await backend.commit([putArtist("a", `after ${version}`, version)]));
	}
}

void commitForever();
for (let count = 1; ; count++) {
	const body = Buffer.from(String(count));
	const rows = [
		{ key: "a", body },
		{ key: "b", body },
	];
	await backend.events.write(rows, { ttlMs: 3_600_000 });
	process.stdout.write(`${count}\n`);
}
