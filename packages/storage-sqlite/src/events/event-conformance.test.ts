import { describeEventConformance } from "@plinth/storage/conformance";
import { describe, it } from "vitest";
import { testDirectory } from "../directory.fixture.ts";
import { createSqliteBackend } from "../sqlite-backend.ts";

describeEventConformance(
	"the events of a SQLite backend",
	async () => {
		const directory = await testDirectory();
		let backend = await createSqliteBackend({ path: directory.file("storage.db") });
		return {
			storage: backend.events,
			reopen: async () => {
				await backend.close();
				backend = await createSqliteBackend({ path: directory.file("storage.db") });
				return backend.events;
			},
			dispose: async () => {
				await backend.close();
				await directory[Symbol.asyncDispose]();
			},
		};
	},
	{ describe, it: it.concurrent },
);
