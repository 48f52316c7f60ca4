import { writeSync } from "node:fs";
import type { Resource } from "@plinth/proto";
import type { Mutation } from "@plinth/storage";
import { artist, textOf } from "@plinth/storage/testing";
import { createSqliteBackend } from "../sqlite-backend.ts";
import { isDeletion } from "./crash-workload.fixture.ts";

// A process to be killed: `node crash-writer.fixture.ts <path> <writers> [steps]`. Each writer runs its
// steps as fast as it can, and reports each acknowledgement as a line `<writer> <step> <version>`. With a
// number of steps it ends by itself.

const [path = "", writers = "1", steps = "Infinity"] = process.argv.slice(2);
const backend = await createSqliteBackend({ path });

async function stored(name: string): Promise<Resource | undefined> {
	const { id } = artist(name);
	return id && backend.read(id).catch(() => undefined);
}

function change(name: string, before: Resource | undefined, text: string | undefined): Mutation[] {
	const resource = artist(name, text);
	const expectedVersion = before?.version ?? "";
	if (text !== undefined) {
		return [{ op: "put", resource, expectedVersion }];
	}
	return resource.id ? [{ op: "delete", id: resource.id, expectedVersion }] : [];
}

async function write(writer: number): Promise<void> {
	const names = [`left-${writer}`, `right-${writer}`];
	let step = Number(textOf(await stored(`step-${writer}`)) || "0");
	while (step < Number(steps)) {
		step += 1;
		const mutations: Mutation[] = [];
		for (const name of names) {
			const text = isDeletion(step) ? undefined : String(step);
			mutations.push(...change(name, await stored(name), text));
		}
		mutations.push(...change(`step-${writer}`, await stored(`step-${writer}`), String(step)));
		const { version } = await backend.commit(mutations);
		writeSync(1, `${writer} ${step} ${version}\n`);
	}
}

await Promise.all(Array.from({ length: Number(writers) }, (_, writer) => write(writer)));
await backend.close();
