import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { OriginSchema, type Resource } from "@plinth/proto";
import { idOf, newUlid } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { createSqliteBackend } from "@plinth/storage-sqlite";
import { onTestFinished } from "vitest";
import { Artist, artist } from "../testdata/music.ts";
import type { ServerOptions } from "./server-options.ts";
import { databaseFile } from "./storage/open-storage.ts";

/** A storage with copies of artists of other regions, given as their names by region. */
export async function storageWithCopies(
	regions: Readonly<Record<string, readonly string[]>>,
): Promise<ServerOptions["storage"]> {
	const directory = mkdtempSync(join(tmpdir(), "plinth-regions-"));
	onTestFinished(() => rmSync(directory, { recursive: true }));
	const backend = await createSqliteBackend({ path: join(directory, databaseFile) });
	for (const [region, names] of Object.entries(regions)) {
		for (const name of names) {
			await backend.commit([{ op: "put", resource: copyOf(name, region), expectedVersion: "" }]);
		}
	}
	await backend.close();
	return { kind: "sqlite", directory };
}

function copyOf(name: string, region: string): Resource {
	const copy = artist(name, `copied from ${region}`);
	copy.id = { ...idOf(Artist, name, {}, newUlid(systemRuntime)), region };
	copy.generation = newUlid(systemRuntime);
	copy.origin = create(OriginSchema, { region, uid: newUlid(systemRuntime), version: "7" });
	return copy;
}
